import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.metrics import kid


def features(n, f, seed, at=0.0):
    return (at + np.random.default_rng(seed).standard_normal((n, f))).astype(np.float32)


def squared_mmd(*, real, fake):
    """The definition: means over pairs, none of a sample with itself."""

    def kernel(x, y):
        return (float(np.dot(x, y)) / len(x) + 1) ** 3

    def within(xs):
        return np.mean([kernel(x, y) for i, x in enumerate(xs) for j, y in enumerate(xs) if i != j])

    return within(real) + within(fake) - 2 * np.mean([kernel(x, y) for x in real for y in fake])


@pytest.mark.slow
def test_mean_over_all_subsets_is_the_estimate_of_the_whole():
    """The estimate is a U-statistic: its mean over subsets of any size is that of the whole set."""
    real = features(8, 3, seed=0).astype(np.float64)
    fake = features(8, 3, seed=1, at=0.5).astype(np.float64)
    result = kid(real=real, fake=fake, subset_size=4, n_subsets=4000)
    assert result.value == pytest.approx(squared_mmd(real=real, fake=fake), abs=0.1)
    assert (result.subset_size, result.n_subsets) == (4, 4000)


def test_by_hand():
    # One dimension, points 0 and 1 of each: kernel(0, .) = 1, kernel(1, 1) = 8, so that within a
    # pair it is 1 or, of two ones, 8. Sets of equal points leave nothing to chance:
    ones, zeros = np.ones((6, 1)), np.zeros((6, 1))
    assert kid(real=zeros, fake=ones, subset_size=2, n_subsets=5)[:2] == (1 + 8 - 2 * 1, 0)
    assert kid(real=ones, fake=ones, subset_size=2, n_subsets=5)[:2] == (0, 0)


def test_around_zero_for_one_distribution_and_grows_with_distance():
    real = features(400, 5, seed=0)
    values = [
        kid(real=real, fake=features(400, 5, seed=1, at=at), subset_size=100, n_subsets=20)
        for at in (0, 0.3, 0.6)
    ]
    assert abs(values[0].value) < 4 * values[0].standard_error
    assert values[1].value > 4 * values[1].standard_error
    assert values[0].value < values[1].value < values[2].value


@pytest.mark.slow
def test_standard_error_is_the_spread_over_new_data():
    """Also where subsets overlap: 40 subsets of 50 from 100 are not 40 independent ones."""
    results = [
        kid(
            real=features(100, 3, seed=2 * s), fake=features(100, 3, seed=2 * s + 1, at=0.5),
            subset_size=1000, n_subsets=40, seed=s,
        )
        for s in range(80)
    ]  # fmt: skip
    spread = np.std([r.value for r in results], ddof=1)
    assert np.mean([r.standard_error for r in results]) == pytest.approx(spread, rel=0.3)


def test_says_the_size_that_was_used():
    result = kid(real=features(30, 2, seed=0), fake=features(21, 2, seed=1), n_subsets=3)
    assert result.subset_size == 10  # half of the smaller set
    assert result.standard_error > 0


@settings(max_examples=10)
@given(st.integers(0, 99))
def test_a_seed_gives_the_same_number_and_another_one_another(seed):
    real, fake = features(30, 4, seed=0), features(30, 4, seed=1)
    first = kid(real=real, fake=fake, subset_size=10, n_subsets=4, seed=seed)
    assert first == kid(real=real, fake=fake, subset_size=10, n_subsets=4, seed=seed)
    assert first != kid(real=real, fake=fake, subset_size=10, n_subsets=4, seed=seed + 1)


def test_refuses():
    good, broken = features(9, 2, seed=0), features(9, 2, seed=0)
    broken[3] = np.nan
    with pytest.raises(UserError, match=r"real features hold a NaN .* at sample 3"):
        kid(real=broken, fake=good)
    with pytest.raises(UserError, match="3 samples: give at least 4"):
        kid(real=good, fake=good[:3])
    with pytest.raises(UserError, match="100 subsets of 1"):
        kid(real=good, fake=good, subset_size=1)
    with pytest.raises(UserError, match="2 dimensions, fake ones 3"):
        kid(real=good, fake=features(9, 3, seed=0))
