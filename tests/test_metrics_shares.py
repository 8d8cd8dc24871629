import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from diagan.metrics.shares import rogan_gladen, wilson

shares = st.floats(0, 1)


@settings(max_examples=50)
@given(shares, shares, shares)
def test_the_true_share_comes_back(true, sensitivity, specificity):
    assume(sensitivity + specificity > 1.01)
    counted = sensitivity * true + (1 - specificity) * (1 - true)
    found = rogan_gladen(counted, sensitivity=sensitivity, specificity=specificity)
    assert found == pytest.approx(true, abs=1e-9)


@settings(max_examples=50)
@given(shares, shares, shares)
def test_always_a_share_or_none(counted, sensitivity, specificity):
    found = rogan_gladen(counted, sensitivity=sensitivity, specificity=specificity)
    assert (found is None) == (sensitivity + specificity - 1 <= 0)
    assert found is None or 0 <= found <= 1


def test_by_hand():
    # 3 % counted, of which 2 % are mistakes: (0.03 - 0.02) / (0.9 - 0.02)
    assert rogan_gladen(0.03, sensitivity=0.9, specificity=0.98) == pytest.approx(0.01 / 0.88)
    assert rogan_gladen(0.01, sensitivity=0.9, specificity=0.98) == 0  # fewer than the mistakes
    assert rogan_gladen(0.95, sensitivity=0.9, specificity=0.98) == 1
    assert rogan_gladen(0.25, sensitivity=1, specificity=1) == 0.25
    assert rogan_gladen(0.5, sensitivity=0.5, specificity=0.5) is None


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    [
        # worked with (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), z = 1.96
        (0.5, 100, 0.403830, 0.596170),
        (0.1, 50, 0.043475, 0.213605),
        (0.0, 100, 0.0, 0.036995),
        (1.0, 100, 0.963005, 1.0),
    ],
)
def test_wilson_by_hand(share, n, low, high):
    assert wilson(share, n) == pytest.approx((low, high), abs=1e-6)


@settings(max_examples=50)
@given(st.integers(1, 10_000), st.floats(0, 1))
def test_an_interval_holds_its_share(n, part):
    share = round(part * n) / n
    low, high = wilson(share, n)
    assert 0 <= low <= share + 1e-12 and share - 1e-12 <= high <= 1
    assert wilson(share, 4 * n)[1] - wilson(share, 4 * n)[0] < high - low
