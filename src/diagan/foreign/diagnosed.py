"""The folder of a diagnosis without a run: of somebody else's record, model or images.

It is that of a run without config, log and checkpoints, and the report reads it all the same.
"""

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diagan import diagnosis, ldr
from diagan.config import Score
from diagan.data import Dataset
from diagan.data.folder import Whole, list_images, nearest_side, whole
from diagan.diagnosis import Diagnosis, Grouping
from diagan.errors import UserError
from diagan.findings import highscored
from diagan.measures import N_PICTURES
from diagan.random import numpy_generator
from diagan.rundir import RunDir, command_line, versions, write_json, writing
from diagan.thumbnails import SIDE, keep_thumbnails

__all__ = [
    "Diagnosis",
    "from_records",
    "grouping_of",
    "making",
    "pictured",
    "read_both",
    "read_images",
    "refuse_other",
    "with_warnings",
    "write",
]

ONE_RECORD = (
    "There is one record only: how the discriminator changed its mind is not known, and the score "
    "is the LDR at that moment."
)


@contextmanager
def making(out: str | Path) -> Iterator[RunDir]:
    """A folder that takes its name once it is whole; an older diagnosis gives way to it."""
    target = Path(out)
    refuse_other(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with writing(target):
        temporary.mkdir()
    try:
        yield RunDir(temporary)
        with writing(target):
            shutil.rmtree(target, ignore_errors=True)
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def refuse_other(target: Path) -> None:
    """Nothing is written over but an earlier diagnosis of this kind."""
    is_older = (target / "diagnosis.json").is_file() and not (target / "config.json").exists()
    is_empty = target.is_dir() and not any(target.iterdir())
    if target.exists() and not is_older and not is_empty:
        raise UserError(f"{target} holds something else already; choose another --out")


def read_images(
    path: str, size: int | None = None, *, group_by: str | None = None, channels: str | None = None
) -> Whole:
    """All images of a place, by default at the nearest of 32 and 64 pixels to what they have."""
    side = size or min(nearest_side(list_images(path)), SIDE)
    return whole(path, side, group_by=group_by, channels=channels)


def read_both(
    real: str, fake: str, size: int | None = None, *, group_by: str | None = None
) -> tuple[Whole, Whole]:
    """Two places at the same size; grey ones become coloured where the other's are."""
    reals = read_images(real, size, group_by=group_by)
    side = reals.data.shape[-1]
    fakes = read_images(fake, side)
    if fakes.data.shape != reals.data.shape:
        reals, fakes = (read_images(real, side, group_by=group_by, channels="RGB"),
                        read_images(fake, side, channels="RGB"))  # fmt: skip
    return reals, fakes


def grouping_of(data: Dataset) -> Grouping:
    return Grouping(data.groups, data.group_names, data.rare)


def from_records(
    records: Iterable[np.ndarray], n_records: int, score: Score, grouping: Grouping | None
) -> Diagnosis:
    """As `diagnosis.diagnose`; one record alone is taken for what it is."""
    if n_records > 1:
        return diagnosis.diagnose(records, score, grouping)
    ldrm = ldr.centre(next(iter(records)), score.centre)
    return with_warnings(
        diagnosis.from_moments(ldrm, np.zeros_like(ldrm), 1, score, grouping), [ONE_RECORD]
    )


def pictured(n: int, seed: int = 0) -> np.ndarray:
    """Which of n fakes are kept as pictures: any, as a folder may be sorted by class."""
    return numpy_generator(seed, "folders/pictures").permutation(n)[:N_PICTURES]


def with_warnings(found: Diagnosis, more: Iterable[str]) -> Diagnosis:
    return replace(found, warnings=(*found.warnings, *more))


def write(
    run: RunDir, found: Diagnosis, *, columns: Mapping[str, Any], about: Mapping[str, Any],
    images: np.ndarray | None, provenance: Mapping[str, Any], seed: int = 0,
) -> None:  # fmt: skip
    """samples.parquet, diagnosis.json, provenance.json, and small pictures of `images` [N, ...]."""
    marks, high = ({}, {}) if images is None else highscored.mark(found.score, images, seed=seed)
    diagnosis.write(run, found, {**columns, **marks}, {**about, **high})
    if images is not None:
        keep_thumbnails(run, images)
    write_json(
        run.provenance,
        {"format": 1, "command": command_line(), "started": time.strftime("%Y-%m-%d %H:%M:%S"),
         "versions": versions(), "seed": seed, **provenance},
    )  # fmt: skip
