"""A person's own folder of images: whatever is in it is converted and said, never died of."""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from diagan.config import ImageFolder
from diagan.data.dataset import Dataset, fingerprint
from diagan.data.pack import Rows, load_or_pack
from diagan.errors import UserError
from diagan.random import numpy_generator

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
N_MIN = 10
N_NAMED = 10  # skipped files that are named one by one
RARE_SHARE = 0.2
EXIF_ORIENTATION = 0x0112
# Pillow's modes
SIXTEEN_BIT = {"I", "I;16", "I;16B", "I;16L", "I;16N"}
GREY = {"1", "L", "LA", *SIXTEEN_BIT}


def image_folder(config: ImageFolder, seed: int, root: str | None = None) -> Dataset:
    """Every readable image below the path; 2 % of them, at most 1,000, are held out.

    Top-level sub-folders are the groups, where there are two or more of them.
    """
    folder = Path(config.path).expanduser()
    if not config.path or not folder.is_dir():
        what = "is a file" if config.path and folder.exists() else "does not exist"
        raise UserError(f"--data {config.path!r} {what}; expected a folder of images")
    paths = _image_files(folder)
    if not paths:
        raise UserError(
            f"{folder} holds no images; expected files that end in {', '.join(sorted(SUFFIXES))}"
        )
    key = ("folder", _content(folder, paths), config.size)
    images, about = load_or_pack(
        f"folder-{config.size}", key, lambda: _decoded(folder, paths, config.size)
    )
    files = np.array(about["files"], dtype=object)
    groups, names = _groups(about["files"])
    train, heldout = _hold_out(groups, len(names), seed)
    values = np.asarray(images[train])
    counts = np.bincount(groups[train], minlength=len(names))
    is_rare = len(names) > 1 and counts.min() < RARE_SHARE * len(train)
    return Dataset(
        values=values,
        groups=groups[train],
        group_names=names,
        heldout=np.asarray(images[heldout]),
        heldout_groups=groups[heldout],
        fingerprint=fingerprint(values, groups[train]),
        rare=int(counts.argmin()) if is_rare else None,
        files=tuple(files[train]),
        notes=tuple(about["notes"]),
    )


def _image_files(folder: Path) -> list[str]:
    """Paths below the folder, relative and sorted; links are followed, each folder once."""
    found: list[str] = []
    seen: set[str] = set()
    for parent, children, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(parent)
        if real in seen:  # a link back to a folder that was walked already
            children.clear()
            continue
        seen.add(real)
        for name in names:
            path = Path(parent, name)
            if path.suffix.lower() in SUFFIXES and path.is_file():
                found.append(path.relative_to(folder).as_posix())
    return sorted(found)


def _content(folder: Path, paths: list[str]) -> str:
    """sha256 over every file's relative path and bytes."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            content = hashlib.sha256((folder / path).read_bytes()).digest()
        except OSError:  # will be listed as unreadable
            content = b"unreadable"
        digest.update(hashlib.sha256(os.fsencode(path)).digest() + content)
    return digest.hexdigest()


# --- pixels --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decoded:
    image: Image.Image  # L or RGB, upright, as large as it was
    mode: str  # Pillow's name for what it was
    has_alpha: bool
    turned: bool


def decode(path: Path) -> Decoded:
    """One image (the first frame of an animation) as 8 bit grey or RGB; raises if it is unsound.

    EXIF orientation is applied, transparency is laid on white, 16 bit is scaled to 8.
    """
    with Image.open(path) as opened:
        mode = opened.mode
        turned = opened.getexif().get(EXIF_ORIENTATION) in range(2, 9)
        image = ImageOps.exif_transpose(opened)
    has_alpha = image.has_transparency_data and mode not in SIXTEEN_BIT
    if mode in SIXTEEN_BIT:
        levels = np.asarray(image).astype(np.int64)
        if levels.min() < 0 or levels.max() > 65535:
            raise ValueError("more than 16 bits a pixel")
        image = Image.fromarray(((levels * 255 + 32767) // 65535).astype(np.uint8))
    elif mode == "F":
        raise ValueError("floating-point pixels, of no known range")
    elif has_alpha:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    image = image.convert("L" if mode in GREY else "RGB")
    return Decoded(image, mode, has_alpha, turned)


def side_of_first(folder: Path) -> int:
    """The shorter side of the first image that can be read."""
    for path in _image_files(folder):
        with contextlib.suppress(Exception):  # Pillow raises a dozen kinds for bad files
            return min(decode(folder / path).image.size)
    raise UserError(f"{folder} holds no readable images; expected a folder of images")


def fit(image: Image.Image, size: int) -> Image.Image:
    """Shorter side to `size` (PIL's bilinear, antialiased when it shrinks), then the centre."""
    width, height = image.size
    scale = size / min(width, height)
    width, height = max(size, round(width * scale)), max(size, round(height * scale))
    if (width, height) != image.size:
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))


