"""One image: opened by Pillow whatever it is, brought to 8 bit and to a square, and said so."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
EXIF_ORIENTATION = 0x0112
# Pillow's modes
SIXTEEN_BIT = {"I", "I;16", "I;16B", "I;16L", "I;16N"}
GREY = {"1", "L", "LA", *SIXTEEN_BIT}

Source = Path | BinaryIO | Image.Image


@dataclass(frozen=True)
class Decoded:
    image: Image.Image  # L or RGB, upright, as large as it was
    mode: str  # Pillow's name for what it was
    has_alpha: bool
    turned: bool


def opened(source: Source) -> Image.Image:
    """The image, of which only the header has been read."""
    return source if isinstance(source, Image.Image) else Image.open(source)


def decode(source: Source) -> Decoded:
    """One image (the first frame of an animation) as 8 bit grey or RGB; raises if it is unsound.

    EXIF orientation is applied, transparency is laid on white, 16 bit is scaled to 8.
    """
    with opened(source) as raw:
        mode = raw.mode
        turned = raw.getexif().get(EXIF_ORIENTATION) in range(2, 9)
        image = ImageOps.exif_transpose(raw)
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


def fit(
    image: Image.Image, size: int, resample: Image.Resampling = Image.Resampling.BILINEAR
) -> Image.Image:
    """Shorter side to `size` (PIL's, antialiased when it shrinks), then the centre."""
    width, height = image.size
    scale = size / min(width, height)
    width, height = max(size, round(width * scale)), max(size, round(height * scale))
    if (width, height) != image.size:
        image = image.resize((width, height), resample)
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))


def what_was_done(decoded: Decoded, channels: str, size: int) -> Iterator[str]:
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


def why_unreadable(error: Exception) -> str:
    """What Pillow or the disk said, in a few words and without addresses of objects."""
    if isinstance(error, UnidentifiedImageError):
        return "not an image"
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said.strip().partition("\n")[0] or type(error).__name__
