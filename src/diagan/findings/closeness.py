"""How close generated samples are to each other and to the real ones: needs no labels."""

from math import exp, hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from diagan.errors import UserError
from diagan.findings.clusters import k_means, squared_distances

N_KINDS = 10  # more would be smaller, and a middling GAN misses some small ones
NEAR = 1e-3  # share of the pairs of reals that count as near copies,
MIN_NEAR = 20  # but as many pairs as this
MIN_PAIRED = 50
SIDE = 16  # images are compared at this side at most: what is finer is grain more than content
Floats = NDArray[np.floating]
Interval = tuple[float, float, float]  # value, low, high


def repetition(*, real: Floats, fake: Floats) -> Interval:
    """How much likelier two fakes are near copies of each other than two reals; [n, F] both.

    0 or more: 1 for sets of one origin, 50 where G has 20 things to show and the data 1,000. Near
    copies are as close as one pair of reals in 1,000. The 95 % interval is that of U-statistics.
    """
    if len(real) != len(fake) or len(real) < MIN_PAIRED:
        raise UserError(
            f"{len(real)} reals and {len(fake)} fakes: give as many of both, {MIN_PAIRED} at least"
        )
    upper = np.triu_indices(len(real), 1)
    among_real, among_fake = squared_distances(real, real), squared_distances(fake, fake)
    near = max(NEAR, MIN_NEAR / len(upper[0]))
    limit = np.quantile(among_real[upper], near)
    (real_rate, real_error), (fake_rate, fake_error) = (
        pair_rate(among <= limit) for among in (among_real, among_fake)
    )
    at_most = 3 / len(upper[0]) / real_rate  # what 0 out of so many pairs still allows for
    if fake_rate == 0:
        return 0.0, 0.0, at_most
    spread = exp(1.96 * hypot(real_error / real_rate, fake_error / fake_rate))
    value = fake_rate / real_rate
    return value, value / spread, max(value * spread, at_most)


def pair_rate(is_near: NDArray[np.bool_]) -> tuple[float, float]:
    """The share of pairs that are near, and its standard error (a U-statistic of order two)."""
    n = len(is_near)
    each = (is_near.sum(axis=1) - is_near.diagonal()) / (n - 1)  # [n]
    return float(each.mean()), 2 * float(each.std()) / sqrt(n)


def kinds(
    *, real: Floats, fake: Floats, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many reals, and how many fakes, are of each of ten kinds: clusters of the reals.

    Features [N, F] and [M, F]. What G leaves out altogether is a kind without fakes.
    """
    member, centres = k_means(np.asarray(real, dtype=np.float64), N_KINDS, seed=seed)
    nearest = squared_distances(fake, centres).argmin(axis=1)
    return np.bincount(member, minlength=N_KINDS), np.bincount(nearest, minlength=N_KINDS)


def image_features(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Of images [N, H, W, C] as the report has them: [N, F]."""
    return blocks(images.transpose(0, 3, 1, 2), SIDE)


def blocks(images: NDArray[np.generic], side: int) -> NDArray[np.float32]:
    """Pixels 0 to 1 of images [N, C, H, W], averaged in blocks down to about `side` x `side`."""
    n, c, height, width = images.shape
    by, across = max(1, height // side), max(1, width // side)
    rows, columns = height // by, width // across  # what is left over at the edge is left out
    cut = images[:, :, : rows * by, : columns * across].astype(np.float32)
    means = cut.reshape(n, c, rows, by, columns, across).mean(axis=(3, 5))
    return np.asarray(means.reshape(n, -1) / 255, dtype=np.float32)
