"""Records that any trainer wrote (docs/formats.md) -> the folder of a diagnosis.

Read one record, or one block of samples, at a time: a million samples need no more memory.
"""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from diagan.config import ROBUST_SCORE, Score
from diagan.data.folder import Whole, rare_group
from diagan.data.listing import listed
from diagan.diagnosis import Diagnosis, Grouping
from diagan.errors import UserError
from diagan.foreign import diagnosed
from diagan.record import LdrRecord
from diagan.rundir import RunDir, read_json

Rows = Literal["auto", "records", "samples"]
BLOCK = 2**16  # samples, or lines of a table, at a time
EXPECTED = (
    "expected a record/ folder, a .npy of logits [T, N] or [N, T], a .npz with `logits` [T, N], or "
    "a .parquet with the columns index, step and logit (docs/formats.md)"
)


@dataclass(frozen=True)
class Foreign:
    """A record that somebody else wrote, before it is read."""

    n: int
    steps: list[int]
    fill: Callable[[Path], None]  # writes it as files of our own into a folder
    groups: NDArray[np.str_] | None = None  # [N], where they came with it
    about: dict[str, Any] | None = None  # the meta.json of a record/ folder


def diagnose_record(
    path: str | Path, *, out: str | Path, data: str | None = None, score: Score | None = None,
    rows: Rows = "auto", window: int | None = None, is_ldr: bool = True,
    group_by: str | None = None,
) -> Diagnosis:  # fmt: skip
    """Score and weigh the samples of a record from its last `window` records, or from all.

    `data` are its samples in the same order: a folder (by path), .zip, .parquet, .npy or .npz.
    """
    images = diagnosed.read_images(data, group_by=group_by) if data else None
    record = open_record(Path(path), rows, images.data.n if images else None)
    if images:
        expect_same(record, images, str(path))
    if window is not None and window < 1:
        raise UserError(f"--window {window}: expected at least 1")
    about = {"mode": "record", "is_ldr": is_ldr}
    if record.about and record.about.get("is_ldr") is False:
        about["is_ldr"] = False
    grouping, columns = known(record, images)
    with diagnosed.making(out) as run:
        fill(run, record, about)
        ours = LdrRecord(run.record, record.n)
        steps = ours.steps[-window:] if window else ours.steps
        found = diagnosed.from_records(
            (ours.read(step) for step in steps), len(steps), score or ROBUST_SCORE, grouping
        )
        diagnosed.write(
            run, found, columns=columns, images=images.data.values if images else None,
            about={**about, "first_step": steps[0], "last_step": steps[-1]},
            provenance=origin(path, record, images),
        )  # fmt: skip
    return found


def fill(run: RunDir, record: Foreign, about: dict[str, Any]) -> None:
    if not record.steps:
        raise UserError("the record holds no logits; record at least once")
    meta = {key: value for key, value in (record.about or {}).items() if key not in ("format", "n")}
    LdrRecord(run.record, record.n, **{"mode": "eval", **meta, "is_ldr": about["is_ldr"]})
    record.fill(run.record)


def known(record: Foreign, images: Whole | None) -> tuple[Grouping | None, dict[str, NDArray[Any]]]:
    """The groups, from the data or from the record itself, and the columns of the table."""
    if images and (len(images.data.group_names) > 1 or record.groups is None):
        return diagnosed.grouping_of(images.data), images.data.columns
    columns: dict[str, NDArray[Any]] = dict(images.data.columns) if images else {}
    if record.groups is None:
        return None, {"group": np.full(record.n, "all")}
    names, groups = np.unique(record.groups, return_inverse=True)
    grouping = Grouping(groups, names.tolist(), rare_group(groups, len(names)))
    return grouping, {**columns, "group": record.groups}


def origin(path: str | Path, record: Foreign, images: Whole | None) -> dict[str, Any]:
    found: dict[str, Any] = {"record": str(path), "n_records": len(record.steps)}
    if images:
        found["data"] = {"path": images.listing.where, "fingerprint": images.data.fingerprint,
                         "n": images.data.n, "notes": list(images.data.notes)}  # fmt: skip
        found["shape"] = list(images.data.shape)
    return found


def expect_same(record: Foreign, images: Whole, path: str) -> None:
    """A record says which sample is which by its place alone: the numbers must agree."""
    if record.n == images.data.n:
        return
    unread = sorted(set(range(len(images.listing.names))) - set(images.kept.tolist()))
    names = listed("; cannot be read: ", [images.listing.names[i] for i in unread])
    raise UserError(
        f"{path} is a record of {record.n:,} samples, but {images.listing.where} holds "
        f"{images.data.n:,} readable images{names}; give the data that was recorded, in its order"
    )


