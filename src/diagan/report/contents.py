"""What a run folder holds, read when it is asked for. Only config.json has to be there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from diagan.config import Config, from_json
from diagan.errors import UserError
from diagan.rundir import RunDir, read_json, read_lines

DIAGNOSIS_FORMAT = 1
# A generator and whether by rejection, in the order of the page, and the stem of its files.
ARMS = {
    ("data", False): "real data, same probe",
    ("plain", False): "plain GAN",
    ("plain", True): "plain GAN with rejection",
    ("weighted", False): "Dia-GAN",
    ("weighted", True): "Dia-GAN with rejection",
    ("phase1", False): "GAN after phase 1",
    ("phase1", True): "GAN after phase 1 with rejection",
}
# Okabe and Ito's colours without black and yellow: told apart by the colour-blind, on white and
# on black.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
OTHER_COLOUR = "#8a8f98"


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """A file that cannot be read becomes a sentence that names it."""
    try:
        yield
    except (OSError, ValueError, LookupError, BadZipFile) as error:
        raise UserError(f"{path} cannot be read ({error}); make it again, or remove it") from None


def arm_label(line: dict[str, Any]) -> str:
    """The name of the arm of a line of metrics.jsonl."""
    arm, drs = line["arm"], bool(line.get("drs"))
    return ARMS.get((arm, drs), f"{arm} with rejection" if drs else arm)


@dataclass(frozen=True)
class Samples:
    """samples.parquet: arrays over the training samples."""

    index: np.ndarray  # int64 [N]
    group: np.ndarray  # int [N], into group_names
    group_names: list[str]
    files: pa.ChunkedArray | None
    ldrm: np.ndarray  # float64 [N]
    ldrv: np.ndarray  # float64 [N], NaN where it was refused
    score: np.ndarray  # float64 [N]

    @cached_property
    def by_score(self) -> np.ndarray:
        """Rows that have a score, the highest first."""
        order: np.ndarray = np.argsort(-self.score, kind="stable")
        return order[np.isfinite(self.score[order])]

    def describe(self, row: int) -> str:
        """One sample in words."""
        words = [f"index {self.index[row]}"]
        if len(self.group_names) > 1:
            words.append(self.group_names[self.group[row]])
        words.append(f"score {self.score[row]:.2f}")
        file = self.files[row].as_py() if self.files is not None else None
        return " · ".join([*words, file] if file else words)


@dataclass(frozen=True)
class Contents:
    """The files of a run; None or empty for what is not there."""

    run: RunDir

    @property
    def name(self) -> str:
        return self.run.path.resolve().name

    @cached_property
    def config(self) -> Config:
        return from_json(self.config_json)

    @cached_property
    def config_json(self) -> dict[str, Any]:
        config: dict[str, Any] = read_json(self.run.config)
        return config

    @cached_property
    def provenance(self) -> dict[str, Any]:
        provenance: dict[str, Any]
        provenance = read_json(self.run.provenance) if self.run.provenance.exists() else {}
        return provenance

    @cached_property
    def diagnosis(self) -> dict[str, Any] | None:
        if not self.run.diagnosis.exists():
            return None
        diagnosis: dict[str, Any] = read_json(self.run.diagnosis)
        if diagnosis.get("format", DIAGNOSIS_FORMAT) != DIAGNOSIS_FORMAT:
            raise UserError(
                f"{self.run.diagnosis} has format {diagnosis['format']}; this diagan reads format "
                f"{DIAGNOSIS_FORMAT}: diagnose the run again"
            )
        return diagnosis

    @cached_property
    def log(self) -> list[dict[str, Any]]:
        with readable(self.run.log):
            return read_lines(self.run.log)

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        with readable(self.run.metrics):
            return read_lines(self.run.metrics)

    @cached_property
    def date(self) -> str | None:
        """The day on which training began, by the log."""
        times = [line["time"] for line in self.log if "time" in line]
        if not times:
            return None
        day = datetime.fromtimestamp(min(times), UTC)
        return f"{day.day} {day:%B %Y}"

    @cached_property
    def is_ldr(self) -> bool:
        """Whether D's raw output is a log-density ratio; where nobody says, it is."""
        known = (self.diagnosis or {}).get("is_ldr")
        if known is None and (self.run.record / "meta.json").exists():
            known = read_json(self.run.record / "meta.json").get("is_ldr")
        return known is not False

    @cached_property
    def samples(self) -> Samples | None:
        if not self.run.samples.exists():
            return None
        with readable(self.run.samples):
            table = pq.read_table(self.run.samples)
            group = table["group"].combine_chunks().dictionary_encode()
            numbers = {
                name: table[name].cast(pa.float64()).to_numpy()
                for name in ("ldrm", "ldrv", "score")
            }
            return Samples(
                index=table["index"].to_numpy(),
                group=group.indices.to_numpy(),
                group_names=group.dictionary.to_pylist(),
                files=table["file"] if "file" in table.column_names else None,
                **numbers,
            )

    @cached_property
    def thumbnails(self) -> dict[int, np.ndarray]:
        """Images [H, W, C] by dataset index, in the order of the file."""
        if not self.run.thumbnails.exists():
            return {}
        with readable(self.run.thumbnails), np.load(self.run.thumbnails) as stored:
            return dict(zip(stored["index"].tolist(), stored["images"]))

    def generated(self, suffix: str) -> dict[str, Path]:
        """Files of generated samples by the name of their arm."""
        files = {
            label: self.run.generated / f"{arm}{'_drs' if drs else ''}{suffix}"
            for (arm, drs), label in ARMS.items()
        }
        return {label: file for label, file in files.items() if file.exists()}

    @cached_property
    def records(self) -> dict[int, Path]:
        """The files of the LDR record by step."""
        files = [file for file in self.run.record.glob("*.npy") if file.stem.isdigit()]
        return {int(file.stem): file for file in sorted(files, key=lambda file: int(file.stem))}

    @cached_property
    def groups(self) -> list[dict[str, Any]]:
        """The groups of the diagnosis; empty where the data have none."""
        groups: list[dict[str, Any]] = (self.diagnosis or {}).get("groups") or []
        return groups if len(groups) > 1 else []

    @cached_property
    def rare(self) -> dict[str, Any] | None:
        name = (self.diagnosis or {}).get("rare")
        return next((group for group in self.groups if group["name"] == name), None)

    @cached_property
    def shares(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The last measured share of each group by the name of the arm, then of the group."""
        shares: dict[str, dict[str, dict[str, Any]]] = {label: {} for label in ARMS.values()}
        for line in self.metrics:
            if line["metric"] == "group_share":
                shares.setdefault(arm_label(line), {})[line["group"]] = line
        return {label: of_arm for label, of_arm in shares.items() if of_arm}

    @cached_property
    def colours(self) -> dict[str, str]:
        """A colour for each group: the rare one first, then by score; the many others share one."""

        def rank(group: dict[str, Any]) -> tuple[bool, float]:
            return group is not self.rare, -(group.get("score") or 0.0)

        ranked = [group["name"] for group in sorted(self.groups, key=rank)]
        names = [*ranked, *(self.samples.group_names if self.samples else [])]
        unique = list(dict.fromkeys(names))
        own = PALETTE if len(unique) <= len(PALETTE) else PALETTE[:-1]
        colours = dict.fromkeys(unique, OTHER_COLOUR)
        # One group alone is blue: nothing about it is rare.
        return colours | dict(zip(unique, own if len(unique) > 1 else PALETTE[1:]))
