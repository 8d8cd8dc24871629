"""CIFAR-10: its 10 classes are the groups, its test images are held out (FACTS 1.7)."""

import numpy as np

from diagan.config import Cifar10
from diagan.data.dataset import Dataset, expect_enough, fingerprint
from diagan.data.listing import pack
from diagan.data.tables import list_split

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)


def cifar10(config: Cifar10, seed: int, root: str | None = None) -> Dataset:
    """The first n training images, and test images in CIFAR-10's proportion of 5 to 1."""
    values, groups = _split("train", config.size, root)
    expect_enough(config.n, len(values), "CIFAR-10's training images")
    values, groups = np.array(values[: config.n]), groups[: config.n]
    heldout, heldout_groups = _split("test", config.size, root)
    n_heldout = max(1, config.n // 5)
    return Dataset(
        values=values,
        groups=groups,
        group_names=CLASSES,
        heldout=np.array(heldout[:n_heldout]),
        heldout_groups=heldout_groups[:n_heldout],
        fingerprint=fingerprint(values, groups),
        labels=groups,
        notes=(f"{len(values):,} training images of CIFAR-10 in {len(CLASSES)} classes",),
    )


def _split(split: str, size: int, root: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 [N, 3, size, size] (memory-mapped) and classes int64 [N]."""
    listing = list_split("cifar10", split, root)
    images, kept, _ = pack(listing, size, channels="RGB")
    # A table that knows the names of its classes gives those, any other their numbers.
    number = {name: i % 10 for i, name in enumerate((*CLASSES, *map(str, range(10))))}
    return images, np.array([number[word] for word in listing.column("label")[kept]])
