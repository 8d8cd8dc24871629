import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.metrics import bootstrap_interval


def test_width_is_that_of_the_normal_interval():
    values = np.random.default_rng(0).standard_normal(400)
    low, high = bootstrap_interval(values)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)


@pytest.mark.slow
def test_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(200):
        low, high = bootstrap_interval(rng.random(50), n=200, seed=seed, level=0.8)
        hits += low <= 0.5 <= high
    assert 0.7 < hits / 200 < 0.88


def test_any_statistic_and_booleans():
    values = np.arange(100) < 30
    low, high = bootstrap_interval(values)
    assert 0.18 < low < 0.3 < high < 0.42
    assert bootstrap_interval(np.array([5.0, 5, 5]), np.median) == (5, 5)


@settings(max_examples=15)
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.integers(0, 9))
def test_lies_within_the_values_widens_with_the_level_and_repeats(values, seed):
    narrow = bootstrap_interval(values, n=50, seed=seed, level=0.5)
    wide = bootstrap_interval(values, n=50, seed=seed, level=0.9)
    rounding = 1e-9
    assert min(values) - rounding <= wide.low <= narrow.low
    assert narrow.high <= wide.high <= max(values) + rounding
    assert wide == bootstrap_interval(values, n=50, seed=seed, level=0.9)


def test_refuses():
    with pytest.raises(UserError, match=r"shape \[0\]"):
        bootstrap_interval([])
    with pytest.raises(UserError, match=r"shape \[2, 2\]"):
        bootstrap_interval(np.zeros((2, 2)))
    with pytest.raises(UserError, match="a NaN"):
        bootstrap_interval([1, np.nan])
    with pytest.raises(UserError, match=r"level 1\.5"):
        bootstrap_interval([1], level=1.5)
