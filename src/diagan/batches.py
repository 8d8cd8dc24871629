"""How many samples go through a network at once, where only speed and memory depend on it."""

from collections.abc import Sequence
from math import prod

PIXELS = 2**19  # of one channel: 512 images of 32x32, 128 of 64x64, 8 of 256x256


def at_once(shape: Sequence[int], most: int) -> int:
    """How many samples of `shape`, [C, H, W] or [2]: 1 to `most`, fewer the more pixels they have.

    What a forward holds in memory grows with the pixels of the batch.
    """
    return min(most, max(PIXELS // prod(shape[1:]), 1))
