import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.metrics import missing_modes

CENTRES = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])


def clusters(counts, seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([centre + 0.3 * rng.normal(size=(n, 2))
                           for centre, n in zip(CENTRES, counts)])  # fmt: skip


def test_the_mode_that_the_fakes_leave_out_is_found_with_its_share_and_members():
    real, fake = clusters([1500, 1300, 200], 0), clusters([1600, 1400, 0], 1)
    (mode,) = missing_modes(real=real, fake=fake)
    assert mode.real_share == pytest.approx(200 / 3000, rel=0.25)
    assert mode.fake_share == 0 and mode.low < 1e-9 and 0 < mode.high < 0.01
    assert len(mode.examples) == 12 and (mode.examples >= 2800).all()


def test_a_mode_half_as_frequent_is_not_missing_and_a_quarter_as_frequent_is():
    real = clusters([1500, 900, 600], 0)
    assert missing_modes(real=real, fake=clusters([1700, 1000, 300], 1)) == []
    (mode,) = missing_modes(real=real, fake=clusters([1800, 1080, 120], 1))
    assert mode.fake_share == pytest.approx(0.04, abs=0.02)
    assert (mode.examples >= 2400).all()


def test_two_missing_modes_come_by_frequency():
    found = missing_modes(real=clusters([500, 1500, 1000], 0), fake=clusters([3000, 0, 0], 1))
    assert [mode.real_share for mode in found] == pytest.approx([0.5, 1 / 3], rel=0.1)
    assert [np.all((mode.examples >= 500) & (mode.examples < 2000)) for mode in found] == [1, 0]


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(4, 400), st.integers(1, 20))
def test_nothing_is_missing_from_another_draw_of_the_same(seed, n, n_features):
    rng = np.random.default_rng(seed)
    real, fake = rng.normal(size=(2, n, n_features))
    assert missing_modes(real=real, fake=fake, seed=seed) == []


def test_neither_size_nor_place_of_the_features_matters():
    real, fake = clusters([1500, 1300, 200], 0), clusters([1600, 1400, 0], 1)
    (mode,) = missing_modes(real=real, fake=fake)
    (again,) = missing_modes(real=100 * real + 30, fake=100 * fake + 30)
    assert again.real_share == pytest.approx(mode.real_share, rel=0.1)


def test_reals_that_are_all_alike():
    same = np.ones((100, 3))
    assert missing_modes(real=same, fake=same) == []
    with pytest.raises(UserError, match="at least 4"):
        missing_modes(real=same[:3], fake=same)
