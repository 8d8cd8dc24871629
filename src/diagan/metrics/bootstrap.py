"""How sure a mean over few samples is: percentile intervals by resampling."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diagan.errors import UserError
from diagan.random import numpy_generator

MIN_GROUP = 10  # a group with fewer samples gets no interval and no verdict


class Interval(NamedTuple):
    low: float
    high: float


def bootstrap_interval(
    values: ArrayLike,
    statistic: Callable[[NDArray[np.float64]], float] = np.mean,
    *,
    n: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Where the statistic of per-sample values [N] lies in `level` of n resamplings."""
    samples = np.asarray(values, dtype=np.float64)
    if samples.ndim != 1 or len(samples) == 0:
        raise UserError(f"values of shape {list(samples.shape)}: give one number for each sample")
    if not np.isfinite(samples).all():
        raise UserError("values hold a NaN or an infinity: leave these samples out first")
    if n < 1 or not 0 < level < 1:
        raise UserError(f"{n} resamplings at level {level}: give 1 or more, at between 0 and 1")
    rng = numpy_generator(seed, "metrics/bootstrap")
    drawn = [statistic(samples[rng.integers(len(samples), size=len(samples))]) for _ in range(n)]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))
