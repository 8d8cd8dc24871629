"""Rare or junk? The high scored samples split by their neighbours and by what is in the picture.

A high score says that D finds a sample where G makes nothing. That is so for a rare group, and as
much so for a broken file. A sample of a rare group looks like others of its group; junk has no
near neighbour, or is a copy, or shows nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diagan.findings.closeness import blocks
from diagan.random import numpy_generator

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
FLAGS = ("rare", "outlier", "duplicate", "corrupt")
JUNK = ("outlier", "duplicate", "corrupt")

HIGH_SHARE = 0.1  # of the samples: the highest scored are looked at
MAX_HIGH = 10_000
MAX_REFERENCE = 20_000  # others that neighbours are looked for among
N_ORDINARY = 2_000  # of these, those that say what distances are usual
MIN_ORDINARY = 50
K = 5  # a rare group has more members than this
FAR = 3.5  # robust deviations of log distance, the usual limit for a modified z-score
COPY = 0.05  # of the distance to the K-th neighbour
HIGH_DIM = 16  # in fewer, near neighbours come about by chance, and gaps are small beside all else
SIDE = 8  # pixels a side after averaging: a shift by a pixel should not make a stranger
BLANK = 0.48  # share of the picture, from one of its sides on, that is of one colour
BLANK_RANGE = 4  # levels of 255 within which it is one colour
NOISE = 0.85  # rms step between neighbouring pixels over sqrt(2) sd: 1 for white noise
COMMON = 0.02  # a property of more of the ordinary samples is how these data are
CHUNK = 1_000


@dataclass(frozen=True)
class Junk:
    """What was found among the high scored, [M] each, with what it was judged by."""

    index: NDArray[np.int64]  # dataset indices, the highest score first
    flag: NDArray[np.str_]  # one of FLAGS
    distance: Floats  # to the K-th neighbour
    far: float  # the distance from which on a sample is an outlier; infinite: could not be told


def high_scored(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """Indices of the highest scored tenth, 10,000 at most, the highest first; NaN is no score."""
    order = np.argsort(-scores, kind="stable")[: int(np.isfinite(scores).sum())]
    return order[: min(int(np.ceil(HIGH_SHARE * len(scores))), MAX_HIGH)]


def find_junk(
    scores: NDArray[np.floating],
    values: NDArray[np.generic],
    *,
    seed: int = 0,
    features: NDArray[np.floating] | None = None,
) -> Junk:
    """Flag the high scored of samples: uint8 images [N, C, H, W], or points [N, F].

    Neighbours are near in small pixels (or coordinates), or in `features` [N, F] if given.
    Corrupt goes before duplicate, and that before outlier; what is none of these is rare.
    """
    high = high_scored(scores)
    if len(scores) <= K:
        flag, distance = np.full(len(high), "rare"), np.full(len(high), np.nan, np.float32)
        return Junk(high, flag, distance, float("inf"))
    others = np.setdiff1d(np.arange(len(scores)), high)
    others = numpy_generator(seed, "junk/reference").permutation(others)[:MAX_REFERENCE]
    reference = np.concatenate([high, others])
    place = small_pixels(values, reference) if features is None else features[reference]
    place = np.asarray(place - place.mean(axis=0), dtype=np.float32)
    distances = nearest(place, np.arange(len(high)), K)  # [M, K]
    ordinary = others[:N_ORDINARY]
    far = limit(place, len(high), len(ordinary))
    is_broken = corrupt(values, high, ordinary)
    flag = np.select(
        [is_broken, copies(distances, place.shape[1]), distances[:, -1] > far],
        ["corrupt", "duplicate", "outlier"],
        "rare",
    )
    return Junk(high, flag, distances[:, -1], far)


def limit(place: Floats, start: int, n: int) -> float:
    """The distance from which on a sample is an outlier, by n ordinary ones from `start` on.

    FAR robust deviations over the usual distance to a K-th neighbour, in logarithms. The deviation
    is that of the upper half (median to 84th percentile), which a few strays among the ordinary
    samples do not move. The scale is that of all the data: beside its own neighbours a photo among
    digits would look fine, as these are other strays, just as far apart. A rare group is thin, and
    so far apart as well: in many dimensions an outlier is, besides, no nearer to anything than two
    ordinary samples, taken at random, are to each other.
    """
    if n < MIN_ORDINARY:
        return float("inf")
    ordinary = np.arange(start, start + n)
    logs = np.log(np.maximum(nearest(place, ordinary, K)[:, -1], 1e-12))
    median, upper = np.quantile(logs, [0.5, 0.84])
    far = np.exp(median + FAR * max(upper - median, 0.01))
    pairs = np.linalg.norm(np.diff(place[ordinary], axis=0), axis=1)  # they are in random order
    return float(max(far, np.median(pairs) if place.shape[1] >= HIGH_DIM else 0))


def copies(distances: Floats, n_dim: int) -> Bools:
    """Which samples have a neighbour that is far nearer than the K-th, or at no distance."""
    near = COPY if n_dim >= HIGH_DIM else 0.0
    return np.asarray(distances[:, 0] <= near * distances[:, -1])


def nearest(place: Floats, queries: NDArray[np.int64], k: int) -> Floats:
    """Distances [Q, k], rising, of the points at `queries` to their nearest others in `place`."""
    squares = np.square(place).sum(axis=1)
    found = np.empty((len(queries), k), dtype=np.float32)
    for part in _parts(len(queries)):
        mine = queries[part]
        rough = squares - 2 * place[mine] @ place.T  # [q, N], squared, less the query's own norm
        rough[np.arange(len(mine)), mine] = np.inf
        neighbours = np.argpartition(rough, k - 1, axis=1)[:, :k]
        exact = np.square(place[neighbours] - place[mine][:, None]).sum(axis=2)  # 0 for copies
        found[part] = np.sort(np.sqrt(exact), axis=1)
    return found


# --- what is in the picture ---------------------------------------------------------------------


def corrupt(
    values: NDArray[np.generic], chosen: NDArray[np.int64], ordinary: NDArray[np.int64]
) -> Bools:
    """Which of the chosen images are half blank, of one colour, or noise; of points, none.

    A property that over 2 % of the ordinary images have is how these data are, and counts for
    nothing.
    """
    found = np.zeros(len(chosen), dtype=bool)
    if values.ndim != 4:
        return found
    for statistic, least in ((blank, BLANK), (roughness, NOISE)):
        is_usual = np.mean(_each(statistic, values, ordinary) >= least) if len(ordinary) else 0
        if is_usual <= COMMON:
            found |= _each(statistic, values, chosen) >= least
    return found


def blank(images: NDArray[np.uint8]) -> Floats:
    """The largest part of each image, from one of its four sides on, that is of one colour: 0 to 1.

    1: all of it; 0.5: a half was blanked.
    """
    best = np.zeros(len(images), dtype=np.float32)
    for axis in (2, 3):
        lines = np.moveaxis(images, axis, 1).astype(np.int16)  # [n, L, C, other side]
        for ordered in (lines, lines[:, ::-1]):
            low = np.minimum.accumulate(ordered.min(axis=3), axis=1)  # [n, L, C]
            high = np.maximum.accumulate(ordered.max(axis=3), axis=1)
            one_colour = ((high - low) <= BLANK_RANGE).all(axis=2)  # [n, L]
            best = np.maximum(best, one_colour.mean(axis=1, dtype=np.float32))
    return best


def roughness(images: NDArray[np.uint8]) -> Floats:
    """How much neighbouring pixels differ, for the contrast of the image: 0 smooth, 1 white noise.

    The mean square step is twice the variance where neighbours have nothing to do with each other.
    """
    grey = images.mean(axis=1, dtype=np.float32)  # [n, H, W]
    steps = [np.square(np.diff(grey, axis=axis)).mean(axis=(1, 2)) for axis in (1, 2)]
    variance = np.maximum(grey.var(axis=(1, 2)), 1.0)  # under a level: flat, and not noise
    return np.asarray(np.sqrt((steps[0] + steps[1]) / (4 * variance)), dtype=np.float32)


def small_pixels(values: NDArray[np.generic], chosen: NDArray[np.int64]) -> Floats:
    """Images averaged down to about 8 x 8, in [0, 1]; points as they are: [M, F]."""
    if values.ndim != 4:
        return np.asarray(values[chosen], dtype=np.float32)
    return np.concatenate([blocks(values[chosen[part]], SIDE) for part in _parts(len(chosen))])


def _each(
    statistic: Callable[[NDArray[np.uint8]], Floats],
    values: NDArray[np.generic],
    chosen: NDArray[np.int64],
) -> Floats:
    return np.concatenate(
        [statistic(np.asarray(values[chosen[part]], np.uint8)) for part in _parts(len(chosen))]
    )


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, max(n, 1), CHUNK))
