"""Grids of images one below the other, each under its name: what the scripts beside show."""

from collections.abc import Mapping

import numpy as np
from PIL import Image, ImageDraw

from diagan.sample import image_grid

TITLE = 20  # pixels above a grid


def strips(kinds: Mapping[str, np.ndarray], columns: int) -> Image.Image:
    """uint8 images [n, C, H, W] by name."""
    grids = [image_grid(images, columns=columns, scale=2) for images in kinds.values()]
    size = (max(g.width for g in grids), sum(TITLE + g.height for g in grids))
    sheet = Image.new("RGB", size, "white")
    top = 0
    for name, grid in zip(kinds, grids):
        ImageDraw.Draw(sheet).text((3, top + 2), name, fill="black", font_size=14)
        sheet.paste(grid, (0, top + TITLE))
        top += TITLE + grid.height
    return sheet
