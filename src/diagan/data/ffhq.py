"""FFHQ: a folder or a zip of its PNGs, a parquet file, or the hub's copy at 256 pixels."""

from pathlib import Path

import numpy as np
from PIL import Image

from diagan.config import FFHQ
from diagan.data.dataset import Dataset, expect_enough, fingerprint
from diagan.data.listing import Listing, pack
from diagan.data.pack import mapped
from diagan.data.tables import list_split
from diagan.data.tree import list_folder, list_zip

N_HELDOUT = 1_000


def ffhq(config: FFHQ, seed: int, root: str | None = None) -> Dataset:
    """The first n faces; FFHQ has no test split, so up to 1,000 of those after them are held out.

    The published code trains on 69,999: all but one that it could not read (FACTS 6).
    """
    images, _, notes = pack(
        list_faces(config.path, root),
        config.size,
        channels="RGB",
        resample=Image.Resampling.LANCZOS,
    )
    expect_enough(config.n, len(images) - 1, "FFHQ's faces, with one at least held out")
    values = mapped(images, 0, config.n)
    heldout = mapped(images, config.n, config.n + N_HELDOUT)
    groups = np.zeros(config.n, dtype=np.int64)
    return Dataset(
        values=values,
        groups=groups,
        group_names=("all",),
        heldout=heldout,
        heldout_groups=np.zeros(len(heldout), dtype=np.int64),
        fingerprint=fingerprint(values, groups),
        notes=notes,
    )


def list_faces(path: str | None, root: str | None) -> Listing:
    """What `path` is, or ffhq.zip, ffhq/train.parquet or ffhq/ in the root, or the hub's."""
    if path is None and root is None:
        return list_split("ffhq", "train", None)
    place = Path(path or Path(str(root), "ffhq")).expanduser()
    if path is None and (place / "train.parquet").exists():
        return list_split("ffhq", "train", root)
    packed = place if place.suffix.lower() == ".zip" else place.with_suffix(".zip")
    return list_zip(packed) if packed.is_file() else list_folder(place)
