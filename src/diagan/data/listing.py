"""Images in order, wherever they are: a listing of them, and the packing of what can be read.

A folder, a zip, a table and an array each make a `Listing`; all that follows is the same for all.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from diagan.data.images import GREY, Source, decode, fit, opened, what_was_done, why_unreadable
from diagan.data.pack import Rows, load_or_pack
from diagan.errors import UserError

N_MIN = 10
N_NAMED = 10  # skipped files that are named one by one

Opener = Callable[[], Source]  # may raise: then the image is unreadable


@dataclass(frozen=True)
class Listing:
    """What the images are called and what is known about each; none is decoded yet."""

    where: str  # as the person wrote it
    names: list[str]  # a path in a folder or a zip, or the number of a row
    openers: Callable[[], Iterator[Opener]]  # one for each name
    content: Callable[[], str]  # a digest of all that the pixels depend on
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)  # words [N] each
    notes: tuple[str, ...] = ()  # what was left out, and why
    each: str = "images"

    def column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise UserError(
                f"{self.where} has no column {name}, only {', '.join(self.columns) or 'images'}"
            )
        return self.columns[name]


class Packed(NamedTuple):
    images: np.ndarray  # uint8 [n, C, size, size], memory-mapped
    kept: np.ndarray  # int64 [n], which of the listing's images they are
    notes: tuple[str, ...]


@dataclass
class Survey:
    """What was found while the images were read."""

    kept: list[int] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # name, reason
    done: Counter[str] = field(default_factory=Counter)  # changes, in words
    sides: Counter[tuple[int, int]] = field(default_factory=Counter)  # width, height


def pack(
    listing: Listing,
    size: int,
    *,
    channels: str | None = None,
    resample: Image.Resampling = Image.Resampling.BILINEAR,
) -> Packed:
    """Every readable image as uint8 [C, size, size], from the cache if it is there.

    `channels` is Pillow's L or RGB; by default L where all images are grey.
    """

    def read() -> Rows:
        used = channels or channels_of(listing)
        about: dict[str, Any] = {"notes": []}

        def rows() -> Iterator[np.ndarray]:
            found = Survey()
            yield from pixels(listing, used, size, found, resample)
            about["kept"] = found.kept
            about["notes"] += survey_notes(listing, found, used, size)
            if len(found.kept) < N_MIN:
                names = [name for name, _ in found.unreadable]
                raise UserError(
                    f"{listing.where} holds {len(found.kept)} readable images of "
                    f"{len(listing.names)} files; at least {N_MIN} are needed"
                    f"{listed(', unreadable: ', names)}"
                )

        return Rows(len(listing.names), (len(used), size, size), rows(), about)

    key = ("listing", listing.content(), size, channels, int(resample))
    images, about = load_or_pack(f"images-{size}", key, read)
    kept = np.array(about["kept"], dtype=np.int64)
    return Packed(images, kept, (*about["notes"], *listing.notes))


def pixels(
    listing: Listing, channels: str, size: int, found: Survey, resample: Image.Resampling
) -> Iterator[np.ndarray]:
    """uint8 [C, size, size] of each readable image; `found` is filled on the way."""
    for i, opener in enumerate(listing.openers()):
        try:
            decoded = decode(opener())
            fitted = np.asarray(fit(decoded.image.convert(channels), size, resample))
        except Exception as error:  # Pillow raises a dozen kinds for bad files and bombs
            found.unreadable.append((listing.names[i], why_unreadable(error)))
            continue
        found.kept.append(i)
        found.sides[decoded.image.size] += 1
        found.done.update(what_was_done(decoded, channels, size))
        yield fitted.reshape(size, size, -1).transpose(2, 0, 1)


def channels_of(listing: Listing) -> str:
    """L where all images are grey, by their headers; one that cannot be opened has no say."""

    def is_grey(opener: Opener) -> bool:
        try:
            with opened(opener()) as image:
                return image.mode in GREY
        except Exception:
            return True

    return "L" if all(map(is_grey, listing.openers())) else "RGB"


def survey_notes(listing: Listing, found: Survey, channels: str, size: int) -> list[str]:
    """What was read, skipped and converted."""
    names = [name for name, _ in found.unreadable]
    skipped = [listed(f"{len(names):,} unreadable, skipped: ", names)] if names else []
    return [what_is_there(listing, found, channels, size), *skipped, *changes(found)]


def what_is_there(listing: Listing, found: Survey, channels: str, size: int) -> str:
    colour = "grey" if channels == "L" else "RGB"
    return (
        f"{len(listing.names):,} {listing.each}, {len(found.kept):,} readable; used as "
        f"{size} x {size} {colour}"
    )


def changes(found: Survey) -> list[str]:
    """How many images were converted, turned, resized and cropped."""
    sizes = [f"{len(found.sides):,} different sizes"] if len(found.sides) > 1 else []
    return sizes + [f"{count:,} {what}" for what, count in found.done.most_common()]


def listed(before: str, names: list[str]) -> str:
    """The first ten names and how many more; nothing if there are none."""
    more = f" and {len(names) - N_NAMED:,} more" if len(names) > N_NAMED else ""
    return f"{before}{', '.join(names[:N_NAMED])}{more}" if names else ""


def binary(column: np.ndarray) -> np.ndarray | None:
    """A yes-or-no column as int64 of 0 and 1 [N]; None if it says anything else.

    Yes and no are written 1 and 0, 1 and -1 (CelebA), or true and false.
    """
    known = {"1": 1, "true": 1, "0": 0, "-1": 0, "false": 0}
    words, which = np.unique(column, return_inverse=True)
    values = [known.get(word.strip().lower()) for word in words]
    if None in values or len(set(values)) != len(values):  # also 0 beside -1: not two answers
        return None
    return np.array(values, dtype=np.int64)[which]
