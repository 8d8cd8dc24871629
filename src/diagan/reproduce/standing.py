"""What is there of the units of a plan, and how long the rest takes; nothing here writes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from diagan import checkpoint, pipeline
from diagan.config import Config, DemoDigits, DrawnFaces, Gaussians25, SingleGaussian
from diagan.engine import resolve
from diagan.experiments.variants import arm_stage
from diagan.reproduce.branch import find_trunk, record_steps, recorded_by
from diagan.reproduce.plan import Job, Unit, phase1_key, stage_key
from diagan.reproduce.store import STORE, end_of, is_final, is_of_pixels
from diagan.reproduce.timing import Clock, features_of
from diagan.rundir import RunDir, read_json, read_lines
from diagan.weights import find_weights

MADE = (SingleGaussian, Gaussians25, DemoDigits, DrawnFaces)  # data that need no files


@dataclass
class Standing:
    """Where runs and results lie, and what of them is done."""

    runs: Path
    results: Path
    data_root: str | None = None
    clock: Clock = field(default_factory=Clock, kw_only=True)

    def settings(self, job: Job) -> Config:
        c = job.config
        return resolve(c if isinstance(c.data, MADE) else replace(c, data_root=self.data_root))

    def folder(self, job: Job) -> RunDir:
        return RunDir(self.runs / job.name)

    def stored(self, job: Job) -> Path:
        return self.results / STORE / job.name

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
            return f"{job.name}: {why}; delete {run.path} and {stored} to try again"
        if run.diagnosis.exists() and not pipeline.has_own_diagnosis(run, c):
            return (f"{run.path} was diagnosed anew by other settings than its own; delete "
                    f"{run.diagnosis.name} there to have its own again")  # fmt: skip
        return ""

    def is_done(self, unit: Unit) -> bool:
        run, c = self.folder(unit.job), self.settings(unit.job)
        stage = arm_stage(unit.what)
        if end_of(c, stage) not in checkpoint.steps(run.checkpoints, stage):
            return False
        return not self.missing(unit) if unit.measures else self.is_diagnosed(run, c)

    def is_diagnosed(self, run: RunDir, c: Config) -> bool:
        return run.diagnosis.exists() or c.record.mode == "none"

    def missing(self, unit: Unit) -> list[str]:
        """The protocols of a measuring that have no line yet: of the end of the stage, and in the
        features that the table is of, `diagan evaluate` having other ones."""
        stage, plus, _ = unit.what.partition("+")
        run, c = self.folder(unit.job), self.settings(unit.job)
        features = ("coordinates", features_of(c))
        lines = [x for x in read_lines(run.metrics)
                 if (x["arm"], x["drs"]) == (stage, bool(plus)) and is_final(x, c)
                 and (is_of_pixels(x) or x.get("extractor") in features)]  # fmt: skip
        of_parts = ("attribute:", "score: ")  # of `evaluate --by`, not by the groups of the data
        there = {x.get("protocol") for x in lines if not x.get("group", "").startswith(of_parts)}
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

    def seconds_now(self, unit: Unit, planned: float) -> float:
        """The run that the plan let a stage begin from may not have come about."""
        if unit.measures:
            return planned
        c, is_phase1 = self.settings(unit.job), unit.what == "phase1"
        started = self.phase1_start(unit.job) if is_phase1 else (self.start(unit), set[int]())
        return self.clock.seconds(unit, c, *started)
