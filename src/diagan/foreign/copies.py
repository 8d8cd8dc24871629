"""Which images are copies of each other: the same pixels, or nearly so."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SIDE = 8  # copies are looked for among images reduced to 8 x 8
COARSE = 4  # candidates have the same grey 4 x 4, rounded
STEP = 32  # of 256 levels, to which these are rounded
NEAR, GRAIN = 0.09, 0.5  # near copies differ (r.m.s.) by at most 0.09 of their contrast + 0.5 level
N_NEXT = 4  # candidates with which each is compared
CHUNK = 1_000  # images that are reduced at once
Floats = NDArray[np.float32]


def families(*sets: NDArray[np.uint8]) -> NDArray[np.int64]:
    """A number for each image of sets [N, C, H, W] in a row; copies have the same one.

    Near copies are images encoded anew or rescaled: candidates whose coarse pixels round to the
    same levels at one of four offsets, and that hardly differ when they are reduced.
    """
    small = np.concatenate([reduced(images, SIDE) for images in sets])  # [N, C, 8, 8]
    contrast = small.std(axis=(1, 2, 3))  # in levels
    parent = np.arange(len(small))
    for pairs in candidates(small):  # [P, 2]
        squares = (small[pairs[:, 0]] - small[pairs[:, 1]]) ** 2
        apart = np.sqrt(squares.mean(axis=(1, 2, 3)))
        near = NEAR * contrast[pairs].min(axis=1) + GRAIN
        for i, j in pairs[apart <= near].tolist():
            low, high = sorted((_root(parent, i), _root(parent, j)))
            parent[high] = low
    return np.array([_root(parent, i) for i in range(len(parent))], dtype=np.int64)


def candidates(small: Floats) -> Iterator[NDArray[np.int64]]:
    """Pairs [P, 2] with the same rounded 4 x 4, each with the next few in order of brightness."""
    coarse = reduced(small, COARSE).mean(axis=1).reshape(len(small), -1)  # [N, 16]
    brightness = small.mean(axis=(1, 2, 3))
    for offset in range(0, STEP, STEP // 4):
        keys = np.ascontiguousarray(((coarse + offset) // STEP).astype(np.uint8))
        _, bucket = np.unique(keys, axis=0, return_inverse=True)
        bucket = bucket.reshape(-1)
        order = np.lexsort((brightness, bucket))
        for ahead in range(1, N_NEXT + 1):
            first, second = order[:-ahead], order[ahead:]
            same = bucket[first] == bucket[second]
            yield np.stack([first[same], second[same]], axis=1)


def reduced(images: NDArray[np.uint8] | Floats, side: int) -> Floats:
    """Means over equal parts, [N, C, side, side]; smaller images stay as they are."""
    height, width = images.shape[2:]
    rows, columns = _edges(height, side), _edges(width, side)
    sizes = np.outer(np.diff(rows, append=height), np.diff(columns, append=width))
    found = np.empty((*images.shape[:2], len(rows), len(columns)), dtype=np.float32)
    for start in range(0, len(images), CHUNK):
        part = images[start : start + CHUNK].astype(np.float32)
        sums = np.add.reduceat(np.add.reduceat(part, rows, axis=2), columns, axis=3)
        found[start : start + CHUNK] = sums / sizes
    return found


def _edges(length: int, n: int) -> NDArray[np.int64]:
    return np.unique(np.arange(n) * length // n)


def _root(parent: NDArray[np.int64], i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]  # shortens the way for the next
        i = int(parent[i])
    return i
