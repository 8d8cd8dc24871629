"""Images as data URIs, small enough that the page stays one file that can be mailed."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

THUMBNAIL = 64  # pixels a side at most
GRID = 560
SPRITE_PIXELS = 400_000
SMALL = 2_000  # bytes that any image may take
QUALITIES = (90, 75, 50)  # of JPEG
SPRITE_SCREEN = 80  # CSS pixels a side, about


@dataclass(frozen=True)
class Sprite:
    """Many thumbnails in one picture: a cell a dataset index, in CSS pixels."""

    uri: str
    cell: int
    width: int
    places: dict[int, tuple[int, int]]  # index -> (left, top)


def data_uri(image: Image.Image) -> str:
    """PNG; what takes over a byte a pixel there, such as photographs, as JPEG of about a byte."""
    image = image if image.mode in ("L", "RGB") else image.convert("RGB")
    allowed = max(image.width * image.height, SMALL)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    kind = "png"
    for quality in QUALITIES:
        if file.tell() <= allowed:
            break
        file, kind = io.BytesIO(), "jpeg"
        image.save(file, "JPEG", quality=quality, subsampling=0)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def thumbnail(pixels: np.ndarray) -> Image.Image:
    """uint8 [H, W, C], C of 1 or 3, no larger than a thumbnail."""
    image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    return image


def grid(file: Path) -> str:
    """A grid of generated images as it is stored, made smaller where it is large."""
    with Image.open(file) as image:
        image.thumbnail((GRID, GRID))
        return data_uri(image)


def sprite(images: dict[int, np.ndarray]) -> Sprite | None:
    """The first of the images, as many as the page can carry."""
    cells: dict[int, Image.Image] = {}
    side = 1
    for index, pixels in images.items():
        cell = thumbnail(pixels)
        side = max(side, *cell.size)
        if (len(cells) + 1) * side**2 > SPRITE_PIXELS:
            break
        cells[index] = cell
    if not cells:
        return None
    n_columns = int(np.ceil(np.sqrt(len(cells))))
    n_rows = -(-len(cells) // n_columns)
    scale = max(1, round(SPRITE_SCREEN / side))
    sheet = Image.new("RGB", (n_columns * side, n_rows * side))
    places = {}
    for number, (index, cell) in enumerate(cells.items()):
        row, column = divmod(number, n_columns)
        sheet.paste(cell, (column * side, row * side))
        places[index] = (column * side * scale, row * side * scale)
    return Sprite(data_uri(sheet), side * scale, n_columns * side * scale, places)
