"""Does the units of a plan one after the other, none that would not end in the time left."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from diagan import checkpoint, pipeline
from diagan.config import Config, DemoDigits, DrawnFaces, Gaussians25, SingleGaussian
from diagan.engine import resolve
from diagan.errors import Busy, Diverged, UserError
from diagan.evaluate import Look, evaluate_run
from diagan.experiments.cells import MAJOR, MINOR
from diagan.experiments.variants import arm_stage
from diagan.kept import needed_records
from diagan.progress import duration
from diagan.reproduce.branch import find_trunk, graft, record_steps, recorded_by
from diagan.reproduce.plan import BOOKS, Job, Unit, phase1_key, split_subset, stage_key
from diagan.reproduce.store import STORE, keep
from diagan.reproduce.timing import Clock, own_features
from diagan.rundir import RunDir, locked, read_json, read_lines, write_json
from diagan.stages import stages
from diagan.weights import find_weights

GROUPS = {"", *MINOR.values(), *MAJOR.values()}  # that tables ask of
MADE = (SingleGaussian, Gaussians25, DemoDigits, DrawnFaces)  # data that need no files


@dataclass
class Workshop:
    """Where runs and results lie, and how much time is left."""

    runs: Path
    results: Path
    data_root: str | None = None
    deadline: float | None = None
    say: Callable[[str], None] = print
    clock: Clock = field(default_factory=Clock)
    failed: dict[str, str] = field(default_factory=dict)  # run: why
    done: dict[Unit, tuple[float, float]] = field(default_factory=dict)  # estimated, actual seconds
    unreported: dict[Job, None] = field(default_factory=dict)  # runs that have changed, in order

    def settings(self, job: Job) -> Config:
        c = job.config
        return resolve(c if isinstance(c.data, MADE) else replace(c, data_root=self.data_root))

    def folder(self, job: Job) -> RunDir:
        return RunDir(self.runs / job.name)

    def stored(self, job: Job) -> Path:
        return self.results / STORE / job.name

    def refuse(self, jobs: Iterable[Job]) -> None:
        """Leave alone what is not theirs, and what cannot be finished."""
        for job in dict.fromkeys(jobs):
            if why := self.objection(job):
                self.failed[job.name] = why
                self.say(why)

    def objection(self, job: Job) -> str:
        """Why a run cannot be measured here, if so."""
        run, c, stored = self.folder(job), self.settings(job), self.stored(job)
        if why := pipeline.other_run(run, c):
            return f"{why}; give another --runs, or delete that folder"
        began = read_json(run.provenance)["started"] if run.config.exists() else None
        kept = stored / "provenance.json"
        if kept.exists() and read_json(kept)["started"] != began:
            return (f"{stored} holds what a run has measured that is not in {self.runs}; give "
                    "another --results, or delete that folder to measure anew")  # fmt: skip
        if began and (why := read_json(run.provenance).get("failed")):
            return f"{job.name}: {why}; delete {run.path} to try again"
        if run.diagnosis.exists() and not pipeline.has_own_diagnosis(run, c):
            return (f"{run.path} was diagnosed anew by other settings than its own; delete "
                    f"{run.diagnosis.name} there to have its own again")  # fmt: skip
        return ""

    # --- where things stand ----------------------------------------------------------------------

    def is_done(self, unit: Unit) -> bool:
        run, c = self.folder(unit.job), self.settings(unit.job)
        stage = arm_stage(unit.what)
        if end_of(c, stage) not in checkpoint.steps(run.checkpoints, stage):
            return False
        return not self.missing(unit) if unit.measures else self.is_diagnosed(run, c)

    def is_diagnosed(self, run: RunDir, c: Config) -> bool:
        return run.diagnosis.exists() or c.record.mode == "none"

    def missing(self, unit: Unit) -> list[str]:
        """The protocols of a measuring that have no line yet."""
        stage, plus, _ = unit.what.partition("+")
        lines = [x for x in read_lines(self.folder(unit.job).metrics)
                 if (x["arm"], x["drs"]) == (stage, bool(plus))]  # fmt: skip
        there = {x.get("protocol") for x in lines if x.get("group", "") in GROUPS}
        there |= {f"{x.get('protocol')}@{x.get('group')}" for x in lines}
        # The Inception Score needs classes; other extractors' would be another number.
        has_classes = find_weights("inception") is not None
        wanted = [name for name in unit.protocols if has_classes or not name.startswith("is")]
        return [name for name in wanted if name not in there]

    def is_ready(self, unit: Unit) -> bool:
        """Whether what the unit builds on is there."""
        job, c = unit.job, self.settings(unit.job)
        if unit.what == "phase1" and not unit.measures:
            return True
        before, run = arm_stage(unit.what) if unit.measures else "phase1", self.folder(job)
        there = end_of(c, before) in checkpoint.steps(run.checkpoints, before)
        return there and (unit.measures or self.is_diagnosed(run, c))

    # --- the plan --------------------------------------------------------------------------------

    def estimates(self, units: Sequence[Unit]) -> dict[Unit, float]:
        """Seconds of what is left of each unit that is not done."""
        found: dict[Unit, float] = {}
        trunks: dict[Config, list[Config]] = {}  # whose phase 1 comes before, by its key
        trained: set[tuple[Config, str]] = set()
        looked: set[tuple[object, int]] = set()
        for unit in units:
            c, recorded = self.settings(unit.job), set[int]()
            if not unit.measures and unit.what == "phase1":
                before = trunks.setdefault(phase1_key(c), [])
                start, recorded = self.phase1_start(unit.job, before)
                before += [] if self.is_done(unit) else [c]
            else:
                shared = not self.folder(unit.job).config.exists()  # then it begins as a copy
                there = shared and (stage_key(c), unit.what) in trained
                start = c.steps if there else self.start(unit)
            trained.add((stage_key(c), unit.what))
            if not self.is_done(unit):
                new_data = (c.data, c.seed) not in looked
                found[unit] = self.clock.seconds(unit, c, start, recorded, new_data)
            if unit.measures:
                looked.add((c.data, c.seed))
        return found

    def start(self, unit: Unit) -> int:
        """The step from which a stage goes on."""
        own = checkpoint.steps(self.folder(unit.job).checkpoints, arm_stage(unit.what))
        return own[-1] if own else 0

    def phase1_start(self, job: Job, before: Iterable[Config] = ()) -> tuple[int, set[int]]:
        """The step from which phase 1 goes on, and what is recorded by then: by the run itself, or
        by the run that it begins from, of those that are there and of the plan's `before` it."""
        run, c = self.folder(job), self.settings(job)
        if run.config.exists():
            steps = checkpoint.steps(run.checkpoints, "phase1")
            start = steps[-1] if steps else 0
            return start, {step for step in record_steps(run) if step <= start}
        found = [(0, set[int]())]
        if trunk := find_trunk(self.runs, c, run.path):
            found += [(trunk.step, trunk.records(c))]
        for other in before:
            if (end := other.phase1_steps) <= c.phase1_steps:
                found += [(end, recorded_by(other, c, end))]
        return max(found, key=lambda start: (start[0], len(start[1])))

    # --- the work --------------------------------------------------------------------------------

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
                self.report([unit.job])
        return left

    def seconds_now(self, unit: Unit, planned: float) -> float:
        """The run that the plan let a stage begin from may not have come about."""
        if unit.measures:
            return planned
        c, is_phase1 = self.settings(unit.job), unit.what == "phase1"
        started = self.phase1_start(unit.job) if is_phase1 else (self.start(unit), set[int]())
        return self.clock.seconds(unit, c, *started)

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
                self.unreported[unit.job] = None

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
            look = Look(own_features(self.settings(unit.job)))
            with locked(run):
                evaluate_run(run.path, names, arms=[unit.what], by=subset or "group", look=look)

    def keep_all(self, jobs: Iterable[Job]) -> None:
        """The small files of runs that were finished before, too."""
        for job in jobs:
            run = self.folder(job)
            if run.config.exists() and job.name not in self.failed:
                keep(run, self.stored(job))

    def report(self, jobs: Iterable[Job] = ()) -> None:
        """Anew, of those that have changed; by default of all."""
        for job in [*jobs] or [*self.unreported]:
            if job in self.unreported:
                pipeline.report(self.folder(job))
                del self.unreported[job]

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
                more["trunk"] = {"run": trunk.run.path.name, "step": trunk.step,
                                 "records": len(trunk.records(c))}  # fmt: skip
            write_json(run.provenance, read_json(run.provenance) | more)
        return run


def end_of(c: Config, stage: str) -> int:
    return c.phase1_steps if stage == "phase1" else c.steps


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