# --- the formats ---------------------------------------------------------------------------------


def open_record(path: Path, rows: Rows = "auto", n: int | None = None) -> Foreign:
    """Whatever a path holds; `n` samples, where the data say so, tell the axes of a .npy apart."""
    if (path / "record" / "meta.json").is_file():
        path = path / "record"
    if rows != "auto" and path.suffix.lower() != ".npy":
        raise UserError(f"--rows {rows} is for a .npy; {path} says itself what is what")
    if (path / "meta.json").is_file():
        return _from_folder(path)
    readers = {".npy": lambda: _from_npy(path, rows, n), ".npz": lambda: _from_npz(path),
               ".parquet": lambda: _from_parquet(path, n)}  # fmt: skip
    if not path.is_file() or path.suffix.lower() not in readers:
        what = "is no record" if path.exists() else "does not exist"
        raise UserError(f"{path} {what}; {EXPECTED}")
    return readers[path.suffix.lower()]()


def _from_folder(path: Path) -> Foreign:
    about = read_json(path / "meta.json")
    n = about.get("n") if isinstance(about, dict) else None
    if not isinstance(n, int) or n < 1:
        raise UserError(f"{path / 'meta.json'} does not say how many samples there are (`n`)")
    record = LdrRecord(path, n)

    def fill(folder: Path) -> None:
        ours = LdrRecord(folder, n)
        for step in record.steps:
            ours.write(step, record.read(step))

    return Foreign(n, record.steps, fill, about=about)


def _from_npy(path: Path, rows: Rows, n: int | None) -> Foreign:
    with readable(path):
        logits = np.load(path, mmap_mode="r", allow_pickle=False)
    expect_logits(path, logits.shape, logits.dtype)
    if rows == "auto":
        rows = "records" if _records_first(path, logits.shape, n) else "samples"
    n_records, n = logits.shape if rows == "records" else logits.shape[::-1]
    steps = list(range(1, n_records + 1))
    if rows == "records":
        return Foreign(n, steps, lambda folder: add_all(folder, n, steps, logits, path))

    def fill(folder: Path) -> None:
        scatter = Scatter(folder, n, steps)
        for start in range(0, n, BLOCK):
            block = np.asarray(logits[start : start + BLOCK], dtype=np.float32)
            for step, values in zip(steps, block.T):
                scatter.files[step][start : start + len(values)] = values
        scatter.finish(path)

    return Foreign(n, steps, fill)


def _records_first(path: Path, shape: tuple[int, ...], n: int | None) -> bool:
    """Which axis are the samples: that which is as long as the data, or else the longer one."""
    fits = [length == n for length in shape]
    if n is not None and any(fits):
        if all(fits):
            raise UserError(f"{path} has as many records as samples: say --rows records or samples")
        return fits[1]
    if shape[0] == shape[1]:
        raise UserError(f"{path} is as long as wide: say --rows records or --rows samples")
    return shape[0] < shape[1]


def _from_npz(path: Path) -> Foreign:
    """`logits` is read from the archive record by record; the other arrays are small."""
    with readable(path), np.load(path, allow_pickle=False) as stored:
        if "logits" not in stored.files:
            raise UserError(f"{path} has no array `logits`; {EXPECTED}")
        small = {name: stored[name] for name in ("steps", "groups") if name in stored.files}
    with readable(path), _member(path) as (shape, dtype, _):
        expect_logits(path, shape, dtype)
    n_records, n = shape
    steps = small.get("steps", np.arange(1, n_records + 1))
    if steps.shape != (n_records,) or steps.dtype.kind not in "iu" or (np.diff(steps) <= 0).any():
        raise UserError(f"`steps` of {path} must be {n_records} whole numbers that rise")
    groups = small.get("groups")
    if groups is not None and (groups.shape != (n,) or groups.dtype.kind not in "iubU"):
        raise UserError(f"`groups` of {path} must be {n} words or whole numbers, one a sample")

    def fill(folder: Path) -> None:
        with readable(path), _member(path) as (_, _, read):
            add_all(folder, n, steps.tolist(), read(), path)

    return Foreign(n, steps.tolist(), fill, None if groups is None else groups.astype(str))


