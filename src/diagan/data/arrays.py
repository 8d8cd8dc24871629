"""Images in a .npy or .npz file, as NumPy writes them; pickled objects are never loaded."""

import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from diagan.data.listing import Listing, Opener, listed
from diagan.data.tree import file_digest
from diagan.errors import UserError

EXPECTED = "expected uint8 images [N, H, W], [N, H, W, C] or [N, C, H, W] with C 1, 3 or 4"


def list_array(path: Path) -> Listing:
    """The images of the array, or of the one of a .npz that holds images.

    In a .npz, arrays [N] of whole numbers, booleans or words are columns: classes, attributes.
    """
    arrays = _read(path)
    able = [name for name, array in arrays.items() if array.ndim in (3, 4)]
    if len(able) != 1:
        shapes = ", ".join(
            f"{'' if path.suffix == '.npy' else name + ' '}{array.dtype} {array.shape}"
            for name, array in arrays.items()
        )
        raise UserError(f"{path} holds {shapes or 'nothing'}; {EXPECTED}")
    images = _channels_last(path, arrays.pop(able[0]))
    n = len(images)
    known = {name: a for name, a in arrays.items() if a.shape == (n,) and a.dtype.kind in "iubU"}
    other = [f"{name} {a.dtype} {a.shape}" for name, a in arrays.items() if name not in known]
    notes = (
        [listed(f"no columns of {n:,} numbers or words, not looked at: ", other)] if other else ()
    )
    columns = {name: array.astype(str) for name, array in known.items()}

    def openers() -> Iterator[Opener]:
        for image in images:
            yield partial(Image.fromarray, image)

    names = [f"row {i}" for i in range(n)]
    return Listing(str(path), names, openers, lambda: file_digest(path), columns, tuple(notes))


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return {path.name: stored}
        with stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, KeyError, MemoryError, zipfile.BadZipFile) as error:
        is_pickled = "allow_pickle" in str(error) or "Python objects" in str(error)
        why = "it holds pickled objects, or is no NumPy file" if is_pickled else str(error)
        raise UserError(f"{path} cannot be used: {why}; {EXPECTED}") from None


def _channels_last(path: Path, images: np.ndarray) -> np.ndarray:
    """[N, H, W] or [N, H, W, 3 or 4]; the shape decides where the channels are."""
    given = f"{images.dtype} {images.shape}"
    if images.ndim == 4 and images.shape[3] not in (1, 3, 4):
        images = images.transpose(0, 2, 3, 1)
    is_sound = images.ndim == 3 or images.shape[3] in (1, 3, 4)
    if not len(images):
        raise UserError(f"{path} holds no images: {given}")
    if images.dtype != np.uint8 or not is_sound or 0 in images.shape:
        raise UserError(f"{path} holds {given}; {EXPECTED}")
    return images[..., 0] if images.ndim == 4 and images.shape[3] == 1 else images
