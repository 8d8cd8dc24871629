import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prdc import compute_prdc

from diagan.errors import UserError
from diagan.metrics import manifold, manifold_metrics, partial_recall, recalled

few = settings(max_examples=15)


def features(n, f, seed, scale=1.0, at=0.0):
    noise = np.random.default_rng(seed).standard_normal((n, f))
    return (at + scale * noise).astype(np.float32)


def brute_force(*, real, fake, k):
    """Eq. E.5 to E.7 and density and coverage, word for word, from differences in float64."""

    def distances(x, y):
        return np.square(x[:, None].astype(np.float64) - y[None]).sum(axis=2)

    def radii(x):
        return np.sort(distances(x, x), axis=1)[:, k]  # place 0 is the sample itself

    cross = distances(real, fake)
    in_real_ball = cross <= radii(real)[:, None]
    in_fake_ball = cross <= radii(fake)[None]
    return (
        in_real_ball.any(axis=0).mean(),
        in_fake_ball.any(axis=1).mean(),
        in_real_ball.sum(axis=0).mean() / k,
        in_real_ball.any(axis=1).mean(),
    )


# --- against others ------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_real", "n_fake", "f", "k"), [
    (1500, 1100, 16, 3), (1025, 1024, 3, 1), (300, 700, 600, 5), (2049, 40, 8, 3),
])  # fmt: skip
def test_equal_to_prdc(n_real, n_fake, f, k):
    real = features(n_real, f, seed=1)
    fake = features(n_fake, f, seed=2, scale=0.9, at=0.1)
    theirs = compute_prdc(real, fake, k)
    assert manifold_metrics(real=real, fake=fake, k=k) == pytest.approx(
        [theirs[name] for name in ("precision", "recall", "density", "coverage")], rel=1e-12
    )


@few
@given(
    st.integers(2, 30), st.integers(2, 30), st.integers(1, 4), st.integers(1, 4), st.integers(0, 99)
)
def test_equal_to_brute_force_where_distances_are_equal(n_real, n_fake, f, k, seed):
    """Whole numbers from 0 to 2: copies and ties everywhere."""
    rng = np.random.default_rng(seed)
    real = rng.integers(0, 3, (n_real + k, f)).astype(np.float32) + 100
    fake = rng.integers(0, 3, (n_fake + k, f)).astype(np.float32) + 100
    expected = brute_force(real=real, fake=fake, k=k)
    assert manifold_metrics(real=real, fake=fake, k=k) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_far_from_zero(dtype):
    """Offsets cancel: |x|^2 is 10^8 times the distances that matter."""
    whole = np.random.default_rng(0).integers(-8, 9, (2, 200, 6)) / 8
    real, fake = (whole + (1000 if dtype != np.float16 else 16)).astype(dtype)
    expected = brute_force(real=real, fake=fake, k=3)
    assert manifold_metrics(real=real, fake=fake) == pytest.approx(expected, rel=1e-12)


def clusters(n, seed):
    """25 tiny clusters far apart, as in the paper's toy: neighbours are 1/10,000 of the norm."""
    rng = np.random.default_rng(seed)
    modes = np.stack(np.meshgrid(range(5), range(5)), axis=2).reshape(25, 2) * 2 - 4
    return (modes[rng.integers(25, size=n)] + 0.005 * rng.standard_normal((n, 2))).astype("f4")


def test_tiny_clusters_need_float64(monkeypatch):
    real, fake = clusters(1500, seed=0), clusters(1500, seed=1)
    expected = brute_force(real=real, fake=fake, k=3)
    assert manifold_metrics(real=real, fake=fake) == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(manifold, "LEGIBLE", 0)
    assert manifold_metrics(real=real, fake=fake) != pytest.approx(expected, rel=1e-6)


def test_rounding_decides_nothing(monkeypatch):
    """Copies of the reals lie on the edges of their balls; without the second look, not all do."""
    real = features(400, 64, seed=0, at=3)
    expected = brute_force(real=real[:200], fake=real, k=3)
    assert manifold_metrics(real=real[:200], fake=real) == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(manifold, "ROUNDING", 0)
    assert manifold_metrics(real=real[:200], fake=real) != pytest.approx(expected, rel=1e-12)


# --- by hand -------------------------------------------------------------------------------------

# On a line, k = 1. Reals 0, 1, 10 have radii 1, 1, 9; fakes 2, 3, 30 have radii 1, 1, 27.
REAL = np.array([[0], [1], [10]], dtype=np.float32)
FAKE = np.array([[2], [3], [30]], dtype=np.float32)


def test_by_hand():
    # Balls of reals: [-1, 1], [0, 2], [1, 19]: fake 2 lies in two (on one edge), 3 in one, 30 in 0.
    # Balls of fakes: [1, 3], [2, 4], [3, 57]: real 0 in none, 1 on an edge, 10 in one.
    assert manifold_metrics(real=REAL, fake=FAKE, k=1) == pytest.approx((2 / 3, 2 / 3, 1, 2 / 3))
    assert recalled(real=REAL, fake=FAKE, k=1).tolist() == [False, True, True]


def test_the_edge_belongs_to_the_ball_unlike_in_prdc():
    assert compute_prdc(REAL, FAKE, 1)["recall"] == pytest.approx(1 / 3)  # 1 is on the edge of 2's


