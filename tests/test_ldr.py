import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from diagan.errors import UserError
from diagan.ldr import (
    auc,
    auto_k,
    centre,
    clip_scores,
    discrepancy_score,
    free_moments,
    merge_batch,
    moments,
    sampling_weights,
    weight_warnings,
)

logits = st.floats(-50, 50, width=32)
score_lists = st.lists(st.floats(-5, 500), min_size=1, max_size=30)
few = settings(max_examples=50)

# Four samples, worked by hand, k = 3:
#   LDRM    2      -1      0.5     0
#   LDRV    0.25    0      4       0.01
#   sqrt    0.5     0      2       0.1
#   score   3.5    -1      6.5     0.3
LDRM = np.array([2.0, -1.0, 0.5, 0.0])
LDRV = np.array([0.25, 0.0, 4.0, 0.01])
SCORE = [3.5, -1.0, 6.5, 0.3]


# --- centring and moments ------------------------------------------------------------------------


def test_centre_by_hand():
    record = np.array([1, 2, 6], dtype=np.float32)  # mean 3, median 2
    assert centre(record, "none").tolist() == [1, 2, 6]
    assert centre(record, "mean").tolist() == [-2, -1, 3]
    assert centre(record, "median").tolist() == [-1, 0, 4]
    assert centre(record, "none").dtype == np.float64
    with pytest.raises(UserError, match="centre 'mode'"):
        centre(record, "mode")


def test_centre_does_not_change_the_record():
    record = np.array([1.0, 2.0, 6.0])
    centre(record, "none")[:] = 0
    centre(record, "mean")
    assert record.tolist() == [1, 2, 6]


def test_moments_by_hand():
    # sample 0: 1, 2, 6 has mean 3 and squares 4 + 1 + 9 = 14, over n - 1 = 2; sample 1 stands still
    result = moments([[1, 4], [2, 4], [6, 4]])
    assert result.count == 3
    assert result.ldrm.tolist() == [3, 4]
    assert result.ldrv.tolist() == [7, 0]


@few
@given(hnp.arrays(np.float32, st.tuples(st.integers(2, 12), st.integers(1, 8)), elements=logits))
def test_moments_equal_numpy(records):
    result = moments(iter(records))
    exact = records.astype(np.float64)
    np.testing.assert_allclose(result.ldrm, exact.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.ldrv, exact.var(axis=0, ddof=1), rtol=1e-9, atol=1e-12)


def test_moments_are_stable_far_from_zero():
    # E[x^2] - E[x]^2 would lose all digits here
    offset = 1e8
    assert moments([[offset + 1], [offset + 2], [offset + 6]]).ldrv.tolist() == [7]


def test_moments_refuse():
    with pytest.raises(UserError, match="0 records"):
        moments([])
    with pytest.raises(UserError, match="1 records"):
        moments([np.zeros(3)])
    with pytest.raises(UserError, match=r"record 1 \(counted from 0\) holds 2 values"):
        moments([np.zeros(3), np.array([np.nan, 0, np.inf]), np.zeros(3)])
    with pytest.raises(UserError, match=r"record 2 .* has shape \(4,\)"):
        moments([np.zeros(3), np.zeros(3), np.zeros(4)])


# --- moments of the training logits --------------------------------------------------------------


@few
@given(
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 4), logits), min_size=1, max_size=12), max_size=8
    )
)
def test_merged_batches_equal_the_sequence(batches):
    n = 5
    count, mean, m2 = np.zeros(n, np.int32), np.zeros(n, np.float32), np.zeros(n, np.float32)
    seen: list[list[float]] = [[] for _ in range(n)]
    for batch in batches:
        indices, values = np.array([i for i, _ in batch]), np.array([v for _, v in batch])
        merge_batch(count, mean, m2, indices, values.astype(np.float32))
        for index, value in batch:
            seen[index].append(value)
    assert (count.dtype, mean.dtype, m2.dtype) == (np.int32, np.float32, np.float32)
    ldrm, ldrv = free_moments(count, mean, m2)
    for index, values in enumerate(seen):
        assert count[index] == len(values)
        if values:
            assert ldrm[index] == pytest.approx(np.mean(values), rel=1e-4, abs=1e-4)
        else:
            assert np.isnan(ldrm[index])
        if len(values) >= 4:
            assert ldrv[index] == pytest.approx(np.var(values, ddof=1), rel=1e-3, abs=1e-3)
        else:
            assert np.isnan(ldrv[index])


