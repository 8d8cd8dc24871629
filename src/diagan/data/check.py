"""What training would make of a person's images, one by one, without training."""

from collections.abc import Iterator

import numpy as np
from PIL import Image

from diagan.config.datasets import SIDES
from diagan.data.folder import groups_of, list_images, nearest_side
from diagan.data.listing import (
    N_MIN,
    Listing,
    Survey,
    binary,
    changes,
    channels_of,
    pixels,
    what_is_there,
)
from diagan.errors import UserError

N_GROUPS_NAMED = 20


def check_images(path: str, size: int | None = None, group_by: str | None = None) -> Iterator[str]:
    """A line for each finding; every image is decoded, and none that is bad stops it.

    What `run` would refuse is refused here, after all that can be said.
    """
    if size is not None and size not in SIDES:
        raise UserError(f"--size {size}: expected a power of two from {SIDES[0]} to {SIDES[-1]}")
    listing = list_images(path)
    side, channels, found = size or nearest_side(listing), channels_of(listing), Survey()
    for _ in pixels(listing, channels, side, found, Image.Resampling.BILINEAR):
        pass  # `found` is what is wanted
    yield what_is_there(listing, found, channels, side)
    yield from changes(found)
    yield from _groups(listing, found, group_by)
    yield from _columns(listing)
    yield from listing.notes
    yield from (f"unreadable: {name} ({why})" for name, why in found.unreadable)
    if len(found.kept) < N_MIN:
        raise UserError(f"{path} holds too few to train on: at least {N_MIN} readable images are "
                        "needed")  # fmt: skip


def _groups(listing: Listing, found: Survey, group_by: str | None) -> Iterator[str]:
    groups, names = groups_of(listing, group_by)
    counts = np.bincount(groups[found.kept], minlength=len(names))
    if len(names) == 1:
        yield "no groups: no column group, label or class, and no two sub-folders"
        return
    order = np.argsort(-counts, kind="stable")
    shown = ", ".join(f"{names[i]} {counts[i]:,}" for i in order[:N_GROUPS_NAMED])
    more = f" and {len(names) - N_GROUPS_NAMED} more" if len(names) > N_GROUPS_NAMED else ""
    yield f"{len(names)} groups: {shown}{more}"


def _columns(listing: Listing) -> Iterator[str]:
    if listing.columns:
        yield f"columns: {', '.join(listing.columns)}"
    tables = {name: binary(column) for name, column in listing.columns.items()}
    shares = [f"{name} {has.mean():.1%}" for name, has in tables.items() if has is not None]
    if shares:
        yield f"attributes that say yes or no: {', '.join(shares)}"
