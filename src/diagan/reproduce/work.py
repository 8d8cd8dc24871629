"""Does the units of a plan one after the other, none that would not end in the time left."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from diagan import checkpoint, pipeline
from diagan.config import Config
from diagan.errors import Busy, Diverged, UserError
from diagan.evaluate import Look, evaluate_run
from diagan.kept import needed_records
from diagan.progress import duration
from diagan.reproduce.branch import find_trunk, graft, recorded_by
from diagan.reproduce.plan import BOOKS, Job, Unit, phase1_key, split_subset
from diagan.reproduce.standing import Standing
from diagan.reproduce.store import keep, recorded_live
from diagan.reproduce.timing import features_of
from diagan.rundir import RunDir, locked, read_json, write_json
from diagan.stages import stages


@dataclass
class Workshop(Standing):
    """Does the work, and knows how much time is left."""

    deadline: float | None = None
    say: Callable[[str], None] = print
    failed: dict[str, str] = field(default_factory=dict)  # run: why
    done: dict[Unit, tuple[float, float]] = field(default_factory=dict)  # estimated, actual seconds
    unreported: set[Job] = field(default_factory=set)  # runs that have changed

    def refuse(self, jobs: Iterable[Job]) -> None:
        """Leave alone what is not theirs, and what cannot be finished."""
        for job in dict.fromkeys(jobs):
            if why := self.objection(job):
                self.failed[job.name] = why
                self.say(why)

    def work(self, planned: Mapping[Unit, float]) -> list[Unit]:
        """Do what can be done of units with their seconds; those left for want of time."""
        left: list[Unit] = []
        last = {unit.job: unit for unit in planned}
        for unit, planned_seconds in planned.items():
            where = f"{unit.job.name}, {unit.name}"
            if unit.job.name in self.failed or self.is_done(unit):
                continue
            if not self.is_ready(unit):
                left.append(unit)
                continue
            seconds = self.seconds_now(unit, planned_seconds)
            told = seconds * self.pace
            if self.deadline and time.time() + told > self.deadline:
                rest = duration(max(self.deadline - time.time(), 0))
                self.say(f"not started, {rest} left: {where} ({duration(told)})")
                left.append(unit)
                continue
            self.say(f"{where}: about {duration(told)}")
            began = time.time()
            try:
                self.do(unit, told)
            except UserError as error:
                self.give_up(unit, error)
            self.done[unit] = seconds, time.time() - began
            if unit is last[unit.job]:
                self.report(unit.job)
        return left

    def do(self, unit: Unit, seconds: float) -> None:
        """The work itself; what it took goes beside what was said."""
        run = self.begun(unit.job)
        began, ended, busy = time.time(), False, False
        try:
            if unit.measures:
                self.measure(unit, run)
            else:
                c = self.settings(unit.job)
                pipeline.run(c, run.path, stage=unit.what, keep=self.to_keep(unit.job))
            ended = True
        except Busy:
            busy = True
            raise
        finally:
            if not busy:
                note(run, unit.name, seconds, time.time() - began, ended)
                keep(run, self.stored(unit.job))
                self.unreported.add(unit.job)

    def to_keep(self, job: Job) -> set[int]:
        """Where D is kept: for records that the run does not take itself, and that others would
        which can begin from its phase 1, of whatever table."""
        c, found = self.settings(job), set[int]()
        end = c.phase1_steps
        for variant in {cell.variant for book in BOOKS.values() for cell in book.cells}:
            other = self.settings(replace(job, variant=variant))
            if other.phase1_steps >= end and phase1_key(other) == phase1_key(c):
                found |= set(needed_records(other, end)) - recorded_by(c, other, end)
        return found

    def give_up(self, unit: Unit, error: UserError) -> None:
        """Say it; that a run diverged is a result, and kept for the table."""
        run = self.folder(unit.job)
        self.failed[unit.job.name] = str(error)
        self.say(f"{unit.job.name}, {unit.name}: {error}")
        # Anything else (a full disk, another process in the folder) is not of the run's making.
        if isinstance(error, Diverged):
            write_json(run.provenance, read_json(run.provenance) | {"failed": str(error)})
            keep(run, self.stored(unit.job))

    @property
    def pace(self) -> float:
        """How much longer than estimated things take by now; never less than 1.

        A unit of seconds tells nothing about one of hours, so it starts at a minute as estimated.
        """
        estimated, actual = np.sum([*self.done.values(), (60.0, 60.0)], axis=0)
        return max(float(actual / estimated), 1.0)

    def measure(self, unit: Unit, run: RunDir) -> None:
        """By groups at once, and once for each attribute."""
        by_subset: dict[str, list[str]] = {}
        for protocol in self.missing(unit):
            name, subset = split_subset(protocol)
            by_subset.setdefault(subset, []).append(name)
        for subset, names in by_subset.items():
            look = Look(features_of(self.settings(unit.job)))
            with locked(run):
                evaluate_run(run.path, names, arms=[unit.what], by=subset or "group", look=look)

    def keep_all(self, jobs: Iterable[Job]) -> None:
        """The small files of runs that were finished before, too."""
        for job in jobs:
            run = self.folder(job)
            if run.config.exists() and job.name not in self.failed:
                keep(run, self.stored(job))

    def report(self, job: Job) -> None:
        """Anew, if the run has changed."""
        if job in self.unreported:
            pipeline.report(self.folder(job))
            self.unreported.remove(job)

    def begun(self, job: Job) -> RunDir:
        """The run's folder, with what another run has done of its phase 1 already."""
        run, c = self.folder(job), self.settings(job)
        if run.config.exists():
            if "units" not in read_json(run.provenance):
                with locked(run):
                    adopt(run, c)
            return run
        trunk = find_trunk(self.runs, c, run.path)
        with locked(run):
            if trunk:
                graft(trunk, c, run)
                self.say(f"{job.name}: phase 1 up to step {trunk.step} is that of "
                         f"{trunk.run.path.name}")  # fmt: skip
            expected = replace(self.clock.training(c), seconds=0.0)
            pipeline.begin(run, c, self.clock.dataset(c), expected)
            more: dict[str, Any] = {"units": {}}
            if trunk:
                live = recorded_live(trunk.run, trunk.settings)
                more["trunk"] = {"run": trunk.run.path.name, "step": trunk.step,
                                 "records": len(trunk.records(c)) if live else 0}  # fmt: skip
            write_json(run.provenance, read_json(run.provenance) | more)
        return run