def test_merge_batch_by_hand():
    # index 1 holds 1, 3 (mean 2, m2 2); the batch brings 5 and 7 (mean 6, m2 2) and a first 9 for 0
    # merged: mean 4, m2 = 2 + 2 + 4^2 * 2 * 2 / 4 = 20, the squares of -3, -1, 1, 3; 20 / 3
    count = np.array([0, 2], np.int32)
    mean = np.array([0, 2], np.float32)
    m2 = np.array([0, 2], np.float32)
    merge_batch(count, mean, m2, np.array([1, 0, 1]), np.array([5, 9, 7], np.float32))
    assert (count.tolist(), mean.tolist(), m2.tolist()) == ([1, 4], [9, 4], [0, 20])
    ldrm, ldrv = free_moments(count, mean, m2)
    assert ldrm.tolist() == [9, 4]
    assert np.isnan(ldrv[0])
    assert ldrv[1] == pytest.approx(20 / 3)


def test_merge_batch_refuses_a_diverged_discriminator():
    count, mean, m2 = np.zeros(2, np.int32), np.zeros(2, np.float32), np.zeros(2, np.float32)
    with pytest.raises(UserError, match="diverged"):
        merge_batch(count, mean, m2, np.array([0]), np.array([np.nan], np.float32))


# --- score, clip, weights ------------------------------------------------------------------------


def test_score_by_hand():
    assert discrepancy_score(LDRM, LDRV, k=3).tolist() == pytest.approx(SCORE)


@few
@given(hnp.arrays(np.float64, (2, 6), elements=st.floats(0, 100)), st.floats(0, 9), st.floats(0, 9))
def test_score_grows_with_k(values, k, more):
    ldrm, ldrv = values[0] - 50, values[1]
    low, high = discrepancy_score(ldrm, ldrv, k), discrepancy_score(ldrm, ldrv, k + more)
    assert (high >= low).all()
    assert np.array_equal(discrepancy_score(ldrm, ldrv, 0), ldrm)


def test_auto_k_balances_the_spreads():
    # sd(LDRM) = 1 (of -1, 1), sd(sqrt(LDRV)) = 0.5 (of 1, 2)
    assert auto_k([-1, 1], [1, 4]) == pytest.approx(2)
    assert auto_k([-1, 1, 7], [1, 4, np.nan]) == pytest.approx(2)


@few
@given(st.integers(1, 50), st.floats(0, 10))
def test_auto_k_is_zero_without_spread(n, ldrv):
    # equal numbers can have an sd of 1e-17, by which one must not divide
    assert auto_k(np.arange(n), np.full(n, ldrv)) == 0.0


def test_clip_and_weights_by_hand_cap():
    # floored   3.5   0.01  6.5   0.3   -> cap 50 x 0.01 = 0.5 -> 0.5  0.01  0.5  0.3, sum 1.31
    clipped = clip_scores(SCORE)
    assert clipped.tolist() == pytest.approx([0.5, 0.01, 0.5, 0.3])
    expected = [0.5 / 1.31, 0.01 / 1.31, 0.5 / 1.31, 0.3 / 1.31]
    assert sampling_weights(clipped).tolist() == pytest.approx(expected)


def test_clip_and_weights_by_hand_floor():
    # floored   3.5   0.01  6.5   0.3   -> floor 6.5 / 50 = 0.13 -> 3.5  0.13  6.5  0.3, sum 10.43
    clipped = clip_scores(SCORE, rule="floor")
    assert clipped.tolist() == pytest.approx([3.5, 0.13, 6.5, 0.3])
    expected = [3.5 / 10.43, 0.13 / 10.43, 6.5 / 10.43, 0.3 / 10.43]
    assert sampling_weights(clipped).tolist() == pytest.approx(expected)


def test_exponent_comes_between_floor_and_ratio():
    # squares of the floored   12.25   0.0001   42.25   0.09
    # cap 50 x 0.0001 = 0.005; floor 42.25 / 50 = 0.845
    assert clip_scores(SCORE, exponent=2).tolist() == pytest.approx([0.005, 0.0001, 0.005, 0.005])
    by_floor = clip_scores(SCORE, exponent=2, rule="floor")
    assert by_floor.tolist() == pytest.approx([12.25, 0.845, 42.25, 0.845])


