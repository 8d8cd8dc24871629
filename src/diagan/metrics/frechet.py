"""FID: the Fréchet distance between two Gaussians fitted to features, in float64.

|m_r - m_f|^2 + tr(C_r) + tr(C_f) - 2 tr((C_r C_f)^(1/2)), covariances over N - 1.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from diagan.errors import UserError
from diagan.metrics.common import CHUNK, checked, checked_pair

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """The Gaussian that is fitted to the features of n samples."""

    n: int
    mean: Floats  # [F]
    cov: Floats  # [F, F], over n - 1


class RunningStatistics:
    """Mean and covariance of features that come in batches, of any size and in any order.

    Batches are merged by their means and scatters (Chan et al.), so big means cost no digits.
    """

    def __init__(self) -> None:
        self.n = 0
        self.mean: Floats = np.zeros(0)  # [F]
        self.scatter: Floats = np.zeros((0, 0))  # [F, F], sum of (x - mean)(x - mean)^T

    def add(self, features: ArrayLike) -> None:
        """Take in a batch [B, F]."""
        batch = checked(features, "features", at_least=0).astype(np.float64)
        if len(batch):
            mean = batch.mean(axis=0)
            centred = torch.from_numpy(batch - mean)
            self._merge(len(batch), mean, (centred.T @ centred).numpy())

    def merge(self, other: "RunningStatistics") -> None:
        """Take in what another has seen."""
        if other.n:
            self._merge(other.n, other.mean, other.scatter)

    def _merge(self, n: int, mean: Floats, scatter: Floats) -> None:
        if self.n == 0:
            self.mean, self.scatter = np.zeros_like(mean), np.zeros_like(scatter)
        if mean.shape != self.mean.shape:
            raise UserError(
                f"a batch has {len(mean)} dimensions, those before it {len(self.mean)}: "
                "take all from one extractor"
            )
        total, step = self.n + n, mean - self.mean
        self.scatter += scatter
        self.scatter += np.outer(step, step * (self.n * n / total))
        self.mean += step * (n / total)
        self.n = total

    def statistics(self) -> Statistics:
        """The Gaussian of all that was taken in; it stays as it is when more is added."""
        if self.n < 2:
            raise UserError(f"there are {self.n} samples: a covariance needs at least 2")
        return Statistics(self.n, self.mean.copy(), self.scatter / (self.n - 1))


def features_to_statistics(batches: Iterable[ArrayLike]) -> Statistics:
    """The Gaussian of batches [B, F], which are read one at a time."""
    running = RunningStatistics()
    for batch in batches:
        running.add(batch)
    return running.statistics()


def statistics_to_fid(*, real: Statistics, fake: Statistics) -> float:
    """FID, zero or more; lower is closer. Warns where samples are too few for the dimensions."""
    n_features = len(real.mean)
    if len(fake.mean) != n_features:
        raise UserError(
            f"real features have {n_features} dimensions, fake ones {len(fake.mean)}: "
            "take both from one extractor"
        )
    n = min(real.n, fake.n)
    if n < n_features + 1:
        warnings.warn(
            f"FID of {n} samples in {n_features} dimensions: the covariance is singular and the "
            f"distance biased upwards; take at least {n_features + 1} samples",
            stacklevel=2,
        )
    # With C_r = A A^T, A^T C_f A is symmetric and has the eigenvalues of C_r C_f (and no others
    # but zeros), so that the trace of the root is the sum of theirs.
    factor = _factor(torch.from_numpy(real.cov))  # [F, rank]
    eigenvalues = torch.linalg.eigvalsh(factor.T @ torch.from_numpy(fake.cov) @ factor)
    overlap = eigenvalues.clamp(min=0).sqrt().sum().item()
    shift = real.mean - fake.mean
    fid = shift @ shift + np.trace(real.cov) + np.trace(fake.cov) - 2 * overlap
    return max(0.0, float(fid))


def _factor(cov: Tensor) -> Tensor:
    """A with A A^T = cov; without the columns of a singular one that are nothing but rounding."""
    factor: Tensor
    factor, failed = torch.linalg.cholesky_ex(cov)
    if failed:
        values, vectors = torch.linalg.eigh(cov)
        kept = values > len(values) * torch.finfo(values.dtype).eps * values[-1]
        factor = vectors[:, kept] * values[kept].sqrt()
    return factor


def fid(*, real: ArrayLike, fake: ArrayLike) -> float:
    """FID of features [N, F] and [M, F]; for more than memory holds, use RunningStatistics."""
    ours, theirs = checked_pair(real=real, fake=fake, at_least=2)
    return statistics_to_fid(
        real=features_to_statistics(_chunks(ours)), fake=features_to_statistics(_chunks(theirs))
    )


def _chunks(features: NDArray[np.floating]) -> Iterable[NDArray[np.floating]]:
    return (features[start : start + CHUNK] for start in range(0, len(features), CHUNK))
