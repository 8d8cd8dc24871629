"""The small files of a run, which stay in results/ when the run folder is gone."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from diagan import checkpoint, config, ldr
from diagan.config import Config
from diagan.kept import needed_records
from diagan.rundata import read_settings
from diagan.rundir import RunDir, read_json, read_lines, replacing, write_json

Line = dict[str, Any]
STORE = "measured"  # under results/
LOG_EVERY = 50
DIGITS = 6  # significant ones that are kept of a number in the log
LAST = 50  # records that `ldrv_last50` reads
GRIDS = ("phase1", "plain", "weighted", "phase1_drs", "plain_drs", "weighted_drs")


def keep(run: RunDir, folder: Path) -> None:
    """Config, thinned log, metrics, diagnosis, provenance and grids of a run into a folder."""
    settings = read_settings(run)
    write_json(folder / "provenance.json", provenance_of(run))
    if run.diagnosis.exists():
        write_json(folder / "diagnosis.json", read_json(run.diagnosis))
    write_lines(folder / "log.jsonl", thinned(read_lines(run.log)))
    derived = [*from_diagnosis(run), *from_record(run, settings), *hours(run, settings)]
    measured = [line for line in read_lines(run.metrics) if is_final(line, settings)]
    write_lines(folder / "metrics.jsonl", [*measured, *derived])
    for name in GRIDS:
        if (picture := run.generated / f"{name}.png").exists():
            keep_grid(picture, folder / f"{name}.png")
    # Last: a folder that has it is a stored run, whole.
    write_json(folder / "config.json", config.to_json(settings) | {"data_root": None})


def end_of(c: Config, stage: str) -> int:
    return c.phase1_steps if stage == "phase1" else c.steps


def is_final(line: Line, c: Config) -> bool:
    """Whether a number is of the end of its stage, and not of a checkpoint on the way."""
    stage = line["arm"]
    return line.get("checkpoint") in (None, checkpoint.folder_name(stage, end_of(c, stage)))


def is_of_pixels(line: Line) -> bool:
    """A metric that looks through no extractor, though its line names the one of its fellows."""
    return bool(line["metric"].startswith("reconstruction_error"))


def provenance_of(run: RunDir) -> Line:
    """Without the places of this machine."""
    found: Line = read_json(run.provenance)
    places = r"(--(?:data[-_]root|data\.path|runs|results|out|config))[ =](?:'[^']*'|\S+)"
    found["command"] = re.sub(places, r"\1 DIR", found["command"])
    return found


def write_lines(path: Path, lines: list[Line]) -> None:
    with replacing(path) as temporary:
        temporary.write_text("".join(json.dumps(line) + "\n" for line in lines))


def thinned(lines: list[Line]) -> list[Line]:
    """A line every 50 steps, the last of each stage, and every warning."""
    last = {line["stage"]: line["step"] for line in lines}
    kept = [
        line
        for line in lines
        if line["step"] % LOG_EVERY == 0 or line["step"] == last[line["stage"]] or "warning" in line
    ]
    return [{key: shorter(value) for key, value in line.items()} for line in kept]


def shorter(value: object) -> object:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) and value < 1e9 else value


def keep_grid(source: Path, target: Path) -> None:
    """At one pixel a pixel: run folders hold them at twice the size."""
    with Image.open(source) as picture, replacing(target) as temporary:
        half = picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.NEAREST)
        half.save(temporary, format="PNG", optimize=True)


# --- numbers that a run folder holds beside its metrics ------------------------------------------


def line_of(metric: str, value: float, group: str = "", arm: str = "phase1") -> Line:
    return {"metric": metric, "value": float(value), "group": group, "arm": arm, "drs": False}


def from_diagnosis(run: RunDir) -> list[Line]:
    """LDRV, score and share of the weight of each group, and of who has an attribute or not."""
    if not run.diagnosis.exists():
        return []
    found = [
        line_of(metric, group[metric], group["name"])
        for group in read_json(run.diagnosis)["groups"]
        for metric in ("ldrv", "score", "weight_share")
    ]
    columns = [c for c in pq.read_schema(run.samples).names if c.startswith("attribute:")]
    if not columns:
        return found
    table = pq.read_table(run.samples, columns=[*columns, "ldrv", "score"])
    for column in columns:
        has = table[column].to_numpy() == 1
        for group, inside in ((column, has), (f"not {column}", ~has)):
            for metric in ("ldrv", "score"):
                if inside.any():
                    value = np.nanmean(table[metric].to_numpy()[inside])
                    found.append(line_of(metric, value, group))
    return found


def from_record(run: RunDir, c: Config) -> list[Line]:
    """LDRV over the last 50 records, where the diagnosis reads more (Table 1's Gaussian)."""
    files = sorted(f for f in run.record.glob("*.npy") if f.stem.isdigit())
    if c.record.window <= LAST or len(files) <= LAST or not run.samples.exists():
        return []
    records = (np.load(file, allow_pickle=False) for file in files[-LAST:])
    ldrv = ldr.moments(records).ldrv
    groups = pq.read_table(run.samples, columns=["group"])["group"].to_numpy()
    return [
        line_of("ldrv_last50", ldrv[groups == group].mean(), str(group))
        for group in dict.fromkeys(groups)
    ]


def hours(run: RunDir, c: Config) -> list[Line]:
    """Hours of training, plain and Dia-GAN, from the speeds in the log (App. D).

    Plain: the median time of a step where nothing is recorded, times all steps. Dia-GAN: the time
    of phase 1 with its records, and of the weighted stage; nothing where records were taken later.
    """
    lines = [line for line in read_lines(run.log) if "steps_per_second" in line]
    starts = {"plain": c.steps + 1, "phase1": c.record_start}  # of recording
    quiet = [1 / x["steps_per_second"] for x in lines if x["step"] < starts.get(x["stage"], 0)]
    found = []
    if quiet:
        found.append(line_of("hours", np.median(quiet) * c.steps / 3600, arm="plain"))
    spent = [_seconds([x for x in lines if x["stage"] == stage], first)
             for stage, first in (("phase1", 0), ("weighted", c.phase1_steps))]  # fmt: skip
    done = {x["stage"] for x in lines if x["step"] in (c.phase1_steps, c.steps)}
    if {"phase1", "weighted"} <= done and recorded_live(run, c):
        found.append(line_of("hours", sum(spent) / 3600, arm="weighted"))
    return found


def recorded_live(run: RunDir, c: Config) -> bool:
    """Whether phase 1 took the records itself, or the run that it was trained by."""
    trunk = read_json(run.provenance).get("trunk", {}) if run.provenance.exists() else {}
    needed = len(needed_records(c, trunk.get("step", 0)))
    return bool(trunk.get("records", needed) == needed)


def _seconds(lines: list[Line], first: int) -> float:
    steps = [first, *(line["step"] for line in lines)]
    speeds = [float(line["steps_per_second"]) for line in lines]
    return float(sum((b - a) / speed for (a, b), speed in zip(pairwise(steps), speeds)))
