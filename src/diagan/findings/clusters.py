"""Kinds of under-represented samples, where no labels name them: k-means on their features."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diagan.random import numpy_generator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_CLUSTERS = 8
MIN_CONTRAST = 0.1  # mean silhouette; below, the parts run into each other
MIN_CLUSTER = 10  # samples; a kind with fewer members cannot be told from chance
N_STARTS = 3
MAX_ROUNDS = 50
N_SEEN = 2_000  # samples that the clusters are found on


@dataclass(frozen=True)
class Clusters:
    """Which cluster each sample belongs to, and how well they part."""

    member: Ints  # [M], 0 is the largest cluster
    centres: Floats  # [k, F]
    contrast: float  # mean silhouette, 0.1 to 1: far apart; 0 for a single cluster


def cluster(features: NDArray[np.floating], *, seed: int = 0) -> Clusters:
    """The partition with the highest mean silhouette of 2 to 8 clusters; one where none parts.

    Every cluster has at least 10 members. They are found on 2,000 samples at most; each of the
    others joins the nearest centre.
    """
    x = np.asarray(features, dtype=np.float64)
    seen = x[numpy_generator(seed, "clusters/seen").permutation(len(x))[:N_SEEN]]
    best, contrast = x.mean(axis=0, keepdims=True), MIN_CONTRAST
    for k in range(2, min(MAX_CLUSTERS, len(seen) // MIN_CLUSTER) + 1):
        member, centres = k_means(seen, k, seed=seed)
        if np.bincount(member, minlength=k).min() >= MIN_CLUSTER:
            found = float(silhouette(seen, member).mean())
            best, contrast = (centres, found) if found > contrast else (best, contrast)
    member = squared_distances(x, best).argmin(axis=1)
    order = np.argsort(-np.bincount(member, minlength=len(best)), kind="stable")
    return Clusters(np.argsort(order)[member], best[order], contrast if len(best) > 1 else 0.0)


def k_means(x: Floats, k: int, *, seed: int = 0) -> tuple[Ints, Floats]:
    """Members [M] and centres [k, F] of the best of three seeded starts by k-means++."""
    found = [_k_means_once(x, k, numpy_generator(seed, "clusters", start))
             for start in range(N_STARTS)]  # fmt: skip
    member, centres, _ = min(found, key=lambda one: one[2])
    return member, centres


def _k_means_once(x: Floats, k: int, rng: np.random.Generator) -> tuple[Ints, Floats, float]:
    centres = x[[int(rng.integers(len(x)))]]
    for _ in range(1, k):  # k-means++: the next centre by squared distance to those before
        distances = squared_distances(x, centres).min(axis=1)
        total = distances.sum()
        p = distances / total if total > 0 else np.full(len(x), 1 / len(x))
        centres = np.concatenate([centres, x[[int(rng.choice(len(x), p=p))]]])
    member = np.full(len(x), -1)
    for _ in range(MAX_ROUNDS):
        distances = squared_distances(x, centres)
        new = distances.argmin(axis=1)
        if np.array_equal(new, member):
            break
        member = new
        sizes = np.bincount(member, minlength=k)
        sums = np.stack([x[member == i].sum(axis=0) for i in range(k)])
        centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centres)
    return member, centres, float(squared_distances(x, centres).min(axis=1).sum())


def squared_distances(x: NDArray[np.floating], y: NDArray[np.floating]) -> Floats:
    """[M, F], [k, F] -> [M, k]; never below zero, copies may be a rounding error apart."""
    centre = y.mean(axis=0, dtype=np.float64)  # products lose fewer digits there
    x, y = x - centre, y - centre
    squares = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1)
    return np.asarray(np.maximum(squares - 2 * x @ y.T, 0), dtype=np.float64)


def silhouette(x: Floats, member: Ints) -> Floats:
    """(b - a) / max(a, b) of each sample: mean distance to its own cluster and to the next, [M].

    -1 to 1; 0 for a cluster of one.
    """
    distances = np.sqrt(squared_distances(x, x))  # [M, M]
    names = np.unique(member)
    sums = np.stack([distances[:, member == i].sum(axis=1) for i in names], axis=1)  # [M, k]
    sizes = np.array([np.sum(member == i) for i in names])
    own = member[:, None] == names
    inside = sums[own] / np.maximum(sizes[own.argmax(axis=1)] - 1, 1)
    outside = np.where(own, np.inf, sums / sizes).min(axis=1)
    spread = np.maximum(np.maximum(inside, outside), 1e-12)
    alone = sizes[own.argmax(axis=1)] == 1
    return np.where(alone | ~np.isfinite(outside), 0.0, (outside - inside) / spread)


def representatives(features: NDArray[np.floating], member: Ints, n: int) -> dict[int, Ints]:
    """Of each cluster the rows of the n samples nearest to its mean, the nearest first."""
    x = np.asarray(features, dtype=np.float64)
    found = {}
    for name in np.unique(member).tolist():
        rows = np.flatnonzero(member == name)
        to_mean = np.square(x[rows] - x[rows].mean(axis=0)).sum(axis=1)
        found[name] = rows[np.argsort(to_mean, kind="stable")][:n]
    return found
