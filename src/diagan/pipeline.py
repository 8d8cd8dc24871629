"""A run from its config to its report. A stage that is already done is skipped."""

import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from diagan import config, diagnosis, protocols
from diagan.config import Config, ImageFolder, Score
from diagan.data import Dataset, load_dataset
from diagan.engine import launch, resolve
from diagan.errors import Interrupted, UserError
from diagan.estimate import Estimate, estimate
from diagan.evaluate import arms_of, evaluate_arm
from diagan.features import Pixels
from diagan.findings import highscored
from diagan.findings.judging import judge_run
from diagan.kept import record_kept
from diagan.measures import Reals
from diagan.progress import Display, display, duration
from diagan.rundata import load_data, read_settings, refuse_other_data
from diagan.rundir import (
    RunDir,
    command_line,
    locked,
    open_run,
    read_json,
    refuse_inside,
    sweep,
    versions,
    write_json,
)
from diagan.stages import World, is_ldr, open_record, stages, train_stage
from diagan.thumbnails import keep_thumbnails


def run(
    settings: Config,
    path: str | Path,
    budget_seconds: float | None = None,
    stage: str | None = None,
    keep: Collection[int] = (),
) -> RunDir:
    """Train, record, diagnose, train on, evaluate and report; or go on with what is there.

    With a `stage`: train phase 1 and that stage, and no more. `keep`: steps of phase 1 at which D
    is kept.
    """
    settings = resolve(settings)
    folder = RunDir(Path(path))
    if isinstance(settings.data, ImageFolder):
        refuse_inside(folder.path, settings.data.path)
    fabric = launch(settings)
    with display(speaks=fabric.is_global_zero) as shown, stoppable() as should_stop:
        refuse_other_run(folder, settings, budget_seconds)
        dataset = load_dataset(settings.data, seed=settings.seed, root=settings.data_root)
        for note in dataset.notes:
            shown.say(note)
        if fabric.broadcast(folder.config.exists()):
            refuse_other_data(folder, dataset)
            settings = dataclasses.replace(
                read_settings(folder), data=settings.data, data_root=settings.data_root
            )
            shown.say(f"going on with {folder.path}")
        else:
            settings, expected = estimate(settings, dataset, fabric, budget_seconds)
            config.check_sightings(settings, dataset.n)
            shown.say(
                f"{settings.steps} steps on {settings.device} in {settings.precision}: about "
                f"{duration(expected.seconds)} and {expected.bytes / 1e6:,.0f} MB in {path}"
            )
            if fabric.is_global_zero:
                begin(folder, settings, dataset, expected)
        world = World(settings, dataset, fabric, folder, shown, keep)
        with locked(folder) if fabric.is_global_zero else nullcontext():
            if fabric.is_global_zero and settings != read_settings(folder):  # the data were moved
                write_json(folder.config, config.to_json(settings))
            work(world, should_stop, stage)
    return folder


def work(world: World, should_stop: Callable[[], bool], stage: str | None = None) -> None:
    """What rank 0 writes, it writes alone: training is shared, the rest is its own."""
    fabric, folder = world.fabric, world.run
    if fabric.is_global_zero:
        sweep(folder)
    fabric.barrier()
    began = time.time()
    try:
        train_all(world, should_stop, stage)
        if fabric.is_global_zero and stage is None:
            evaluate_all(world, should_stop)
    finally:
        if fabric.is_global_zero:
            note_time(folder, time.time() - began)
    if fabric.is_global_zero and stage is None:
        report(folder)
    fabric.barrier()


def refuse_other_run(folder: RunDir, settings: Config, budget_seconds: float | None) -> None:
    """A folder holds one run: going on with it under another config is refused."""
    if why := other_run(folder, settings, budget_seconds):
        raise UserError(f"{why}; choose another --out, or give the same settings to go on")


def other_run(folder: RunDir, settings: Config, budget_seconds: float | None = None) -> str:
    """What is another in the run that a folder holds, if it is one.

    Where its data lie is left out: their fingerprint tells whether they are the same.
    """
    if not folder.config.exists():
        return ""
    there = config.flat(read_settings(folder))
    mine = config.flat(settings)
    free = {"data.path", "data_root"}
    free |= {"steps", "record.every"} if budget_seconds else set()  # they follow from the budget
    differ = [key for key in mine if mine[key] != there.get(key) and key not in free]
    if not differ:
        return ""
    key = differ[0]
    flag = key.removeprefix("score.").replace("_", "-")  # of a score the flags are the names alone
    return f"{folder.path} holds a run with --{flag} {there.get(key)}, not {mine[key]}"


def begin(folder: RunDir, settings: Config, dataset: Dataset, expected: Estimate) -> None:
    """config.json last: a folder that has it is a run."""
    provenance = {
        "format": 1,
        "command": command_line(),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "versions": versions(),
        "seed": settings.seed,
        "device": settings.device,
        "precision": settings.precision,
        "data": {"fingerprint": dataset.fingerprint, "n": dataset.n, "notes": list(dataset.notes)},
        "shape": list(dataset.shape),
        "estimate": dataclasses.asdict(expected),
    }
    write_json(folder.provenance, provenance)
    write_json(folder.config, config.to_json(settings))


