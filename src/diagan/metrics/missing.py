"""Missing modes: kinds of real samples that the fakes hold much more seldom, found without labels.

The leading eigenvectors of C_real - ratio C_fake, covariances under a Gaussian kernel, point at
them (KEN, Zhang et al. 2024); random Fourier features make that a small matrix however many
samples there are (FINC, Zhang et al. 2024). Ours: which of them are more than chance is told on
samples that did not find them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diagan.metrics.common import checked_pair
from diagan.metrics.shares import wilson
from diagan.random import numpy_generator

N_FREQUENCIES = 512
N_CANDIDATES = 10  # eigenvectors that are looked at
N_FOR_WIDTH = 1_000  # reals that tell how wide the kernel has to be
IN_MODE = 0.5  # cosine to the eigenvector, in the kernel's space, from which a sample is a member
Floats = NDArray[np.floating]


class MissingMode(NamedTuple):
    """How often a mode is met, counted on the half of either set that did not find it."""

    real_share: float  # 0 to 1
    fake_share: float
    low: float  # the 95 % interval of fake_share
    high: float
    examples: NDArray[np.int64]  # rows of the reals, the clearest first


def missing_modes(
    *, real: ArrayLike, fake: ArrayLike, ratio: float = 2.0, n_examples: int = 12, seed: int = 0
) -> list[MissingMode]:
    """Modes of the reals [N, F] that are surely `ratio` times as frequent as among fakes [M, F].

    The most frequent first; none where the sets are too small to tell. The kernel is as wide as two
    reals are apart, so these are coarse kinds, and not details.
    """
    ours, theirs = checked_pair(real=real, fake=fake, at_least=4)
    rng = numpy_generator(seed, "metrics/missing")
    some = ours[rng.permutation(len(ours))[:N_FOR_WIDTH]]
    width = float(np.sqrt(2 * some.var(axis=0, dtype=np.float64).sum())) or 1.0
    frequencies = rng.normal(size=(ours.shape[1], N_FREQUENCIES)).astype(np.float32) / width
    of_real, of_fake = (_fourier(x, some.mean(axis=0), frequencies) for x in (ours, theirs))
    (seen, counted), (seen_fakes, counted_fakes) = (
        np.array_split(rng.permutation(len(x)), 2) for x in (ours, theirs)
    )
    modes = []
    for mode in _candidates(of_real[seen], of_fake[seen_fakes], ratio):
        cosine = of_real @ mode
        real_share = float(np.mean(cosine[counted] >= IN_MODE))
        fake_share = float(np.mean(of_fake[counted_fakes] @ mode >= IN_MODE))
        low, high = wilson(fake_share, len(counted_fakes))
        if wilson(real_share, len(counted))[0] > ratio * high:
            clearest = np.argsort(-cosine, kind="stable")[:n_examples]
            examples = clearest[cosine[clearest] >= IN_MODE]
            modes.append(MissingMode(real_share, fake_share, low, high, examples))
    return sorted(modes, key=lambda mode: -mode.real_share)


def _candidates(real: Floats, fake: Floats, ratio: float) -> Floats:
    """Unit vectors [c, 2 R] towards what the reals hold more than `ratio` times as often."""
    moments = (x.T @ x / len(x) for x in (real, fake))
    of_real, of_fake = (np.asarray(x, dtype=np.float64) for x in moments)
    values, vectors = np.linalg.eigh(of_real - ratio * of_fake)
    n = min(N_CANDIDATES, int((values > 0).sum()))
    leading = vectors.T[::-1][:n]
    # An eigenvector has no sign: members are on the side of the long tail.
    return np.asarray(leading * np.sign(((real @ leading.T) ** 3).sum(axis=0))[:, None])


def _fourier(features: Floats, centre: Floats, frequencies: Floats) -> Floats:
    """[N, F] -> [N, 2 R] of length 1, whose products are about those of the kernel."""
    angles = np.asarray(features - centre, dtype=np.float32) @ frequencies
    both = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    return np.asarray(both / np.sqrt(np.float32(N_FREQUENCIES)))
