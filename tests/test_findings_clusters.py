"""Blobs whose number is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.findings.clusters import (
    MIN_CLUSTER,
    cluster,
    k_means,
    representatives,
    silhouette,
    squared_distances,
)


def blobs(sizes: list[int], apart: float = 10.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Spheres of spread 1 on the axes of a space of as many dimensions; and which is whose."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(truth), len(sizes))) + apart * np.eye(len(sizes))[truth], truth


@pytest.mark.parametrize("sizes", [[200, 50], [90, 60, 30], [40, 35, 30, 25, 20]])
def test_blobs_are_found_the_largest_first(sizes):
    x, truth = blobs(sizes)
    found = cluster(x)
    assert np.array_equal(found.member, truth)
    assert found.contrast > 0.5
    assert np.allclose(found.centres, [x[truth == i].mean(axis=0) for i in range(len(sizes))])


def test_others_join_the_nearest_centre():
    x, truth = blobs([4_000, 2_000])  # more than are looked at
    assert np.array_equal(cluster(x).member, truth)


def test_what_does_not_part_is_one_cluster():
    formless = np.random.default_rng(0).normal(size=(300, 100))
    for x in (blobs([9, 9])[0], np.zeros((100, 3)), np.zeros((1, 4)), formless):
        found = cluster(x)
        assert set(found.member) == {0} and found.contrast == 0 and len(found.centres) == 1


def test_no_cluster_is_smaller_than_a_kind_can_be():
    x, _ = blobs([100, 3])  # three strays are no kind of their own
    assert np.bincount(cluster(x).member).min() >= MIN_CLUSTER


@settings(max_examples=15)
@given(st.integers(0, 10), st.floats(0.1, 10), st.floats(-50, 50))
def test_neither_scale_nor_place_matters(seed, scale, shift):
    x, _ = blobs([30, 20], apart=4, seed=seed)
    assert np.array_equal(cluster(x).member, cluster(scale * x + shift).member)


def test_the_same_seed_gives_the_same():
    x = np.random.default_rng(0).normal(size=(200, 5))
    assert np.array_equal(cluster(x, seed=3).member, cluster(x, seed=3).member)


def test_k_means_ends_where_every_sample_is_with_its_nearest_centre():
    x = np.random.default_rng(0).normal(size=(300, 4))
    member, centres = k_means(x, 5)
    assert np.array_equal(member, squared_distances(x, centres).argmin(axis=1))
    assert np.allclose(centres, [x[member == i].mean(axis=0) for i in range(5)])


def test_silhouette_by_hand():
    x = np.array([[0.0], [1.0], [10.0], [20.0]])
    found = silhouette(x, np.array([0, 0, 1, 2]))
    assert found == pytest.approx([(10 - 1) / 10, (9 - 1) / 9, 0, 0])


def test_representatives_are_the_nearest_to_the_mean():
    x = np.array([[0.0], [1.0], [5.0], [100.0], [102.0], [110.0]])
    found = representatives(x, np.array([7, 7, 7, 2, 2, 2]), n=2)
    assert {name: rows.tolist() for name, rows in found.items()} == {7: [1, 0], 2: [4, 3]}
