"""How alike two orders of the same samples are."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def ranks(values: ArrayLike) -> Floats:
    """From 0 for the lowest to 1 for the highest [N]; equal values share their mean rank."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2  # from 0
    return np.asarray(middle[inverse] / max(len(inverse) - 1, 1), dtype=np.float64)


def ascending(scores: Floats) -> NDArray[np.int64]:
    """Indices from the lowest score to the highest, without those that have none (NaN)."""
    return np.argsort(scores, kind="stable")[: np.isfinite(scores).sum()]  # NaN is last


def correlation(a: Floats, b: Floats) -> float:
    """Of two arrays of ranks: Spearman's; 0 where one of them is all the same."""
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def overlap(a: Floats, b: Floats, n_top: int) -> float:
    """Share of the n_top highest of one that are among those of the other."""
    highest = [set(np.argsort(-values, kind="stable")[:n_top].tolist()) for values in (a, b)]
    return len(highest[0] & highest[1]) / n_top
