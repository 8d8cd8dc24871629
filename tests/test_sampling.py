import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from diagan import sampling
from diagan.errors import UserError
from diagan.sampling import BLOCK, SwitchedStream, UniformStream, WeightedSampler, WeightedStream

cuts = st.lists(st.integers(0, 40), min_size=1, max_size=8)


# --- uniform -------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(n=st.integers(1, 30), seed=st.integers(0, 99), start=st.integers(0, 90), sizes=cuts)
def test_uniform_take_does_not_depend_on_batching(n, seed, start, sizes):
    whole = UniformStream(n, seed).take(start, sum(sizes))
    stream, at, parts = UniformStream(n, seed), start, []
    for size in sizes:
        parts.append(stream.take(at, size))
        at += size
    assert np.array_equal(np.concatenate(parts), whole)
    assert whole.dtype == np.int64


@settings(max_examples=50)
@given(n=st.integers(1, 50), seed=st.integers(0, 99), epoch=st.integers(0, 1000))
def test_every_pass_is_a_permutation(n, seed, epoch):
    assert np.array_equal(np.sort(UniformStream(n, seed).take(epoch * n, n)), np.arange(n))


def test_passes_seeds_and_purposes_differ():
    n = 100
    first = UniformStream(n, 0).take(0, n)
    assert not np.array_equal(first, np.arange(n))
    assert not np.array_equal(first, UniformStream(n, 0).take(n, n))
    assert not np.array_equal(first, UniformStream(n, 1).take(0, n))
    assert not np.array_equal(first, UniformStream(n, 0, "critic").take(0, n))


def test_permutations_are_uniform():
    # all 6 orders of 3 samples in 1,200 passes, 200 expected of each
    orders = UniformStream(3, seed=1).take(0, 3 * 1200).reshape(-1, 3)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


def test_what_is_taken_is_a_copy():
    stream = UniformStream(10, 0)
    stream.take(0, 10)[:] = -1
    assert stream.take(0, 10).min() == 0


def test_nothing_to_draw_from():
    with pytest.raises(UserError, match="0 samples"):
        UniformStream(0, seed=0)


# --- weighted ------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(
    weights=st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(any),
    start=st.sampled_from([0, 7, BLOCK - 5, BLOCK, 3 * BLOCK - 50]),
    sizes=cuts,
)
def test_weighted_take_does_not_depend_on_batching(weights, start, sizes):
    whole = WeightedStream(weights, seed=4).take(start, sum(sizes))
    stream, at, parts = WeightedStream(weights, seed=4), start, []
    for size in sizes:
        parts.append(stream.take(at, size))
        at += size
    assert np.array_equal(np.concatenate(parts), whole)


def test_weighted_frequencies():
    weights = np.array([1.0, 0.0, 2.0, 0.5, 10.0, 0.0])
    counts = np.bincount(WeightedStream(weights, seed=2).take(BLOCK - 500, 100_000), minlength=6)
    assert counts[1] == counts[5] == 0
    drawn = weights > 0
    expected = 100_000 * weights[drawn] / weights.sum()
    assert stats.chisquare(counts[drawn], expected).pvalue > 1e-3
    # and the test can tell: the same counts against weights 4 % off
    expected = 100_000 * np.array([1, 2.08, 0.5, 10]) / 13.58
    assert stats.chisquare(counts[drawn], expected).pvalue < 1e-3


def test_weighted_draws_are_independent_of_their_neighbours():
    # a block is sorted on the way: successive pairs must show nothing of it
    draws = WeightedStream(np.ones(4), seed=3).take(0, 40_000).reshape(-1, 2)
    table = np.bincount(draws[:, 0] * 4 + draws[:, 1], minlength=16).reshape(4, 4)
    assert stats.chi2_contingency(table).pvalue > 1e-3


@settings(max_examples=20)
@given(st.lists(st.sampled_from([0.0, 1e-300, 1e-12, 1.0, 1e300]), min_size=1, max_size=30))
def test_zero_weights_are_never_drawn(weights):
    if not any(weights):
        weights.append(1.0)
    drawn = WeightedStream(weights, seed=0).take(0, 1000)
    assert (np.array(weights)[drawn] > 0).all()


