"""KID: the squared maximum mean discrepancy of features under a cubic kernel, without bias."""

from math import sqrt
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from diagan.errors import UserError
from diagan.metrics.common import checked_pair
from diagan.random import numpy_generator


class KID(NamedTuple):
    """Around 0, also below it, for two draws of one distribution; lower is closer."""

    value: float
    standard_error: float
    subset_size: int  # as used, which may be less than was asked for
    n_subsets: int


def kid(
    *,
    real: ArrayLike,
    fake: ArrayLike,
    subset_size: int = 1000,
    n_subsets: int = 100,
    seed: int = 0,
) -> KID:
    """The mean over random subsets of both sets [N, F]; kernel (x.y / F + 1)^3.

    Subsets hold at most half of the smaller set: equal subsets would have no spread to tell an
    error from. That n of them are drawn again and again from the same N is allowed for (delete-d
    jackknife: the spread of subsets of m out of n, times m / (n - m)).
    """
    if subset_size < 2 or n_subsets < 2:
        raise UserError(f"{n_subsets} subsets of {subset_size}: KID needs 2 of 2 samples at least")
    ours, theirs = checked_pair(real=real, fake=fake, at_least=4)
    n = min(len(ours), len(theirs))
    size = min(subset_size, n // 2)
    rng = numpy_generator(seed, "metrics/kid")
    values = np.empty(n_subsets)
    for number in range(n_subsets):
        real_part = _draw(ours, size, rng)
        fake_part = _draw(theirs, size, rng)
        values[number] = _squared_mmd(real=real_part, fake=fake_part)
    variance = values.var(ddof=1) * (size / (n - size) + 1 / n_subsets)
    return KID(float(values.mean()), sqrt(variance), size, n_subsets)


def _draw(features: NDArray[np.floating], size: int, rng: np.random.Generator) -> Tensor:
    chosen = rng.choice(len(features), size, replace=False)
    return torch.from_numpy(features[chosen].astype(np.float64))


def _squared_mmd(*, real: Tensor, fake: Tensor) -> float:
    """Unbiased: no sample is compared with itself. Both [m, F]."""
    m, n_features = real.shape

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        return (x @ y.T / n_features + 1) ** 3

    def within(x: Tensor) -> Tensor:
        values = kernel(x, x)
        return (values.sum() - values.trace()) / (m * (m - 1))

    return (within(real) + within(fake) - 2 * kernel(real, fake).mean()).item()
