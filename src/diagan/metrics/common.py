"""What the metrics share: features that are fit to be measured."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diagan.errors import UserError

CHUNK = 1024  # rows that are looked at together


def checked(features: ArrayLike, name: str, at_least: int = 1) -> NDArray[np.floating]:
    """The features [N, F] as they are, if there are enough of them and all are finite numbers."""
    values = np.asarray(features)
    if values.ndim != 2 or values.shape[1] == 0 or values.dtype.kind != "f":
        raise UserError(
            f"{name} are {values.dtype} of shape {list(values.shape)}: give floats [N, F]"
        )
    if len(values) < at_least:
        raise UserError(f"{name} are of {len(values)} samples: give at least {at_least}")
    for start in range(0, len(values), CHUNK):  # a mask of all of it would be a quarter as large
        bad = ~np.isfinite(values[start : start + CHUNK]).all(axis=1)
        if bad.any():
            raise UserError(
                f"{name} hold a NaN or an infinity, first at sample {start + int(bad.argmax())}: "
                "look at that image and at the extractor"
            )
    return values


def checked_pair(
    *, real: ArrayLike, fake: ArrayLike, at_least: int = 1
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Both sets, checked, and of one dimension."""
    ours = checked(real, "real features", at_least)
    theirs = checked(fake, "fake features", at_least)
    if ours.shape[1] != theirs.shape[1]:
        raise UserError(
            f"real features have {ours.shape[1]} dimensions, fake ones {theirs.shape[1]}: "
            "take both from one extractor"
        )
    return ours, theirs
