"""Runs that share their phase 1: it is trained once, and the others begin from its end.

Files are linked, not copied, where the disk can: checkpoints and records are never changed in
place. What is linked is what training would have written, so a branch is bit for bit the run that
it would have been alone. Records in another mode are taken of D where the trunk has kept it.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from diagan import checkpoint, config
from diagan.config import Config
from diagan.errors import UserError
from diagan.kept import kept_steps, needed_records
from diagan.reproduce.plan import phase1_key, stage_key
from diagan.rundir import RunDir, read_lines, replacing


@dataclass(frozen=True)
class Trunk:
    """A run whose phase 1 another can begin from, and the step."""

    run: RunDir
    settings: Config
    step: int

    def records(self, c: Config) -> set[int]:
        """What it has recorded of what `c` needs; the rest is recorded of D where that is kept."""
        return record_steps(self.run) & recorded_by(self.settings, c, self.step)

    def fits(self, c: Config) -> bool:
        return (
            phase1_key(self.settings) == phase1_key(c)
            and self.step <= c.phase1_steps
            and self.step in checkpoint.steps(self.run.checkpoints, "phase1")
            and set(needed_records(c, self.step)) <= self.records(c) | kept_steps(self.run)
        )


def find_trunk(runs: Path, settings: Config, path: Path) -> Trunk | None:
    """The run, of those in a folder, whose phase 1 goes furthest of what `settings` need."""
    found: list[Trunk] = []
    for file in sorted(runs.glob("*/config.json")):
        run = RunDir(file.parent)
        if file.parent == path:
            continue
        try:
            theirs = config.loads(file.read_text(), str(file))
        except UserError:  # of another format, or half a file: not a run of ours
            continue
        trunk = Trunk(run, theirs, theirs.phase1_steps)
        found += [trunk] if trunk.fits(settings) else []

    def worth(trunk: Trunk) -> tuple[int, bool, int]:
        """How far it goes; of equals, whether its phase 2 is the same, and what it recorded."""
        same = stage_key(trunk.settings) == stage_key(settings)
        return trunk.step, same, len(trunk.records(settings))

    return max(found, key=worth, default=None)


def recorded_by(one: Config, other: Config, step: int) -> set[int]:
    """What a run with the settings `one` records, up to a step, of what `other` needs."""
    same = one.record.mode == other.record.mode
    return set(needed_records(one, step)) & set(needed_records(other, step)) if same else set()


def record_steps(run: RunDir) -> set[int]:
    return {int(file.stem) for file in run.record.glob("*.npy") if file.stem.isdigit()}


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
    if trunk.settings.record.mode == settings.record.mode != "none":
        wanted = {f"{step:06d}" for step in trunk.records(settings)} | {"meta", "free"}
        for file in trunk.run.record.glob("*"):  # none where it has only begun to record
            if file.name.partition(".")[0] in wanted:
                link(file, run.record / file.name)
    if trunk.run.kept.exists():
        link_folder(trunk.run.kept, run.kept)
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
