"""Runs that share their phase 1: it is trained once, and the others begin from its end.

Files are linked, not copied, where the disk can: checkpoints and records are never changed in
place. What is linked is what training would have written, so a branch is bit for bit the run that
it would have been alone.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from diagan import checkpoint, config
from diagan.config import Config
from diagan.errors import UserError
from diagan.reproduce.plan import phase1_key, stage_key
from diagan.rundir import RunDir, read_lines, replacing

PASSES = ("eval", "train")  # modes in which a record is a pass over the data


@dataclass(frozen=True)
class Trunk:
    """A run whose phase 1 another can begin from, and the step."""

    run: RunDir
    settings: Config
    step: int


def find_trunk(runs: Path, settings: Config, path: Path) -> Trunk | None:
    """The run, of those in a folder, whose phase 1 goes furthest of what `settings` need."""
    key = phase1_key(settings)
    found: list[Trunk] = []
    for file in sorted(runs.glob("*/config.json")):
        run = RunDir(file.parent)
        if file.parent == path:
            continue
        try:
            theirs = config.loads(file.read_text(), str(file))
        except UserError:  # of another format, or half a file: not a run of ours
            continue
        step = theirs.phase1_steps
        if (
            phase1_key(theirs) == key
            and step <= settings.phase1_steps
            and step in checkpoint.steps(run.checkpoints, "phase1")
            and set(needed_records(settings, step)) <= set(record_steps(run.record))
        ):
            found.append(Trunk(run, theirs, step))
    return max(found, key=lambda trunk: trunk.step, default=None)


def needed_records(c: Config, step: int) -> list[int]:
    """The records up to a step that the diagnosis of `c` will read."""
    if c.record.mode not in PASSES:
        return []
    beats = range(c.record.every, step + 1, c.record.every)
    found = [beat for beat in beats if beat >= c.record_start]
    at_end = [step] if c.record.include_end and step == c.phase1_steps else []
    return sorted({*found, *at_end})


def record_steps(folder: Path) -> list[int]:
    return sorted(int(file.stem) for file in folder.glob("*.npy") if file.stem.isdigit())


def graft(trunk: Trunk, settings: Config, run: RunDir) -> None:
    """Give a new run folder what its trunk has done already of what `settings` ask for."""
    stages = {"phase1": trunk.step}
    if stage_key(trunk.settings) == stage_key(settings):  # they only measure differently
        for stage in ("plain", "weighted"):
            if settings.steps in checkpoint.steps(trunk.run.checkpoints, stage):
                stages[stage] = settings.steps
    for stage, step in stages.items():
        name = checkpoint.folder_name(stage, step)
        link_folder(trunk.run.checkpoints / name, run.checkpoints / name)
    if settings.record.mode != "none":
        run.record.mkdir(parents=True, exist_ok=True)
        kept = {f"{step:06d}" for step in needed_records(settings, trunk.step)}
        for file in trunk.run.record.iterdir():
            if file.name.partition(".")[0] in kept | {"meta", "free"}:
                link(file, run.record / file.name)
    lines = [x for x in read_lines(trunk.run.log) if x["step"] <= stages.get(x["stage"], 0)]
    with replacing(run.log) as temporary:
        temporary.write_text("".join(json.dumps(line) + "\n" for line in lines))


def link_folder(source: Path, target: Path) -> None:
    """Whole or not at all."""
    temporary = target.with_name(f".{target.name}.tmp")
    for left in (temporary, target):  # of a graft that was cut short
        shutil.rmtree(left, ignore_errors=True)
    temporary.mkdir(parents=True)
    for file in source.iterdir():
        link(file, temporary / file.name)
    temporary.rename(target)


def link(source: Path, target: Path) -> None:
    with replacing(target) as temporary:
        try:
            os.link(source, temporary)
        except OSError:  # another disk, or one without links
            shutil.copy2(source, temporary)
