import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr, softmax

from diagan.errors import UserError
from diagan.metrics import RunningInceptionScore, inception_score


def logits(n, k, seed, scale=3.0):
    values = scale * np.random.default_rng(seed).standard_normal((n, k))
    return values.astype(np.float32)


def definition(values, n_splits):
    """exp of the mean KL divergence to the part's own mean, part by part as the reference cuts."""
    shares = softmax(values.astype(np.float64), axis=1)
    n = len(shares)
    parts = [shares[i * n // n_splits : (i + 1) * n // n_splits] for i in range(n_splits)]
    scores = [np.exp(rel_entr(part, part.mean(axis=0)).sum(axis=1).mean()) for part in parts]
    return np.mean(scores), np.std(scores)


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(0, 60), st.lists(st.integers(0, 60), max_size=5))
def test_equal_to_the_definition_in_batches_of_any_size(n_splits, more, cuts):
    values = logits(n_splits + more, 6, seed=more)
    batches = iter(np.split(values, sorted(cuts)))
    result = inception_score(batches, n=len(values), n_splits=n_splits)
    assert result == pytest.approx(definition(values, n_splits), rel=1e-10, abs=1e-10)
    assert inception_score(values, n_splits=n_splits) == pytest.approx(result, rel=1e-10, abs=1e-10)


def test_sure_and_varied_gives_the_number_of_classes():
    values = np.tile(1000 * np.eye(7, dtype=np.float32), (20, 1))  # 140 = 10 splits of 14
    assert inception_score(values) == pytest.approx((7, 0))


def test_sure_of_one_class_or_of_none_gives_one():
    assert inception_score(np.tile([[900.0, 0, -900]], (30, 1))) == pytest.approx((1, 0))
    assert inception_score(np.zeros((30, 3))) == pytest.approx((1, 0))


def test_a_constant_on_the_logits_changes_nothing():
    values = logits(50, 5, seed=0).astype(np.float64)
    assert inception_score(values + 1e4) == pytest.approx(inception_score(values), rel=1e-9)


def test_splits_are_contiguous():
    # classes in order: each of 2 splits sees one class only, so variety within it is none
    values = 1000 * np.repeat(np.eye(2), 10, axis=0)
    assert inception_score(values, n_splits=2).mean == pytest.approx(1)
    assert inception_score(values[::-1], n_splits=1).mean == pytest.approx(2)


def test_refuses():
    values = logits(20, 3, seed=0)
    with pytest.raises(UserError, match="give n"):
        inception_score([values])
    with pytest.raises(UserError, match="20 logits came where 25 were announced"):
        inception_score([values], n=25)
    with pytest.raises(UserError, match="20 logits came where 15 were announced"):
        inception_score([values], n=15)
    with pytest.raises(UserError, match="9 samples in 10 splits"):
        inception_score(values[:9])
    running = RunningInceptionScore(n=40)
    running.add(values)
    with pytest.raises(UserError, match="a batch has 2 classes, those before it 3"):
        running.add(values[:, :2])
    values[4, 1] = np.nan
    with pytest.raises(UserError, match=r"logits hold a NaN .* at sample 4"):
        inception_score(values)
