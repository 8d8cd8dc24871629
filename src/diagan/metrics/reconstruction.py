"""Reconstruction error: how far an autoencoder that learned from fakes is from rebuilding reals."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diagan.errors import UserError


def reconstruction_error(*, real: NDArray[Any], rebuilt: NDArray[Any]) -> NDArray[np.float64]:
    """The distance of each image to its reconstruction, [N]: 0 is perfect, more is worse.

    Both [N, C, H, W], as uint8 or as floats in [-1, 1]. dist of Eq. E.9 is the root of the squared
    error summed over channels and pixels, over sqrt(H W): a grey image off by d everywhere has d,
    a coloured one sqrt(3) d. The mean over a group is its RE.
    """
    if real.shape != rebuilt.shape or real.ndim != 4 or 0 in real.shape:
        raise UserError(
            f"real images {real.shape} and rebuilt ones {rebuilt.shape}: "
            "give two arrays of one shape [N, C, H, W] that are not empty"
        )
    squares = np.square(_scaled(real) - _scaled(rebuilt)).sum(axis=(1, 2, 3), dtype=np.float64)
    n_bad = np.count_nonzero(~np.isfinite(squares))
    if n_bad:
        raise UserError(
            f"{n_bad} of {len(real)} images hold NaN or infinite values; leave them out"
        )
    n_pixels = real.shape[2] * real.shape[3]
    # Departure: the published code divides by 32 whatever the size; at 32x32 this is the same.
    return np.asarray(np.sqrt(squares / n_pixels))  # Eq. E.9


def _scaled(images: NDArray[Any]) -> NDArray[Any]:
    """In [-1, 1]."""
    return images.astype(np.float32) / 127.5 - 1 if images.dtype == np.uint8 else images