def note_time(folder: RunDir, seconds: float) -> None:
    """What it took, beside what was estimated; time before an interruption counts too."""
    provenance = read_json(folder.provenance)
    provenance["seconds"] = provenance.get("seconds", 0.0) + seconds
    write_json(folder.provenance, provenance)


def train_all(world: World, should_stop: Callable[[], bool], only: str | None = None) -> None:
    """Every stage in order, or phase 1 and one other, with the diagnosis after phase 1."""
    weights = None
    for stage in stages(world.config):
        if only and stage.name not in ("phase1", only):
            continue
        if stage.weighted:
            weights = diagnosis.read_weights(world.run)
        if not world.is_done(stage) and not train_stage(world, stage, weights, should_stop):
            raise stopped(world)
        if stage.start == 0 and world.config.record.mode != "none":
            if not record_kept(world, should_stop):
                raise stopped(world)
            # Anew where training goes on: `diagnose run` may have changed the weights meanwhile.
            finished = all(world.is_done(later) for later in stages(world.config))
            if world.fabric.is_global_zero and not (finished and world.run.diagnosis.exists()):
                tell(world.display, diagnose_run(world.run, world.config, world.dataset))
            world.fabric.barrier()


def diagnose_run(run: RunDir, c: Config, data: Dataset) -> diagnosis.Diagnosis:
    """The record and the data -> samples.parquet, diagnosis.json and thumbnails."""
    record = open_record(run, c, data)
    grouping = diagnosis.Grouping(data.groups, data.group_names, data.rare)
    last = c.phase1_steps if c.record.include_end else c.phase1_steps - 1
    steps = [step for step in record.steps if step <= last][-c.record.window :]
    if c.record.mode == "free":
        count, ldrm, ldrv = record.free_moments()
        found = diagnosis.from_moments(ldrm, ldrv, int(np.median(count)), c.score, grouping)
        steps = [c.record_start, c.phase1_steps]
    else:
        found = diagnosis.diagnose((record.read(step) for step in steps), c.score, grouping)
    about = {"mode": c.record.mode, "is_ldr": is_ldr(c),
             "first_step": steps[0], "last_step": steps[-1]}  # fmt: skip
    columns, high = highscored.mark(found.score, data.values, seed=c.seed)
    diagnosis.write(run, found, data.columns | columns, about | high)
    if data.is_image:
        keep_thumbnails(run, data.values)
    return found


def diagnose_again(path: str | Path, score: Score) -> diagnosis.Diagnosis:
    """Score and weigh the samples of a run with other settings, and write its report anew."""
    run = open_run(path)
    settings = read_settings(run)
    data = load_data(run, settings)
    found = diagnose_run(run, config.check(dataclasses.replace(settings, score=score)), data)
    report(run)
    return found


def has_own_diagnosis(run: RunDir, c: Config) -> bool:
    """Whether a run is diagnosed by its config, and not anew by other settings."""
    return run.diagnosis.exists() and diagnosis.read_score(run) == c.score


def report(run: RunDir) -> None:
    from diagan.report import write_report

    write_report(run.path)


def tell(shown: Display, found: diagnosis.Diagnosis) -> None:
    how = " = sd(LDRM) / sd(sqrt(LDRV))" if found.settings.k is None else ""
    shown.say(f"diagnosed {len(found.score):,} samples from {found.n_records} "
              f"{'record' if found.n_records == 1 else 'records'}, "
              f"k = {found.k:.3g}{how}")  # fmt: skip
    if found.auc:
        shown.say(f"AUC for {found.rare}: score {found.auc['score']:.3f}, "
                  f"LDRM {found.auc['ldrm']:.3f}, LDRV {found.auc['ldrv']:.3f}")  # fmt: skip
    for warning in found.warnings:
        shown.say(f"warning: {warning}")


def stopped(world: World) -> Interrupted:
    return Interrupted(f"stopped and saved; the same command goes on: {world.run.path}")


def evaluate_all(world: World, should_stop: Callable[[], bool]) -> None:
    """Group shares and missing modes of every arm, with rejection where it is valid; more by
    `diagan evaluate`."""
    c, data = world.config, world.dataset
    pixels = Pixels(data.shape) if data.is_image else None
    wanted = protocols.parse_all([f"shares{c.n_evaluate}", f"missing{c.n_evaluate}"])
    real = Reals(data, pixels, c.seed)
    judge_run(world.run, data)
    for arm in arms_of(world.run, c):
        if should_stop():
            raise stopped(world)
        evaluate_arm(world.run, arm, real, wanted, world.display)


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask to stop after the step; a second Ctrl-C stops at once."""
    asked = threading.Event()

    def ask(number: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