def adopt(run: RunDir, c: Config) -> None:
    """What `diagan run` has done of a run is a unit of its own."""
    provenance = read_json(run.provenance)
    ended = all(stage.end in checkpoint.steps(run.checkpoints, stage.name) for stage in stages(c))
    whole = {"estimate": provenance["estimate"]["seconds"],
             "seconds": provenance.get("seconds", 0.0), "ended": ended}  # fmt: skip
    write_json(run.provenance, provenance | {"units": {"run": whole}})


def note(run: RunDir, unit: str, estimated: float, seconds: float, ended: bool) -> None:
    """What a unit took beside what was estimated; a unit that was cut short adds up, as one that is
    done a second time does, by other protocols.

    The run's own two figures are the sums over its units.
    """
    provenance: dict[str, Any] = read_json(run.provenance)
    units = provenance["units"]
    one = units.setdefault(unit, {"estimate": 0.0, "seconds": 0.0, "ended": True})
    if one["ended"]:  # what was cut short was estimated as a whole
        one["estimate"] += estimated
    one["seconds"] += seconds
    one["ended"] = ended
    if ended:
        provenance.pop("failed", None)
    provenance["estimate"]["seconds"] = sum(x["estimate"] for x in units.values())
    provenance["seconds"] = sum(x["seconds"] for x in units.values())
    write_json(run.provenance, provenance)