@contextmanager
def _member(
    path: Path,
) -> Iterator[tuple[tuple[int, ...], np.dtype[Any], Callable[[], Iterator[NDArray[Any]]]]]:
    """Shape and type of `logits` in a .npz, and what reads it row by row."""
    with zipfile.ZipFile(path) as archive, archive.open("logits.npy") as file:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0,
                       (2, 0): np.lib.format.read_array_header_2_0}.get(version)  # fmt: skip
        if read_header is None:
            raise ValueError(f"unknown .npy version {version}")
        shape, is_fortran, dtype = read_header(file)
        if is_fortran and len(shape) > 1:
            raise ValueError("`logits` is stored column by column; save np.ascontiguousarray of it")

        def read() -> Iterator[NDArray[Any]]:
            for _ in range(shape[0]):
                row = file.read(shape[1] * dtype.itemsize)
                yield np.frombuffer(row, dtype=dtype)

        yield shape, dtype, read


def _from_parquet(path: Path, n: int | None) -> Foreign:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with readable(path):
        file = pq.ParquetFile(path)
        missing = {"index", "step", "logit"} - set(file.schema_arrow.names)
        if missing:
            raise UserError(f"{path} has no column {', '.join(sorted(missing))}; {EXPECTED}")
        highest, steps = -1, set[int]()
        for batch in file.iter_batches(BLOCK, columns=["index", "step"]):
            expect_whole(path, batch)
            low, high = pc.min_max(batch["index"]).as_py().values()
            if low < 0:
                raise UserError(f"{path} has a negative index; number the samples from 0")
            highest = max(highest, high)
            steps |= set(pc.unique(batch["step"]).to_pylist())
    n, ordered = n or highest + 1, sorted(steps)
    if highest >= n:
        raise UserError(f"{path} has an index {highest}, but there are {n} samples: number from 0")

    def fill(folder: Path) -> None:
        scatter = Scatter(folder, n, ordered)
        for batch in file.iter_batches(BLOCK, columns=["index", "step", "logit"]):
            index, step = batch["index"].to_numpy(), batch["step"].to_numpy()
            logit = batch["logit"].cast(pa.float32()).to_numpy(zero_copy_only=False)
            for number in np.unique(step).tolist():
                here = step == number
                scatter.files[number][index[here]] = logit[here]
        scatter.finish(path)

    return Foreign(n, ordered, fill)


def expect_whole(path: Path, batch: Any) -> None:
    for name in ("index", "step"):
        column = batch[name]
        if not str(column.type).startswith(("int", "uint")) or column.null_count:
            raise UserError(f"the column {name} of {path} must hold whole numbers, none missing")


class Scatter:
    """Files of a record that are filled piece by piece, in any order."""

    def __init__(self, folder: Path, n: int, steps: list[int]) -> None:
        self.n = n
        self.files: dict[int, NDArray[np.float32]] = {}
        for step in steps:
            file = folder / f"{step:06d}.npy"
            self.files[step] = np.lib.format.open_memmap(file, "w+", np.float32, (n,))
            self.files[step][:] = np.nan

    def finish(self, path: Path) -> None:
        """Every sample has a logit at every step, or a sentence says where there is none."""
        for step, values in self.files.items():
            expect_finite(values, step, path)
            values.flush()  # type: ignore[attr-defined]
        self.files.clear()


def add_all(folder: Path, n: int, steps: list[int], records: Any, path: Path) -> None:
    ours = LdrRecord(folder, n)
    for step, values in zip(steps, records):
        with np.errstate(over="ignore"):  # said below
            values = np.asarray(values, dtype=np.float32)
        expect_finite(values, step, path)
        ours.write(step, values)


def expect_finite(values: NDArray[np.float32], step: int, path: Path) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise UserError(
            f"{path} has no finite logit of {len(bad):,} samples at step {step} (sample {bad[0]} "
            "is the first); leave that record out, or record these samples too"
        )


def expect_logits(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) != 2 or 0 in shape:
        raise UserError(f"{path} holds {dtype} {list(shape)}, not two axes; {EXPECTED}")
    if dtype.kind != "f":
        raise UserError(f"{path} holds {dtype}, and logits are floats; {EXPECTED}")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """A file that cannot be read becomes a sentence that names it."""
    try:
        yield
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        is_pickled = "allow_pickle" in str(error) or "Python objects" in str(error)
        why = "it holds pickled objects" if is_pickled else error
        raise UserError(f"{path} cannot be read: {why}; {EXPECTED}") from None
