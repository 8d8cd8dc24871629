"""Images as data URIs, small enough that the page stays one file that can be mailed."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from diagan.findings.closeness import SIDE

GRID = 560  # pixels a side at most
QUALITIES = (90, 75, 55)


@dataclass(frozen=True)
class Sprite:
    """Many small pictures in one, row by row; all of one size."""

    uri: str
    n: int
    n_columns: int
    ratio: float  # width / height of a cell

    @property
    def n_rows(self) -> int:
        return -(-self.n // self.n_columns)

    @property
    def css(self) -> str:
        """The background of an element that shows one of them, but for its position."""
        return f'url("{self.uri}") 0 0/{100 * self.n_columns}% {100 * self.n_rows}%'

    def position(self, at: int) -> str:
        """Where picture `at` lies, in percent, as CSS wants it."""
        row, column = divmod(at, self.n_columns)
        x, y = 100 * column / max(self.n_columns - 1, 1), 100 * row / max(self.n_rows - 1, 1)
        return f"{x:.4f}% {y:.4f}%"


def sprite(images: np.ndarray, budget: int) -> Sprite:
    """uint8 [n, h, w, C] in at most about `budget` bytes: PNG, else JPEG, else also smaller."""
    n, h, w, _ = images.shape
    n_columns = int(np.ceil(np.sqrt(n)))
    sheet = _sheet(images, n_columns)
    file, kind = _png(sheet), "png"
    while file.tell() > budget:
        for quality in QUALITIES:
            file, kind = io.BytesIO(), "jpeg"
            sheet.save(file, "JPEG", quality=quality, subsampling=0)
            if file.tell() <= budget:
                break
        else:
            if min(h, w) <= SIDE:  # noise of a thousand samples: let it be large
                break
            images = _halved(images)
            _, h, w, _ = images.shape
            sheet = _sheet(images, n_columns)
    return Sprite(_uri(file, kind), n, n_columns, w / h)


def _sheet(images: np.ndarray, n_columns: int) -> Image.Image:
    """Cells side by side; the cells of what is left over are black."""
    n, h, w, c = images.shape
    n_rows = -(-n // n_columns)
    sheet = np.zeros((n_rows * n_columns, h, w, c), dtype=np.uint8)
    sheet[:n] = images
    sheet = sheet.reshape(n_rows, n_columns, h, w, c).swapaxes(1, 2)  # [rows, h, columns, w, c]
    pixels = sheet.reshape(n_rows * h, n_columns * w, c)
    return Image.fromarray(pixels.squeeze(2) if c == 1 else pixels)


def _halved(images: np.ndarray) -> np.ndarray:
    n, h, w, c = images.shape
    even = images[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c)
    halved: np.ndarray = even.mean(axis=(2, 4)).round().astype(np.uint8)
    return halved


def _png(image: Image.Image) -> io.BytesIO:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file


def _uri(file: io.BytesIO, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def data_uri(image: Image.Image) -> str:
    """PNG; what takes over half a byte a pixel there, such as photographs, as JPEG."""
    image = image if image.mode in ("L", "RGB") else image.convert("RGB")
    file, kind = _png(image), "png"
    if file.tell() > max(image.width * image.height // 2, 2_000):
        file, kind = io.BytesIO(), "jpeg"
        image.save(file, "JPEG", quality=80, subsampling=0)
    return _uri(file, kind)


def grid(file: Path, part: float = 1.0, side: int = GRID) -> str:
    """A grid of generated images as it is stored, or its first part; smaller where it is large."""
    with Image.open(file) as image:
        shown = image.crop((0, 0, round(image.width * part), round(image.height * part)))
    shown.thumbnail((side, side))
    return data_uri(shown)


def nearest(*, real: np.ndarray, fake: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The n nearest of features [F, D] to each of [M, D], nearest first, and the least distance."""
    squared = (
        (real**2).sum(axis=1)[:, None] + (fake**2).sum(axis=1)[None] - 2 * real @ fake.T
    )  # [M, F]
    n = min(n, len(fake))
    some = np.argpartition(squared, n - 1, axis=1)[:, :n]
    order = np.argsort(np.take_along_axis(squared, some, axis=1), axis=1, kind="stable")
    found = np.take_along_axis(some, order, axis=1)  # [M, n]
    least = np.take_along_axis(squared, found[:, :1], axis=1)[:, 0]
    return found, np.sqrt(np.maximum(least, 0))
