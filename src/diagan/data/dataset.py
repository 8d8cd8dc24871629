"""What every source gives back, and the fingerprint that says which data it was."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from diagan.errors import UserError


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training samples with their groups, and held-out samples that are never trained on."""

    values: np.ndarray  # uint8 [N, C, H, W] images, or float32 [N, 2] points
    groups: np.ndarray  # int64 [N], index into group_names
    group_names: tuple[str, ...]
    heldout: np.ndarray  # same layout as values
    heldout_groups: np.ndarray
    fingerprint: str  # of values and groups
    rare: int | None = None  # index of the rare group, where one is known
    labels: np.ndarray | None = None  # int64 [N], digit or class
    files: tuple[str, ...] | None = None  # relative paths in a folder or zip, or row numbers
    notes: tuple[str, ...] = ()  # in plain words: what was converted, skipped, resized
    attributes: Mapping[str, np.ndarray] = field(default_factory=dict)  # int64 [N]: 1 has it, 0 not
    heldout_attributes: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return tuple(self.values.shape[1:])

    @property
    def is_image(self) -> bool:
        return self.values.dtype == np.uint8

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """What is known of each training sample, by the names of samples.parquet."""
        found = {"group": np.array(self.group_names)[self.groups]}
        if not self.is_image:
            found |= {"x": self.values[:, 0], "y": self.values[:, 1]}
        if self.labels is not None:
            found["label"] = self.labels
        if self.files is not None:
            found["file"] = np.array(self.files)
        return found | {f"attribute:{name}": has for name, has in self.attributes.items()}


def fingerprint(*arrays: np.ndarray) -> str:
    """The first 16 hex digits of a sha256 over the arrays' types, shapes and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(flat_bytes(array))
    return digest.hexdigest()[:16]


def flat_bytes(array: np.ndarray) -> memoryview:
    """The bytes of an array, in order, as something that can be hashed or written."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def expect_enough(n: int, available: int, what: str) -> None:
    if n > available:
        raise UserError(f"--data.n {n}: expected at most {available:,}, of {what}")
