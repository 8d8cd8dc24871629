import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.groups import CHUNK, GroupProbe


def two_colours(n, n_rare, seed=0):
    """Noisy images: channel 0 bright (group 0), or channel 1 (the rare group 1)."""
    rng = np.random.default_rng(seed)
    groups = (np.arange(n) < n_rare).astype(np.int64)
    values = rng.integers(0, 80, (n, 3, 4, 4), dtype=np.uint8)
    values[np.arange(n), groups] += 120
    order = rng.permutation(n)
    return values[order], groups[order]


def test_colours_are_told_apart():
    values, groups = two_colours(3000, 60)
    probe = GroupProbe.fit(values, groups, 2, seed=0)
    assert probe.accuracy == probe.balanced_accuracy == 1
    new, new_groups = two_colours(CHUNK + 100, 300, seed=1)  # more than one chunk
    predicted = probe.predict(new)
    assert predicted.dtype == np.int64
    assert np.array_equal(predicted, new_groups)
    assert probe.predict(new[:0]).shape == (0,)


def test_vote_by_hand():
    # On a line: group 0 at 0, 1, 2 and group 1 at 3, 10, 11, group 2 at 20.
    points = np.array([[0], [1], [2], [3], [10], [11], [20]], dtype=np.float32)
    probe = GroupProbe.fit(points, np.array([0, 0, 0, 1, 1, 1, 2]), 3, seed=0)
    queries = np.array([[3.2], [10.0], [16.0]], dtype=np.float32)
    # 3.2: nearest 3 (group 1), 2, 1 (group 0): the majority is 0
    # 10: itself, 11 (group 1), 3 (group 1): 1
    # 16: 20 (4 away), 11 (5), 10 (6): 1, by 2 to 1
    assert probe.predict(queries).tolist() == [0, 1, 1]


def test_ties_go_to_the_nearest():
    points = np.array([[0], [2], [5], [50], [60]], dtype=np.float32)
    probe = GroupProbe.fit(points, np.arange(5), 5, seed=0)  # all in groups of their own
    queries = np.array([[0.9], [1.1], [4.0], [49.0]], dtype=np.float32)
    assert probe.predict(queries).tolist() == [0, 1, 2, 3]
    assert probe.accuracy == 0  # nobody has a neighbour of the own group


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 5))
def test_prediction_equals_brute_force(seed, k):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(40, 2)).astype(np.float32) + 100  # far from 0: digits are not lost
    groups = rng.integers(0, 4, 40)
    queries = rng.normal(size=(20, 2)).astype(np.float32) + 100
    expected = []
    for query in queries:
        nearest = groups[np.argsort(((points - query) ** 2).sum(axis=1))[:k]]
        counts = np.bincount(nearest)
        expected.append(next(g for g in nearest if counts[g] == counts.max()))
    assert GroupProbe.fit(points, groups, 4, seed=0, k=k).predict(queries).tolist() == expected


def test_cross_validation_does_not_see_the_sample_itself():
    # random groups: with itself among the neighbours a sample at k = 1 would always be right
    rng = np.random.default_rng(0)
    points, groups = rng.normal(size=(2000, 2)).astype(np.float32), rng.integers(0, 2, 2000)
    probe = GroupProbe.fit(points, groups, 2, seed=0, k=1)
    assert probe.accuracy == pytest.approx(0.5, abs=0.05)


@pytest.mark.slow
def test_reference_set_is_proportional_but_for_the_rare():
    groups = np.repeat([0, 1, 2], [9000, 950, 50])
    values = np.zeros((10_000, 2), dtype=np.float32)
    probe = GroupProbe.fit(values, groups, 3, seed=0, max_reference=1000)
    # 10 %: 900, 95 (raised to 100), 5 (raised to the 50 that there are)
    assert np.bincount(probe.reference_groups).tolist() == [900, 100, 50]
    # all of it where the data is small, and at most max_reference // n_groups forced for each
    assert len(GroupProbe.fit(values, groups, 3, seed=0, max_reference=20_000).reference) == 10_000
    few = GroupProbe.fit(values, groups, 3, seed=0, max_reference=30)
    assert np.bincount(few.reference_groups).tolist() == [27, 10, 10]


def test_accuracy_is_at_the_shares_of_the_data():
    # Group 1 (5 % of the data, 10 % of the reference) lies hidden in group 0:
    # accuracy = 0.95 recall_0 + 0.05 recall_1, balanced = their mean. Two equations, two recalls.
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], [19_000, 1000])
    points = rng.normal(size=(20_000, 2)).astype(np.float32)
    probe = GroupProbe.fit(points, groups, 2, seed=0, max_reference=1000)
    assert np.bincount(probe.reference_groups).tolist() == [950, 100]
    recall_0 = (probe.accuracy - 0.1 * probe.balanced_accuracy) / 0.9
    recall_1 = 2 * probe.balanced_accuracy - recall_0
    # the counts behind them are whole numbers
    assert recall_0 * 950 == pytest.approx(round(recall_0 * 950), abs=1e-6)
    assert recall_1 * 100 == pytest.approx(round(recall_1 * 100), abs=1e-6)
    assert recall_0 > 0.9 > 0.2 > recall_1


def test_groups_that_nobody_is_in_are_left_out():
    values, groups = two_colours(300, 100)
    probe = GroupProbe.fit(values, groups * 2, 4, seed=0)
    assert probe.balanced_accuracy == 1
    assert set(probe.predict(values).tolist()) == {0, 2}


def test_the_seed_chooses_the_reference():
    rng = np.random.default_rng(0)
    points, groups = rng.normal(size=(1000, 2)).astype(np.float32), np.arange(1000) % 2
    a, b, c = (GroupProbe.fit(points, groups, 2, seed=s, max_reference=200) for s in (0, 0, 1))
    assert a.reference.equal(b.reference)
    assert not a.reference.equal(c.reference)


def test_refusals():
    values, groups = two_colours(300, 100)
    probe = GroupProbe.fit(values, groups, 2, seed=0)
    with pytest.raises(UserError, match="fitted on uint8 images"):
        probe.predict(values.astype(np.float32))
    with pytest.raises(UserError, match="300 samples with 299 groups"):
        GroupProbe.fit(values, groups[1:], 2, seed=0)
    with pytest.raises(UserError, match="outside 0 to 0"):
        GroupProbe.fit(values, groups, 1, seed=0)
    with pytest.raises(UserError, match="3 samples are too few for 3"):
        GroupProbe.fit(values[:3], groups[:3], 2, seed=0)