def test_partial_recall_by_hand():
    share = {
        name: partial_recall(real=REAL, fake=FAKE, subset=np.array(subset), k=1)
        for name, subset in {
            "first": [0], "last two": [1, 2], "mask": [True, True, False], "all": [0, 1, 2],
        }.items()
    }  # fmt: skip
    assert share == {"first": 0, "last two": 1, "mask": 0.5, "all": pytest.approx(2 / 3)}


def test_recall_is_the_mean_of_recalled():
    real, fake = features(1300, 10, seed=0), features(1200, 10, seed=1, at=0.5)
    per_sample = recalled(real=real, fake=fake)
    assert per_sample.dtype == bool and per_sample.shape == (1300,)
    assert manifold_metrics(real=real, fake=fake).recall == per_sample.mean()


# --- what they are for ---------------------------------------------------------------------------


def test_same_distribution_is_covered():
    result = manifold_metrics(real=features(1000, 4, seed=0), fake=features(1000, 4, seed=1))
    assert min(result.precision, result.recall, result.coverage) > 0.85
    assert result.density == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("spread", [0.0, 1e-4, 1e-2])
def test_collapsed_generator_has_no_recall(spread):
    real, fake = features(800, 64, seed=0), features(800, 64, seed=1, scale=spread)
    result = manifold_metrics(real=real, fake=fake)
    assert result.recall < 0.01 and result.precision == 1


def test_over_wide_generator_has_no_precision():
    real, fake = features(800, 64, seed=0), features(800, 64, seed=1, scale=4)
    result = manifold_metrics(real=real, fake=fake)
    assert result.precision < 0.01 and result.density < 0.01 and result.recall > 0.99


@few
@given(st.permutations(range(30)), st.permutations(range(25)))
def test_order_changes_nothing(real_order, fake_order):
    real, fake = features(30, 3, seed=0), features(25, 3, seed=1)
    shuffled = manifold_metrics(real=real[real_order], fake=fake[fake_order])
    assert shuffled == manifold_metrics(real=real, fake=fake)
    mask = recalled(real=real, fake=fake)
    assert (recalled(real=real[real_order], fake=fake[fake_order]) == mask[real_order]).all()


@pytest.mark.parametrize("chunk", [5, 64, 1000])
def test_tile_size_changes_nothing(monkeypatch, chunk):
    real, fake = features(90, 5, seed=0), features(70, 5, seed=1)
    expected = brute_force(real=real, fake=fake, k=3)
    monkeypatch.setattr(manifold, "CHUNK", chunk)
    assert manifold_metrics(real=real, fake=fake) == pytest.approx(expected, rel=1e-12)


def test_swapping_the_sets_swaps_precision_and_recall():
    real, fake = features(200, 6, seed=0), features(300, 6, seed=1, scale=0.8)
    there, back = manifold_metrics(real=real, fake=fake), manifold_metrics(real=fake, fake=real)
    assert (there.precision, there.recall) == (back.recall, back.precision)


def test_features_are_not_changed():
    real, fake = features(50, 4, seed=0), features(50, 4, seed=1)
    real.flags.writeable = fake.flags.writeable = False  # as those of a file that is only read
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manifold_metrics(real=real, fake=fake)


# --- bad input -----------------------------------------------------------------------------------


def test_refuses_fewer_samples_than_k():
    enough, few_samples = features(9, 2, seed=0), features(3, 2, seed=1)
    with pytest.raises(UserError, match="3 samples are too few for k = 3"):
        manifold_metrics(real=enough, fake=few_samples)
    with pytest.raises(UserError, match="3 samples are too few for k = 3"):
        manifold_metrics(real=few_samples, fake=enough)
    assert recalled(real=few_samples, fake=enough).shape == (3,)  # reals need no balls here
    with pytest.raises(UserError, match="k = 0"):
        recalled(real=enough, fake=enough, k=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_refuses_what_is_no_number(bad):
    good, broken = features(1500, 2, seed=0), features(1500, 2, seed=1)
    broken[1234, 1] = bad
    with pytest.raises(UserError, match=r"fake features hold a NaN .* at sample 1234"):
        manifold_metrics(real=good, fake=broken)
    with pytest.raises(UserError, match="real features hold a NaN"):
        recalled(real=broken, fake=good)


def test_refuses_an_empty_group():
    real, fake = features(9, 2, seed=0), features(9, 2, seed=1)
    for nobody in (np.zeros(9, dtype=bool), np.zeros(0, dtype=np.int64)):
        with pytest.raises(UserError, match="the subset is empty"):
            partial_recall(real=real, fake=fake, subset=nobody)


def test_refuses_features_of_different_kinds():
    with pytest.raises(UserError, match="2 dimensions, fake ones 3"):
        manifold_metrics(real=features(9, 2, seed=0), fake=features(9, 3, seed=0))
    with pytest.raises(UserError, match=r"shape \[9, 2, 2\]: give floats"):
        manifold_metrics(real=np.zeros((9, 2, 2)), fake=np.zeros((9, 2)))
    with pytest.raises(UserError, match="real features are uint8"):
        manifold_metrics(real=np.zeros((9, 2), dtype=np.uint8), fake=np.zeros((9, 2)))