@few
@given(score_lists, st.floats(-10, 0.01))
def test_a_score_at_the_floor_makes_the_cap_one_half(scores, low):
    # the paper's clip: any score <= 0.01 and the cap is exactly 50 x 0.01 = 0.5 (FACTS 0.7)
    clipped = clip_scores([*scores, low, 1e6])
    assert clipped.max() == 0.5
    assert clipped.min() == 0.01


@few
@given(
    scores=score_lists,
    ratio=st.floats(1, 1000),
    rule=st.sampled_from(["cap", "floor"]),
    exponent=st.floats(0.5, 3),
)
def test_clip_bounds_the_ratio_and_keeps_the_order(scores, ratio, rule, exponent):
    clipped = clip_scores(scores, ratio=ratio, rule=rule, exponent=exponent)
    assert clipped.min() > 0
    assert clipped.max() <= ratio * clipped.min() * (1 + 1e-12)
    assert (np.diff(clipped[np.argsort(scores)]) >= 0).all()
    weights = sampling_weights(clipped)
    assert weights.sum() == pytest.approx(1)
    assert weights.max() <= 1


def test_scores_within_the_limits_are_left_alone():
    scores = [0.2, 1.0, 5.0]  # ratio 25
    assert clip_scores(scores).tolist() == clip_scores(scores, rule="floor").tolist() == scores


def test_clip_and_weights_refuse():
    with pytest.raises(UserError, match="1 of 2 scores"):
        clip_scores([1.0, np.nan])
    with pytest.raises(UserError, match="no scores"):
        clip_scores([])
    with pytest.raises(UserError, match="clip rule 'top'"):
        clip_scores([1.0], rule="top")
    with pytest.raises(UserError, match="floor 0"):
        clip_scores([1.0], floor=0)
    with pytest.raises(UserError, match=r"ratio 0\.5"):
        clip_scores([1.0], ratio=0.5)
    for bad in ([0.0, 0.0], [1.0, np.inf], [np.nan, 1.0], [2.0, -1.0], []):
        with pytest.raises(UserError, match="no sampling weights"):
            sampling_weights(bad)


# --- warnings ------------------------------------------------------------------------------------


def test_warnings():
    def words(weights):
        return " ".join(weight_warnings(weights))

    spread = np.linspace(1, 5, 100)
    assert weight_warnings(spread) == []
    assert "nearly uniform" in words(np.ones(100))
    assert "weight:" not in words(np.ones(100))  # no limit to sit at
    # the paper's clip after one low score of 100: all others saturate at the cap
    saturated = words(clip_scores([-1.0, *range(1, 100)]))
    assert "99% of the samples have the maximum weight" in saturated
    assert "nearly uniform" in saturated
    # 60 of 100 at the minimum, the rest 10 times as heavy
    low = words(np.where(np.arange(100) < 60, 1.0, 10.0))
    assert "60% of the samples share the lowest weight; only the other 40%" in low
    assert "nearly uniform" not in low


def test_the_distance_from_uniform_is_total_variation():
    # two samples at 0.5 +- d are d away from uniform, which warns under 0.03
    assert weight_warnings([0.471, 0.529]) != []
    assert weight_warnings([0.469, 0.531]) == []


# --- AUC -----------------------------------------------------------------------------------------


@few
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=25))
def test_auc_equals_the_count_of_pairs(samples):
    scores = np.array([score for score, _ in samples], dtype=float)
    positive = np.array([is_positive for _, is_positive in samples])
    if positive.all() or not positive.any():
        with pytest.raises(UserError, match="AUC needs"):
            auc(scores, positive)
        return
    pairs = scores[positive][:, None] - scores[~positive][None, :]
    expected = ((pairs > 0) + 0.5 * (pairs == 0)).mean()
    assert auc(scores, positive) == pytest.approx(expected)
    assert auc(-scores, positive) == pytest.approx(1 - expected)


def test_auc_by_hand():
    # positives 3 and 1, negatives 2 and 1: 3 > 2, 3 > 1, 1 < 2, 1 = 1 -> 2.5 of 4
    assert auc([3, 2, 1, 1], [True, False, True, False]) == 0.625
    assert auc([1, np.inf], [False, True]) == 1.0
    with pytest.raises(UserError, match="NaN"):
        auc([1, np.nan], [True, False])
