"""How many generated points lie at each of known modes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HIGH_QUALITY_STDS = 4.0  # within four standard deviations of the nearest mode (Section 3.3)


@dataclass(frozen=True)
class ModeCounts:
    """Points of high quality by nearest mode, and their share of all points (0 to 1)."""

    high_quality: NDArray[np.int64]  # [n_modes]
    share: float


def count_modes(*, fake: NDArray[np.float32], modes: NDArray[np.float32], std: float) -> ModeCounts:
    """Assign each point [N, 2] to its nearest mode [M, 2] and count those close enough to it."""
    distances = np.linalg.norm(fake[:, None] - modes[None], axis=2)  # [N, M]
    nearest = distances.argmin(axis=1)
    good = distances.min(axis=1) <= HIGH_QUALITY_STDS * std
    counts = np.bincount(nearest[good], minlength=len(modes))
    return ModeCounts(counts, float(good.mean()))
