"""A person's own images: whatever is in them is converted and said, never died of."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path

import numpy as np

from diagan.config import ImageFolder
from diagan.data.arrays import list_array
from diagan.data.dataset import Dataset, fingerprint
from diagan.data.images import opened
from diagan.data.listing import Listing, binary, pack
from diagan.data.tables import list_hub, list_parquet
from diagan.data.tree import list_folder, list_zip
from diagan.errors import UserError, did_you_mean
from diagan.random import numpy_generator

RARE_SHARE = 0.2
SIDES = (32, 64, 128, 256)
N_PEEK = 100  # images whose sides decide on one for all
GROUP_COLUMNS = ("group", "label", "class")
N_GROUPS_MAX = 200  # a column with more different values does not name groups by itself
READERS = {".zip": list_zip, ".parquet": list_parquet, ".npy": list_array, ".npz": list_array}
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def image_folder(config: ImageFolder, seed: int, root: str | None = None) -> Dataset:
    """Every readable image; 2 % of them, at most 1,000, are held out.

    Groups are the values of a column, or else sub-folders where there are two or more of them.
    """
    listing = list_images(config.path)
    groups, names = groups_of(listing, config.group_by)  # of all; a bad name is refused at once
    images, kept, notes = pack(listing, config.size)
    groups, names = _renumbered(groups[kept], names)
    train, heldout = hold_out(groups, len(names))
    values = np.asarray(images[train])
    tables = [_attributes(listing, kept[part]) for part in (train, heldout)]
    return Dataset(
        values=values,
        groups=groups[train],
        group_names=names,
        heldout=np.asarray(images[heldout]),
        heldout_groups=groups[heldout],
        fingerprint=fingerprint(values, groups[train]),
        rare=rare_group(groups[train], len(names)),
        files=tuple(np.array(listing.names, dtype=object)[kept[train]]),
        notes=notes,
        attributes=tables[0],
        heldout_attributes=tables[1],
    )


@dataclass(frozen=True, eq=False)
class Whole:
    """All images of a place with nothing held out, in the order in which they are listed there."""

    data: Dataset  # values are memory-mapped
    listing: Listing
    kept: np.ndarray  # int64 [N], which of the listing's images they are


def whole(
    path: str, size: int, *, group_by: str | None = None, channels: str | None = None
) -> Whole:
    """Every readable image, as `image_folder` reads them; `channels` is Pillow's L or RGB."""
    listing = list_images(path)
    groups, names = groups_of(listing, group_by)
    images, kept, notes = pack(listing, size, channels=channels)
    groups, names = _renumbered(groups[kept], names)
    data = Dataset(
        values=images,
        groups=groups,
        group_names=names,
        heldout=images[:0],
        heldout_groups=groups[:0],
        fingerprint=fingerprint(images, groups),
        rare=rare_group(groups, len(names)),
        files=tuple(np.array(listing.names, dtype=object)[kept]),
        notes=notes,
        attributes=_attributes(listing, kept),
    )
    return Whole(data, listing, kept)


def list_images(path: str) -> Listing:
    """Whatever a person means by a path: a folder, a file of images, or a name on the hub."""
    place = Path(path).expanduser()
    expected = "expected a folder of images, a .zip, .parquet, .npy or .npz file, or a hub name"
    if path and place.is_dir():
        return list_folder(place)
    if path and place.exists():
        if place.suffix.lower() not in READERS:
            raise UserError(f"{path!r} is a file; {expected}")
        return READERS[place.suffix.lower()](place)
    is_here = place.parent != Path() and place.parent.is_dir()  # then a folder was meant
    if HUB_NAME.fullmatch(path) and place.suffix.lower() not in READERS and not is_here:
        return list_hub(path, otherwise="if a folder was meant: there is none of this name")
    raise UserError(f"{path!r} does not exist; {expected}")


# --- sides ---------------------------------------------------------------------------------------


