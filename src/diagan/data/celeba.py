"""CelebA: aligned faces with 40 attributes, from the hub, parquet files or the original folder."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from diagan.config import CelebA
from diagan.data.dataset import Dataset, expect_enough, fingerprint
from diagan.data.folder import rare_group
from diagan.data.listing import Listing, binary, pack
from diagan.data.pack import mapped
from diagan.data.tables import list_split
from diagan.data.tree import content_digest
from diagan.errors import UserError, did_you_mean

SPLITS = {"train": "0", "valid": "1", "test": "2"}  # as list_eval_partition.txt numbers them
IMAGES, ATTRIBUTES = "img_align_celeba", "list_attr_celeba.txt"
PARTITION = "list_eval_partition.txt"
PLACES = (".", "Img", "Anno", "Eval")  # of the published folder, or all in one


class Split(NamedTuple):
    images: np.ndarray  # uint8 [N, 3, size, size], memory-mapped
    attributes: Mapping[str, np.ndarray]  # int64 [N] of 0 and 1, by name
    notes: tuple[str, ...]


def celeba(config: CelebA, seed: int, root: str | None = None) -> Dataset:
    """The first n faces of the training split; test faces in CelebA's proportion are held out.

    Shorter side to `size`, then the centre: 178 x 218 -> 64 x 78 -> 64 x 64 (FACTS 1.7).
    """
    train = load_split("train", config.size, config.path, root)
    expect_enough(config.n, len(train.images), "CelebA's training faces")
    if config.attribute not in train.attributes:
        near = did_you_mean(config.attribute, train.attributes)
        raise UserError(f"--data.attribute {config.attribute}: CelebA has no such attribute{near}")
    test = load_split("test", config.size, config.path, root)
    n_heldout = max(1, config.n * 19_962 // 162_770)
    table = {name: has[: config.n] for name, has in train.attributes.items()}
    heldout_table = {name: has[:n_heldout] for name, has in test.attributes.items()}
    values, groups = mapped(train.images, 0, config.n), table[config.attribute]
    return Dataset(
        values=values,
        groups=groups,
        group_names=(f"not {config.attribute}", config.attribute),
        heldout=mapped(test.images, 0, n_heldout),
        heldout_groups=heldout_table[config.attribute],
        fingerprint=fingerprint(values, groups),
        rare=rare_group(groups, 2),
        notes=train.notes,
        attributes=table,
        heldout_attributes=heldout_table,
    )


def load_split(split: str, size: int, path: str | None = None, root: str | None = None) -> Split:
    """The `train`, `valid` or `test` faces, with all attributes."""
    folder = Path(path or Path(root or "", "celeba")).expanduser()
    is_original = path is not None or (root is not None and not list(folder.glob("*.parquet")))
    listing = list_original(folder, split) if is_original else list_split("celeba", split, root)
    images, kept, notes = pack(listing, size, channels="RGB")
    columns = {name: binary(column) for name, column in listing.columns.items()}
    attributes = {name: has[kept] for name, has in columns.items() if has is not None}
    return Split(images, attributes, notes)


def list_original(folder: Path, split: str) -> Listing:
    """The faces of a split as the publishers hand them out; the files say which, and in order."""
    faces = _find(folder, IMAGES)
    header, rows = _read_attributes(_find(folder, ATTRIBUTES))
    parts = [line.split() for line in _lines(_find(folder, PARTITION))]
    names = [part[0] for part in parts if part[1:] == [SPLITS[split]]]
    unknown = [name for name in names if name not in rows or "/" in name]
    if not names or unknown:
        what = f"{unknown[0]}, of which {ATTRIBUTES} knows nothing" if unknown else f"no {split}"
        raise UserError(f"{folder / PARTITION} names {what}; expected CelebA's original files")
    cells = np.array([rows[name] for name in names])  # [N, 40] of -1 and 1
    return Listing(
        where=str(faces),
        names=names,
        openers=lambda: (partial(Path, faces, name) for name in names),
        content=lambda: content_digest(faces, names),
        columns={name: cells[:, i] for i, name in enumerate(header)},
        each="faces",
    )


def _find(folder: Path, name: str) -> Path:
    for place in PLACES:
        if (folder / place / name).exists():
            return folder / place / name
    raise UserError(
        f"{folder} has no {name}; expected CelebA's {IMAGES}, {ATTRIBUTES} and {PARTITION}, "
        "or train.parquet and test.parquet"
    )


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None


def _read_attributes(path: Path) -> tuple[list[str], dict[str, list[str]]]:
    """The names of the attributes, and -1 or 1 for each of them by file (the first line counts)."""
    lines = _lines(path)
    header = lines[1].split() if len(lines) > 1 else []
    rows = {name: values for name, *values in (line.split() for line in lines[2:] if line.strip())}
    bad = [name for name, values in rows.items() if len(values) != len(header)]
    if not rows or bad:
        where = f"{bad[0]} has not" if bad else "no file has"
        raise UserError(f"{path}: {where} one value for each of {len(header)} attributes")
    return header, rows
