import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from diagan.errors import UserError
from diagan.metrics import (
    RunningStatistics,
    Statistics,
    features_to_statistics,
    fid,
    statistics_to_fid,
)

few = settings(max_examples=20)


def samples(n, f, seed, power=0.0, at=0.0):
    """Features whose f-th standard deviation is f^-power, turned at random."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(np.random.default_rng(99).standard_normal((f, f)))[0]
    return (rng.standard_normal((n, f)) * np.arange(1.0, f + 1) ** -power) @ turn + at


def gaussian(mean, cov, n=10**6):
    return Statistics(n, np.asarray(mean, dtype=float), np.asarray(cov, dtype=float))


def fid_by_sqrtm(*, real, fake):
    root = sqrtm(real.cov @ fake.cov).real
    shift = real.mean - fake.mean
    return shift @ shift + np.trace(real.cov + fake.cov - 2 * root)


def fid_by_mpmath(*, real, fake):
    """With 60 digits, the eigenvalues of the product itself."""
    with mpmath.workdps(60):
        ours, theirs = (mpmath.matrix(s.cov.tolist()) for s in (real, fake))
        values = mpmath.eig(ours * theirs, left=False, right=False)
        root = sum(mpmath.sqrt(max(0, mpmath.re(value))) for value in values)
        traces = sum(ours[i, i] + theirs[i, i] for i in range(len(real.mean)))
        shift = sum(mpmath.mpf(d) ** 2 for d in (real.mean - fake.mean).tolist())
        return float(shift + traces - 2 * root)


# --- the distance --------------------------------------------------------------------------------


def test_closed_form_of_shifted_and_stretched_gaussians():
    # equal covariances: the squared shift; commuting ones: sum of (s_r - s_f)^2
    cov = np.array([[2, 0.5], [0.5, 1]])
    assert statistics_to_fid(
        real=gaussian([0, 0], cov), fake=gaussian([3, 4], cov)
    ) == pytest.approx(25, rel=1e-12)
    assert statistics_to_fid(
        real=gaussian([0, 0], np.diag([1, 9])), fake=gaussian([0, 1], np.diag([4, 25]))
    ) == pytest.approx(1 + 4 + 1, rel=1e-12)


def test_samples_of_shifted_gaussians_come_near_the_closed_form():
    real, fake = samples(20_000, 8, seed=0), samples(20_000, 8, seed=1, at=0.5)
    assert fid(real=real, fake=fake) == pytest.approx(8 * 0.25, abs=0.1)


@few
@given(st.integers(1, 24), st.integers(0, 10**6))
def test_agrees_with_sqrtm_where_it_is_well_conditioned(f, seed):
    real = features_to_statistics([samples(f * 8 + 20, f, seed)])
    fake = features_to_statistics([samples(f * 8 + 20, f, seed + 1, at=0.1)])
    expected = fid_by_sqrtm(real=real, fake=fake)
    assert statistics_to_fid(real=real, fake=fake) == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("f", "power"), [(8, 6.0), (16, 4.0), (32, 3.0)])
def test_agrees_with_mpmath_where_it_is_ill_conditioned(f, power):
    real = features_to_statistics([samples(4 * f, f, 0, power)])
    fake = features_to_statistics([samples(4 * f, f, 1, power)])
    assert np.linalg.cond(real.cov) > 1e8
    expected = fid_by_mpmath(real=real, fake=fake)
    assert statistics_to_fid(real=real, fake=fake) == pytest.approx(expected, rel=1e-7)


def test_agrees_with_mpmath_where_one_is_singular():
    real = features_to_statistics([samples(10, 16, 0)])  # rank 9
    fake = features_to_statistics([samples(200, 16, 1)])
    expected = fid_by_mpmath(real=real, fake=fake)
    with pytest.warns(UserWarning, match="10 samples in 16 dimensions"):
        assert statistics_to_fid(real=real, fake=fake) == pytest.approx(expected, rel=1e-6)
        assert statistics_to_fid(real=fake, fake=real) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("n", "f", "power"), [(3000, 256, 0), (3000, 256, 2), (50, 256, 0.5)])
@pytest.mark.filterwarnings("ignore:FID of 50 samples")
def test_a_set_with_itself_is_at_zero(n, f, power):
    features = samples(n, f, 0, power, at=5).astype(np.float32)
    assert 0 <= fid(real=features, fake=features) < 1e-6
    assert 0 <= fid(real=features, fake=features[::-1]) < 1e-6


def test_no_spread_at_all():
    point = np.ones((5, 2))
    assert fid(real=point, fake=point) == 0
    assert fid(real=point, fake=point + np.array([3, 4])) == pytest.approx(25)


@few
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_symmetric_and_never_negative(f, seed):
    rng = np.random.default_rng(seed)
    real, fake = rng.standard_normal((2, f + 9, f)).astype(np.float32)
    there, back = fid(real=real, fake=fake), fid(real=fake, fake=real)
    assert there >= 0
    assert there == pytest.approx(back, rel=1e-9, abs=1e-12)


def test_warns_only_when_samples_are_too_few():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fid(real=samples(9, 8, 0), fake=samples(9, 8, 1))
    with pytest.warns(UserWarning, match="FID of 8 samples in 8 dimensions"):
        fid(real=samples(9, 8, 0), fake=samples(8, 8, 1))


# --- the statistics ------------------------------------------------------------------------------


@few
@given(st.lists(st.integers(0, 40), max_size=6), st.integers(1, 5), st.randoms())
def test_batch_size_and_order_change_nothing(cuts, f, random):
    features = samples(40, f, 0, at=1e4)
    batches = np.split(features, sorted(cuts))
    random.shuffle(batches)
    result = features_to_statistics(batches)
    assert result.n == 40
    np.testing.assert_allclose(result.mean, features.mean(axis=0), rtol=1e-13)
    cov = np.cov(features, rowvar=False).reshape(f, f)
    np.testing.assert_allclose(result.cov, cov, rtol=1e-8, atol=1e-10)


def test_big_means_do_no_harm():
    # E[x^2] - E[x]^2 would lose all digits
    features = np.array([[1.0], [2], [6]]) + 1e8
    result = features_to_statistics([features[:1], features[1:]])
    assert result.cov[0, 0] == pytest.approx(7, rel=1e-12)


def test_float32_features_are_summed_in_float64():
    features = samples(5000, 3, 0, at=300).astype(np.float32)
    result = features_to_statistics(np.array_split(features, 50))
    exact = np.cov(features.astype(np.float64), rowvar=False)
    np.testing.assert_allclose(result.cov, exact, rtol=1e-11, atol=1e-13)


def test_merged_is_as_one():
    features = samples(60, 4, 0)
    one, two, both = RunningStatistics(), RunningStatistics(), RunningStatistics()
    one.add(features[:13])
    two.add(features[13:])
    both.add(features)
    one.merge(RunningStatistics())
    one.merge(two)
    assert one.n == both.n == 60 and two.n == 47
    np.testing.assert_allclose(one.statistics().cov, both.statistics().cov, rtol=1e-10, atol=1e-13)


def test_statistics_stay_when_more_is_added():
    running = RunningStatistics()
    running.add(samples(9, 2, 0))
    before = running.statistics()
    mean, cov = before.mean.copy(), before.cov.copy()
    running.add(samples(9, 2, 1))
    assert (before.mean == mean).all() and (before.cov == cov).all()


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_what_is_no_number(bad):
    good, broken = samples(9, 2, 0), samples(9, 2, 0)
    broken[7, 1] = bad
    with pytest.raises(UserError, match=r"fake features hold a NaN .* at sample 7"):
        fid(real=good, fake=broken)
    with pytest.raises(UserError, match="features hold a NaN"):
        RunningStatistics().add(broken)


def test_refuses_too_few_samples():
    with pytest.raises(UserError, match="1 samples: give at least 2"):
        fid(real=samples(1, 2, 0), fake=samples(9, 2, 0))
    with pytest.raises(UserError, match="0 samples: a covariance"):
        features_to_statistics([])


def test_refuses_features_of_two_extractors():
    with pytest.raises(UserError, match="2 dimensions, fake ones 3"):
        statistics_to_fid(real=gaussian([0, 0], np.eye(2)), fake=gaussian([0, 0, 0], np.eye(3)))
    with pytest.raises(UserError, match="a batch has 3 dimensions, those before it 2"):
        features_to_statistics([samples(4, 2, 0), samples(4, 3, 0)])