def side_of_first(path: Path) -> int:
    """The shorter side of the first image that can be read."""
    sides = _sides(list_images(str(path)), 1)
    if not sides:
        raise UserError(f"{path} holds no readable images; expected a folder of images")
    return sides[0]


def nearest_side(listing: Listing) -> int:
    """Of 32, 64, 128 and 256 the nearest to the median shorter side of the first images."""
    sides = _sides(listing, N_PEEK)
    median = float(np.median(sides)) if sides else 0.0
    return min(SIDES, key=lambda side: abs(side - median))


def _sides(listing: Listing, n: int) -> list[int]:
    """The shorter sides of the first n images that can be opened, by their headers."""

    def readable() -> Iterator[int]:
        for opener in listing.openers():
            try:
                with opened(opener()) as image:
                    side = min(image.size)
            except Exception:  # Pillow raises a dozen kinds for bad files
                continue
            yield side

    return list(islice(readable(), n))


# --- groups --------------------------------------------------------------------------------------


def groups_of(listing: Listing, group_by: str | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """int64 [N] and the groups' names: by a column, by sub-folders, or all in one."""
    if group_by is not None:
        if group_by not in listing.columns:
            raise UserError(
                f"{listing.where} has no column {group_by} to group by"
                f"{did_you_mean(group_by, listing.columns) if listing.columns else ''}"
            )
        return _numbered(listing.columns[group_by])
    for name in GROUP_COLUMNS:
        if name in listing.columns and len(set(listing.columns[name])) <= N_GROUPS_MAX:
            return _numbered(listing.columns[name])
    return _by_folder(listing.names)


def rare_group(groups: np.ndarray, n_groups: int) -> int | None:
    """The smallest group, where it holds less than a fifth of the samples and less than half of an
    equal share: of ten classes alike none is rare."""
    counts = np.bincount(groups, minlength=n_groups)
    is_rare = n_groups > 1 and counts.min() < min(RARE_SHARE, 0.5 / n_groups) * len(groups)
    return int(counts.argmin()) if is_rare else None


def hold_out(groups: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out indices; no group loses its last image to the held-out set.

    The same for every seed, so that runs of one folder can be compared image by image.
    """
    n_heldout = min(max(1, len(groups) // 50), 1_000)
    left = np.bincount(groups, minlength=n_groups)
    heldout: list[int] = []
    for i in numpy_generator(0, "data/folder").permutation(len(groups)):
        if left[groups[i]] > 1 and len(heldout) < n_heldout:
            heldout.append(int(i))
            left[groups[i]] -= 1
    chosen = np.sort(np.array(heldout, dtype=np.int64))
    return np.setdiff1d(np.arange(len(groups)), chosen), chosen


def _by_folder(files: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Sub-folders below what all paths share; one group if there is one, or each holds one."""
    parts = [path.split("/")[:-1] for path in files]
    shared = len(_common(parts))
    tops = [folders[shared] if len(folders) > shared else "(top level)" for folders in parts]
    counts = Counter(tops)
    if len(set(counts) - {"(top level)"}) < 2 or max(counts.values()) < 2:
        return np.zeros(len(files), dtype=np.int64), ("all",)
    return _numbered(np.array(tops, dtype=str))


def _common(parts: list[list[str]]) -> list[str]:
    first, last = min(parts), max(parts)
    n = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last)))
    return first[:n]


def _numbered(column: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    names, groups = np.unique(column, return_inverse=True)
    return groups.astype(np.int64), tuple(str(name) or "(none)" for name in names)


def _renumbered(groups: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Without the groups of which no image could be read."""
    used, again = np.unique(groups, return_inverse=True)
    return again.astype(np.int64), tuple(names[i] for i in used)


def _attributes(listing: Listing, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The columns that say yes or no, for these rows."""
    tables = {name: binary(column) for name, column in listing.columns.items()}
    return {name: values[rows] for name, values in tables.items() if values is not None}