def test_points_on_the_border_of_a_zero_weight(monkeypatch):
    # weights 0 1 0 1 0 cumulate to 0 1 1 2 2; the points 0, 1 and just under 2, and even 2 itself,
    # fall on borders: 0 must not give index 0, 1 not index 2, and 2 not index 4 or 5
    class Points:
        def random(self, n):
            return np.resize([0.0, 0.5, 1 - 2**-53, 1.0], n)

    monkeypatch.setattr(sampling, "numpy_generator", lambda *args, **kwargs: Points())
    assert WeightedStream([0, 1, 0, 1, 0], seed=0).take(0, 4).tolist() == [1, 3, 3, 3]


def test_huge_weights_do_not_overflow():
    drawn = WeightedStream([1e308, 1e308, 1e308], seed=0).take(0, 3000)
    assert np.bincount(drawn, minlength=3).min() > 800


@pytest.mark.slow
def test_more_weights_than_multinomial_can():
    n = 2**24 + 10
    weights = np.zeros(n, dtype=np.float32)
    weights[-1] = 1
    assert (WeightedStream(weights, seed=0).take(0, 10) == n - 1).all()


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([], "shape"),
        ([[1.0, 2.0]], "shape"),
        ([1.0, -1.0], "1 of 2 weights are negative"),
        ([1.0, float("nan"), float("inf")], "2 of 3 weights"),
        ([0.0, 0.0], "all 2 weights are zero"),
    ],
)
def test_bad_weights_are_refused(weights, words):
    with pytest.raises(UserError, match=words):
        WeightedStream(weights, seed=0)


@settings(max_examples=30)
@given(at=st.integers(0, 60), start=st.integers(0, 60), count=st.integers(0, 60))
def test_switched_stream_goes_over_at_its_position(at, start, count):
    first, then = UniformStream(7, seed=0), UniformStream(11, seed=1)
    whole = np.concatenate([first.take(0, at), then.take(at, 120)])
    taken = SwitchedStream(first, then, at=at).take(start, count)
    assert np.array_equal(taken, whole[start : start + count])


# --- sampler -------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25)
@given(world_size=st.integers(1, 5), num_samples=st.integers(5, 60), epoch=st.integers(0, 9))
def test_ranks_share_out_one_stream(world_size, num_samples, epoch):
    weights = torch.tensor([0.0, 1.0, 2.0, 3.0])
    parts = []
    for rank in range(world_size):
        sampler = WeightedSampler(weights, num_samples, seed=6, rank=rank, world_size=world_size)
        sampler.set_epoch(epoch)
        parts.append(list(sampler))
        assert len(parts[-1]) == len(sampler) == num_samples // world_size
    interleaved = np.array(parts).T.ravel()
    stream = WeightedStream(weights.numpy(), seed=6).take(epoch * num_samples, num_samples)
    assert np.array_equal(interleaved, stream[: len(interleaved)])


def test_chunks_of_a_long_pass_join():
    sampler = WeightedSampler(np.ones(50), 20_001, rank=1, world_size=2)
    expected = WeightedStream(np.ones(50), seed=0).take(0, 20_000)[1::2]
    assert list(sampler) == expected.tolist()
    assert all(type(index) is int for index in WeightedSampler(np.ones(5)))


def test_passes_follow_one_another_and_can_be_repeated():
    sampler = WeightedSampler(np.ones(100))
    first, second = list(sampler), list(sampler)
    assert first != second
    sampler.set_epoch(0)
    assert list(sampler) == first
    assert list(sampler) == second


def test_in_a_data_loader():
    data = torch.utils.data.TensorDataset(torch.arange(4))
    sampler = WeightedSampler([0.0, 0.0, 1.0, 1.0], num_samples=64)
    loader = torch.utils.data.DataLoader(data, batch_size=16, sampler=sampler)
    assert set(torch.cat([batch for (batch,) in loader]).tolist()) == {2, 3}


def test_rank_and_world_come_from_torch_distributed(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    implicit, explicit = (
        WeightedSampler(np.ones(9)),
        WeightedSampler(np.ones(9), rank=1, world_size=3),
    )
    assert list(implicit) == list(explicit)
    assert len(implicit) == 3


def test_bad_ranks_are_refused():
    with pytest.raises(UserError, match="rank 2 of 2"):
        WeightedSampler(np.ones(9), rank=2, world_size=2)
    with pytest.raises(UserError, match="too few for 4 ranks"):
        WeightedSampler(np.ones(3), rank=0, world_size=4)