def _decoded(folder: Path, paths: list[str], size: int) -> Rows:
    channels = "L" if all(_is_grey(folder / path) for path in paths) else "RGB"
    shape = (len(channels), size, size)
    about: dict[str, list[str]] = {"files": [], "notes": []}

    def rows() -> Iterator[np.ndarray]:
        skipped: list[str] = []
        seen: Counter[str] = Counter()
        sizes: set[tuple[int, int]] = set()
        for path in paths:
            printable = os.fsencode(path).decode("utf-8", "backslashreplace")
            try:
                decoded = decode(folder / path)
                pixels = np.asarray(fit(decoded.image.convert(channels), size))
            except Exception:  # Pillow raises a dozen kinds for bad files and bombs
                skipped.append(printable)
                continue
            about["files"].append(printable)
            sizes.add(decoded.image.size)
            seen.update(_what_was_done(decoded, channels, size))
            yield pixels.reshape(size, size, -1).transpose(2, 0, 1)  # [C, size, size]
        about["notes"] += _notes(len(paths), skipped, seen, len(sizes), channels, size)
        if len(about["files"]) < N_MIN:
            raise UserError(
                f"{folder} holds {len(about['files'])} readable images of {len(paths)} files; "
                f"at least {N_MIN} are needed{_listed(', unreadable: ', skipped)}"
            )

    return Rows(len(paths), shape, rows(), about)


def _is_grey(path: Path) -> bool:
    """By the header only; a file that cannot be opened has no say."""
    try:
        with Image.open(path) as opened:
            return opened.mode in GREY
    except Exception:
        return True


# --- words ---------------------------------------------------------------------------------------


def _what_was_done(decoded: Decoded, channels: str, size: int) -> Iterator[str]:
    """The changes to one image, in the words of the notes."""
    if decoded.mode in SIXTEEN_BIT:
        yield "scaled from 16 bit to 8 bit"
    if decoded.has_alpha:
        yield "with transparency, laid on white"
    if decoded.mode in GREY and channels == "RGB":
        yield "converted from grey to RGB"
    elif decoded.mode not in GREY and decoded.mode not in ("RGB", "RGBA"):
        yield f"converted from {'palette' if decoded.mode == 'P' else decoded.mode} to RGB"
    if decoded.turned:
        yield "turned upright as their EXIF data say"
    width, height = decoded.image.size
    if min(width, height) != size:
        yield f"{'enlarged' if min(width, height) < size else 'reduced'} to {size} pixels"
    if width != height:
        yield "cropped to the central square"


def _notes(
    n: int, skipped: list[str], seen: Counter[str], n_sizes: int, channels: str, size: int
) -> list[str]:
    colour = "grey" if channels == "L" else "RGB"
    readable = n - len(skipped)
    notes = [f"{n:,} image files, {readable:,} readable; used as {size} x {size} {colour}"]
    if skipped:
        notes.append(_listed(f"{len(skipped):,} unreadable, skipped: ", skipped))
    if n_sizes > 1:
        notes.append(f"{n_sizes:,} different sizes")
    notes += [f"{count:,} {what}" for what, count in seen.most_common()]
    return notes


def _listed(before: str, names: list[str]) -> str:
    """The first ten names and how many more; nothing if there are none."""
    more = f" and {len(names) - N_NAMED:,} more" if len(names) > N_NAMED else ""
    return f"{before}{', '.join(names[:N_NAMED])}{more}" if names else ""


# --- groups --------------------------------------------------------------------------------------


def _groups(files: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Top-level sub-folders as groups [N]; one group if there is one, or each holds one image."""
    tops = [path.partition("/")[0] if "/" in path else "(top level)" for path in files]
    counts = Counter(tops)
    n_folders = len(set(counts) - {"(top level)"})
    if n_folders < 2 or max(counts.values()) < 2:
        return np.zeros(len(files), dtype=np.int64), ("all",)
    names = tuple(sorted(counts))
    index = {name: i for i, name in enumerate(names)}
    return np.array([index[top] for top in tops], dtype=np.int64), names


def _hold_out(groups: np.ndarray, n_groups: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out indices; no group loses its last image to the held-out set."""
    n_heldout = min(max(1, len(groups) // 50), 1_000)
    left = np.bincount(groups, minlength=n_groups)
    heldout: list[int] = []
    for i in numpy_generator(seed, "data/folder").permutation(len(groups)):
        if left[groups[i]] > 1 and len(heldout) < n_heldout:
            heldout.append(int(i))
            left[groups[i]] -= 1
    chosen = np.sort(np.array(heldout, dtype=np.int64))
    return np.setdiff1d(np.arange(len(groups)), chosen), chosen
