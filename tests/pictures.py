"""Small random pictures, as files and as bytes."""

import io

import numpy as np
from PIL import Image


def photo(seed=0, size=(32, 32), mode="RGB"):
    shape = (size[1], size[0], 3)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(image, kind="PNG"):
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def pixels(image):
    """uint8 [C, H, W]"""
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
