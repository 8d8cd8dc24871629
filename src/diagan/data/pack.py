"""The cache of decoded images and of features: one array a source, made once, then memory-mapped.

`<name>-<key>.npy` holds the rows, `<name>-<key>.json` what is known about them and their sha256.
Both appear whole or not at all; whatever does not match its sha256 is packed again.
"""

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import PIL

from diagan.data.dataset import flat_bytes
from diagan.errors import UserError

FORMAT = 1
SPARE_BYTES = 64 * 2**20  # left free on the disk


@dataclass(frozen=True)
class Rows:
    """What is to be packed: at most `n_max` rows; `about` may be filled while they are read."""

    n_max: int
    shape: tuple[int, ...]
    rows: Iterator[np.ndarray]
    about: dict[str, Any] = field(default_factory=dict)
    dtype: str = "|u1"  # as numpy writes it


def cache_dir() -> Path:
    return Path(os.environ.get("DIAGAN_CACHE") or "~/.cache/diagan").expanduser()


def load_or_pack(
    name: str, key: tuple[object, ...], read: Callable[[], Rows]
) -> tuple[np.ndarray, dict[str, Any]]:
    """The rows [N, ...] (read-only, memory-mapped) and what is known about them.

    `read` is called only if the cache has no sound copy. `key` says all that the pixels depend on;
    Pillow's version is added to it.
    """
    digest = hashlib.sha256(repr((FORMAT, PIL.__version__, *key)).encode()).hexdigest()[:16]
    path = cache_dir() / f"{name}-{digest}.npy"
    found = _load(path)
    if found is None:
        _pack(path, read())
        found = _load(path)
    if found is None:
        raise UserError(f"{path} could not be read back; check the disk or set DIAGAN_CACHE")
    return found


def mapped(rows: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Some rows of the cache, left on the disk: sets that need not fit into memory.

    torch wants arrays that can be written to; what is written stays in memory (copy on write).
    """
    assert isinstance(rows, np.memmap) and rows.filename
    again = np.memmap(rows.filename, rows.dtype, "c", rows.offset, rows.shape)
    return np.asarray(again[start:stop])


def _load(path: Path) -> tuple[np.ndarray, dict[str, Any]] | None:
    try:
        meta = json.loads(path.with_suffix(".json").read_text())
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
        sound = hashlib.sha256(flat_bytes(rows)).hexdigest() == meta["sha256"]
        return (rows, meta["about"]) if sound else None
    except (OSError, ValueError, EOFError, KeyError, TypeError):  # missing, truncated or garbled
        return None


def _pack(path: Path, source: Rows) -> None:
    need = source.n_max * math.prod(source.shape) * np.dtype(source.dtype).itemsize
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(path.parent).free
        if free < need + SPARE_BYTES:
            raise UserError(
                f"the cache needs {(need + SPARE_BYTES) / 1e6:,.0f} MB in {path.parent}, where "
                f"{free / 1e6:,.0f} MB are free; make room, or set DIAGAN_CACHE to a folder on "
                "another disk"
            )
        digest, n = hashlib.sha256(), 0
        with _atomic(path) as file:
            _write_header(file, source, source.n_max)
            for row in source.rows:
                digest.update(flat_bytes(row))
                file.write(flat_bytes(row))
                n += 1
            file.seek(0)  # numpy pads the header, so that the first axis can change in place
            _write_header(file, source, n)
        with _atomic(path.with_suffix(".json")) as file:  # last: it vouches for the array
            meta = {"sha256": digest.hexdigest(), "about": source.about}
            file.write(json.dumps(meta).encode())
    except OSError as error:
        raise UserError(
            f"the cache in {path.parent} cannot be written ({error.strerror or error}); "
            "set DIAGAN_CACHE to a folder that can"
        ) from None


def _write_header(file: BinaryIO, source: Rows, n: int) -> None:
    shape = (n, *source.shape)
    header = {"descr": source.dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


@contextmanager
def _atomic(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its name once it is whole and on the disk."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
