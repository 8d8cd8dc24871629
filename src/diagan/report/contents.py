"""What a run folder holds, read when it is asked for.

Only config.json has to be there, or diagnosis.json: a diagnosis of somebody else's GAN has no more.
"""

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

from diagan import ldr
from diagan.config import Config, from_json
from diagan.errors import UserError
from diagan.report import pictures
from diagan.rundir import RunDir, read_json, read_lines
from diagan.thumbnails import by_score, choose, k_stops, scored

DIAGNOSIS_FORMAT = 1
MAX_RECORDS = 60
REAL_BYTES, FAKE_BYTES = 5_500_000, 2_500_000  # of pictures on the page, before base64
# A generator and whether by rejection, in the order of the page, and the stem of its files.
ARMS = {
    ("data", False): "real data, same probe",
    ("plain", False): "plain GAN",
    ("plain", True): "plain GAN with rejection",
    ("weighted", False): "Dia-GAN",
    ("weighted", True): "Dia-GAN with rejection",
    ("phase1", False): "GAN after phase 1",
    ("phase1", True): "GAN after phase 1 with rejection",
    ("fake", False): "the generator",  # of a diagnosis of two folders
}
DATA_ARM = ARMS["data", False]
# Okabe and Ito's colours without black and yellow: told apart by the colour-blind, on white and
# on black.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
OTHER_COLOUR = "#8a8f98"


def open_folder(path: Path) -> RunDir:
    """A run, or a diagnosis without one; or a sentence that says there is neither."""
    run = RunDir(path)
    if not run.config.is_file() and not run.diagnosis.is_file():
        raise UserError(
            f"{path} is not a run folder: it has no config.json, and no diagnosis.json either"
        )
    return run


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
    flag: np.ndarray | None = None  # string [N]: rare, outlier, duplicate, corrupt or nothing
    cluster: np.ndarray | None = None  # int [N], -1: none
    points: np.ndarray | None = None  # float [N, 2], where the data are points

    @cached_property
    def by_score(self) -> np.ndarray:
        """Rows that have a score, the highest first."""
        return by_score(self.score)

    def describe(self, row: int) -> str:
        """One sample in words."""
        words = [f"index {self.index[row]}"]
        if len(self.group_names) > 1:
            words.append(self.group_names[self.group[row]])
        words.append(f"score {self.score[row]:.2f}")
        file = self.files[row].as_py() if self.files is not None else None
        return " · ".join([*words, file] if file else words)


def _points(table: pa.Table) -> np.ndarray | None:
    if not {"x", "y"} <= set(table.column_names):
        return None
    return np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)


@dataclass(frozen=True)
class Contents:
    """The files of a run; None or empty for what is not there."""

    run: RunDir

    @property
    def name(self) -> str:
        return self.run.path.resolve().name

    @cached_property
    def config(self) -> Config | None:
        """None where this is no run but a diagnosis of somebody else's GAN."""
        return from_json(self.config_json) if self.config_json else None

    @cached_property
    def config_json(self) -> dict[str, Any]:
        config: dict[str, Any] = read_json(self.run.config) if self.run.config.exists() else {}
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
                flag=table["flag"].fill_null("").to_numpy()
                if "flag" in table.column_names
                else None,
                cluster=table["cluster"].to_numpy() if "cluster" in table.column_names else None,
                points=_points(table),
            )

    @cached_property
    def k(self) -> float:
        """The k that scored the samples (Eq. 7)."""
        return float((self.diagnosis or {}).get("k") or 0.0)

    @cached_property
    def stops(self) -> list[float]:
        """Of the slider for k."""
        return k_stops(self.k, self.samples.ldrm, self.samples.ldrv) if self.samples else []

    def ranked(self, k: float) -> np.ndarray:
        """Rows that have a score at this k, the highest first."""
        s = self.samples
        return by_score(scored(s.ldrm, s.ldrv, k)) if s else np.zeros(0, dtype=np.int64)

    @cached_property
    def thumbnails(self) -> tuple[np.ndarray, np.ndarray]:
        """Dataset indices [M] and images uint8 [M, H, W, C]; none where there are no samples."""
        if not self.run.thumbnails.exists() or self.samples is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 1, 1, 1), dtype=np.uint8)
        with readable(self.run.thumbnails), np.load(self.run.thumbnails) as stored:
            index, images = stored["index"], stored["images"]
        known = index < len(self.samples.index)  # of other data, should somebody mix folders
        return index[known], images[known]

    @cached_property
    def chosen(self) -> np.ndarray:
        """Rows that the page shows closely, rising: with pictures where there are any."""
        s = self.samples
        if s is None:
            return np.zeros(0, dtype=np.int64)
        if len(self.thumbnails[0]):
            return self.thumbnails[0]
        flagged = None if s.flag is None else (s.flag != "") & (s.flag != "rare")
        return choose(s.ldrm, s.ldrv, self.stops, s.group, flagged)

    def generated(self, suffix: str) -> dict[str, Path]:
        """Files of generated samples by the name of their arm; arms that are not ours come last."""
        labels = {f"{arm}{'_drs' if drs else ''}": label for (arm, drs), label in ARMS.items()}
        found = {file.stem: file for file in sorted(self.run.generated.glob(f"*{suffix}"))}
        others = {name: name for name in found if name not in labels and "_ldr" not in name}
        labels |= others
        return {label: found[name] for name, label in labels.items() if name in found}

    @cached_property
    def fakes(self) -> dict[str, np.ndarray]:
        """Generated images uint8 [M, H, W, C] by the name of their arm."""
        found = {}
        for label, file in self.generated(".npz").items():
            with readable(file), np.load(file) as stored:
                found[label] = stored["images"]
        return {label: images for label, images in found.items() if len(images)}

    @cached_property
    def sprite(self) -> pictures.Sprite | None:
        """All thumbnails in one picture; a sample's place in it is its place in `chosen`."""
        images = self.thumbnails[1]
        return pictures.sprite(images, REAL_BYTES) if len(images) else None

    @cached_property
    def fake_sprites(self) -> dict[str, pictures.Sprite]:
        return {
            label: pictures.sprite(images, FAKE_BYTES // len(self.fakes))
            for label, images in self.fakes.items()
        }

    @cached_property
    def place(self) -> dict[int, int]:
        """Row -> place in `chosen`."""
        return {row: at for at, row in enumerate(self.chosen.tolist())}

    @cached_property
    def records(self) -> dict[int, Path]:
        """The files of the LDR record by step."""
        files = [file for file in self.run.record.glob("*.npy") if file.stem.isdigit()]
        return {int(file.stem): file for file in sorted(files, key=lambda file: int(file.stem))}

    def record(self, step: int) -> np.ndarray:
        """The LDR of every sample [N] at a recorded step, centred as the scores are."""
        with readable(self.records[step]):
            values = np.load(self.records[step], mmap_mode="r", allow_pickle=False)
        return ldr.centre(values, (self.diagnosis or {}).get("centre", "none"))

    @cached_property
    def steps(self) -> list[int]:
        """Recorded steps that the page shows: all, or as many as it can carry."""
        steps = list(self.records)
        if len(steps) <= MAX_RECORDS:
            return steps
        return [steps[i] for i in np.linspace(0, len(steps) - 1, MAX_RECORDS, dtype=int)]

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
