"""Inception Score: how sure a classifier is of each image, and how varied its answers are."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diagan.errors import UserError
from diagan.metrics.common import CHUNK, checked

N_SPLITS = 10


class InceptionScore(NamedTuple):
    """Mean and standard deviation (ddof 0) over the splits; from 1 to K, higher is better."""

    mean: float
    std: float


class RunningInceptionScore:
    """The score of n logits that come in batches, split in contiguous parts as they come.

    Part i holds samples i n / n_splits up to (i + 1) n / n_splits, rounded down. What is kept is
    one sum of probabilities and one of p log p for each part.
    """

    def __init__(self, n: int, n_splits: int = N_SPLITS) -> None:
        if not 1 <= n_splits <= n:
            raise UserError(f"{n} samples in {n_splits} splits: give every split a sample")
        self.n_seen = 0
        self.starts = np.arange(n_splits + 1) * n // n_splits  # [n_splits + 1], the last is n
        self.probabilities: NDArray[np.float64] = np.zeros((n_splits, 0))  # [n_splits, K]
        self.negentropies: NDArray[np.float64] = np.zeros(n_splits)

    def add(self, logits: ArrayLike) -> None:
        """Take in the next batch [B, K]."""
        batch = checked(logits, "logits", at_least=0).astype(np.float64)
        if self.n_seen == 0:
            self.probabilities = np.zeros((len(self.negentropies), batch.shape[1]))
        if batch.shape[1] != self.probabilities.shape[1]:
            raise UserError(
                f"a batch has {batch.shape[1]} classes, those before it "
                f"{self.probabilities.shape[1]}: take all from one classifier"
            )
        batch -= batch.max(axis=1, keepdims=True)
        logs = batch - np.log(np.exp(batch).sum(axis=1, keepdims=True))  # log-softmax
        shares = np.exp(logs)
        position = np.arange(self.n_seen, self.n_seen + len(batch))
        split = np.searchsorted(self.starts, position, side="right") - 1  # [B]
        for number in np.unique(split[position < self.starts[-1]]):
            rows = split == number
            self.probabilities[number] += shares[rows].sum(axis=0)
            self.negentropies[number] += (shares[rows] * logs[rows]).sum()
        self.n_seen += len(batch)

    def score(self) -> InceptionScore:
        """exp of the mean KL divergence from a sample's classes to the split's, by split."""
        if self.n_seen != self.starts[-1]:
            raise UserError(
                f"{self.n_seen} logits came where {self.starts[-1]} were announced: give n of them"
            )
        sizes = np.diff(self.starts)
        marginal = self.probabilities / sizes[:, None]
        # A class that never occurs adds nothing: 0 log 0 = 0.
        logs = np.log(marginal, out=np.zeros_like(marginal), where=marginal > 0)
        scores = np.exp(self.negentropies / sizes - (marginal * logs).sum(axis=1))
        return InceptionScore(float(scores.mean()), float(scores.std()))


def inception_score(
    logits: NDArray[np.floating] | Iterable[ArrayLike],
    *,
    n: int | None = None,
    n_splits: int = N_SPLITS,
) -> InceptionScore:
    """The score of logits [N, K], or of batches [B, K] that are N in all: then N is given as n."""
    if isinstance(logits, np.ndarray):
        n, array = len(logits), logits
        logits = (array[start : start + CHUNK] for start in range(0, n, CHUNK))
    if n is None:
        raise UserError("the score of batches needs their number of samples beforehand: give n")
    running = RunningInceptionScore(n, n_splits)
    for batch in logits:
        running.add(batch)
    return running.score()
