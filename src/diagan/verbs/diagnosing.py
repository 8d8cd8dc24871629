"""`diagnose ...` and `filter`.

Nothing here imports torch before it has to: --help answers at once.
"""

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import tyro
from tyro.conf import Positional, arg

from diagan import config as configs
from diagan.config import PROBE_SCORE, ROBUST_SCORE, Score
from diagan.errors import UserError
from diagan.progress import Display, display
from diagan.rundir import open_run
from diagan.verbs.common import Verb

Args = TypeVar("Args")


@dataclass(frozen=True)
class DiagnoseRun:
    """Score and weigh the samples of a run again, perhaps with other settings.

    diagan diagnose run RUN RUN ...: how alike several runs rank the same samples.

    They were diagnosed already; a diagnosis averaged over them is written too.
    """

    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN ...")]
    """The folder of a run; or several of them."""
    out: Annotated[str | None, arg(metavar="DIR")] = None
    """Of several runs: the folder of the averaged diagnosis (default: stability)."""
    score: Annotated[Score, arg(name="")] = field(default_factory=Score)


@dataclass(frozen=True)
class DiagnoseCheckpoint:
    """Diagnose a finished model that has no record: one look at its discriminator.

    diagan diagnose checkpoint RUN: a run of diagan.

    diagan diagnose checkpoint FILE --discriminator gan:load --data DIR --fake DIR

    Anyone's: gan.load(FILE), or load() without FILE, returns a function.

    It takes images [B, C, H, W] in [-1, 1] and returns logits [B] and features

    [B, F], which are what the last, linear layer of the discriminator is given.

    The LDR now stands for LDRM; LDRV is predicted from D's last layer (Eq. 4, 5).
    """

    run: Annotated[Positional[str], arg(metavar="RUN")] = ""
    """The folder of a run; with --discriminator, a file that goes to its load function."""
    discriminator: Annotated[str | None, arg(metavar="MODULE:FUNCTION")] = None
    """Your own discriminator; the module is looked for in the present folder too."""
    data: Annotated[str | None, arg(metavar="PATH")] = None
    """With --discriminator: the real images."""
    fake: Annotated[str | None, arg(metavar="PATH")] = None
    """With --discriminator: generated images, about as many."""
    size: int | None = None
    """With --discriminator: side in pixels that it takes (default: the nearest of 32 and 64)."""
    hinge: bool = False
    """With --discriminator: it was trained with a hinge or Wasserstein loss."""
    arm: Literal["auto", "weighted", "plain", "phase1"] = "auto"
    """Of a run: which model; auto: the weighted one (Dia-GAN) where there is one."""
    s_0: Annotated[float | None, arg(name="s0")] = None
    """Prior variance of the weights of D's last layer; none: 1 / 3F for F features."""
    out: Annotated[str | None, arg(metavar="DIR")] = None
    """Write there instead of into the run (with --discriminator, default: diagnosis)."""
    score: Annotated[Score, arg(name="")] = field(default_factory=Score)


@dataclass(frozen=True)
class DiagnoseRecord:
    """Diagnose a record that any trainer wrote (docs/formats.md).

    A record/ folder; a .npy of logits [records, samples], or the other way round;

    a .npz with `logits` [records, samples] and perhaps `steps` and `groups`;

    or a .parquet with the columns index, step and logit.
    """

    path: Annotated[Positional[str], arg(metavar="PATH")]
    """The record."""
    data: Annotated[str | None, arg(metavar="PATH")] = None
    """The recorded images, in the order of the record (of a folder: by path); none: no pictures."""
    out: Annotated[str | None, arg(metavar="DIR")] = None
    """The folder of the diagnosis (default: diagnosis)."""
    rows: Literal["auto", "records", "samples"] = "auto"
    """What a row of a .npy is; auto: the axis as long as the data, or else the longer, are
    samples."""
    window: int | None = None
    """Only the last so many records (default: all)."""
    hinge: bool = False
    """The logits come from a hinge or Wasserstein loss: they rank samples and say no more."""
    group_by: str | None = None
    """The column of the data that names the groups (default: group, label or class)."""
    score: Annotated[Score, arg(name="")] = ROBUST_SCORE


@dataclass(frozen=True)
class DiagnoseFolders:
    """What does a generator fail to make? Two folders of images are enough to tell.

    A probe is trained between them; each image is scored by one that never saw it.

    Sub-folders of the real images are groups.
    """

    real: Annotated[str, arg(metavar="PATH")]
    """Images that it should make: a folder, a .zip, .parquet, .npy or .npz, or a hub name."""
    fake: Annotated[str, arg(metavar="PATH")]
    """Images that it made; any generator will do."""
    out: Annotated[str, arg(metavar="DIR")] = "diagnosis"
    """The folder of the diagnosis."""
    size: int | None = None
    """Side in pixels to which they are brought (default: the nearest of 32 and 64)."""
    group_by: str | None = None
    """The column that names the groups of the real images (default: group, label or class)."""
    seed: int = 0
    score: Annotated[Score, arg(name="")] = PROBE_SCORE


@dataclass(frozen=True)
class Filter:
    """Keep the better part of a folder of generated images, by rejection sampling.

    The probe of `diagnose folders` says how real each is; the files are copied.
    """

    real: Annotated[str, arg(metavar="PATH")]
    """Real images."""
    fake: Annotated[str, arg(metavar="PATH")]
    """Generated images to choose from."""
    out: Annotated[str, arg(metavar="DIR")]
    """Where the kept ones go: a folder that is empty or not there yet."""
    n: int | None = None
    """Keep exactly so many (default: as the acceptance probabilities fall out)."""
    size: int | None = None
    """Side in pixels at which they are looked at (default: the nearest of 32 and 64)."""
    seed: int = 0


def diagnose_run(args: DiagnoseRun) -> None:
    from diagan import pipeline

    if not args.runs:
        raise UserError("RUN is missing (The folder of a run), or several of them")
    if len(args.runs) > 1:
        compare(args)
        return
    if args.out:
        raise UserError("--out goes with several runs; one is diagnosed in its own folder")
    found = pipeline.diagnose_again(args.runs[0], configs.check_score(args.score))
    pipeline.tell(Display(), found)
    print(f"wrote {args.runs[0]}/samples.parquet, diagnosis.json and report.html")


def compare(args: DiagnoseRun) -> None:
    from diagan import pipeline
    from diagan.rundir import RunDir
    from diagan.stability import compare_runs, table_of

    out = args.out or "stability"
    found, _ = compare_runs(args.runs, out=out, score=configs.check_score(args.score))
    pipeline.report(RunDir(Path(out)))
    print(table_of(found))
    print(f"wrote {out}/stability.json, samples.parquet (averaged) and report.html")


def diagnose_checkpoint(args: DiagnoseCheckpoint) -> None:
    if args.discriminator:
        diagnose_anyones(args)
        return
    if not args.run:
        raise UserError("RUN is missing; or give --discriminator, --data and --fake")
    if args.data or args.fake or args.size or args.hinge:
        raise UserError("--data, --fake, --size and --hinge go with --discriminator; a run knows "
                        "its own")  # fmt: skip
    from diagan import checkpoint_diagnosis, pipeline

    arm = None if args.arm == "auto" else args.arm
    found = checkpoint_diagnosis.diagnose_checkpoint(
        args.run, arm=arm, s_0=args.s_0, score=configs.check_score(args.score), out=args.out
    )
    pipeline.tell(Display(), found)
    print(f"wrote {args.out or args.run}/samples.parquet and diagnosis.json")


def diagnose_anyones(args: DiagnoseCheckpoint) -> None:
    if not args.data or not args.fake:
        raise UserError("--discriminator needs --data PATH (real images) and --fake PATH")
    if args.arm != "auto":
        raise UserError("--arm goes with a run; --discriminator has one model")
    from diagan.foreign import discriminator

    out = args.out or "diagnosis"
    d = discriminator.load_discriminator(str(args.discriminator), args.run or None)
    found = discriminator.diagnose_with(
        d, real=args.data, fake=args.fake, out=out, size=args.size, s_0=args.s_0,
        score=configs.check_score(args.score), is_ldr=not args.hinge,
    )  # fmt: skip
    finish(out, found)


def diagnose_record(args: DiagnoseRecord) -> None:
    from diagan.foreign import records

    out = args.out or "diagnosis"
    found = records.diagnose_record(
        args.path, out=out, data=args.data, score=configs.check_score(args.score),
        rows=args.rows, window=args.window, is_ldr=not args.hinge, group_by=args.group_by,
    )  # fmt: skip
    finish(out, found)


def diagnose_folders(args: DiagnoseFolders) -> None:
    from diagan.foreign import folders

    with display() as shown:
        found = folders.diagnose_folders(
            real=args.real, fake=args.fake, out=args.out, size=args.size, group_by=args.group_by,
            score=configs.check_score(args.score), seed=args.seed, shown=shown,
        )  # fmt: skip
    finish(args.out, found)


def finish(out: str, found: object) -> None:
    """Write the report of a diagnosis, and say what there is."""
    from diagan import pipeline
    from diagan.diagnosis import Diagnosis
    from diagan.rundir import RunDir
    from diagan.summary import verdict_lines

    assert isinstance(found, Diagnosis)
    pipeline.report(RunDir(Path(out)))
    pipeline.tell(Display(), found)
    for line in verdict_lines(RunDir(Path(out))):
        print(line)
    print(f"wrote {out}/samples.parquet, diagnosis.json and report.html")


def filter_images(args: Filter) -> None:
    from diagan.foreign.filtering import filter_folder

    with display() as shown:
        found = filter_folder(real=args.real, fake=args.fake, out=args.out, n=args.n,
                              size=args.size, seed=args.seed, shown=shown)  # fmt: skip
    print(f"kept {found.n_kept:,} of {found.n_fake:,} images ({found.acceptance_rate:.1%}) in "
          f"{args.out}")  # fmt: skip
    if found.is_blind:
        print("warning: the probe cannot tell the fakes from the real images; what was kept is "
              "close to a random choice")  # fmt: skip


def diagnose_default(argv: Sequence[str]) -> DiagnoseRun | None:
    """The first run's own settings, which flags then override."""
    asked = first_look(DiagnoseRun, argv)
    if not asked or not asked.runs:
        return None
    return DiagnoseRun(asked.runs, score=own_score(asked.runs[0]))


def checkpoint_default(argv: Sequence[str]) -> DiagnoseCheckpoint | None:
    """The run's own settings but for k: a predicted LDRV has another scale than a recorded one."""
    asked = first_look(DiagnoseCheckpoint, argv)
    if asked and asked.discriminator:
        return DiagnoseCheckpoint(score=ROBUST_SCORE)
    if not asked or not asked.run:
        return None
    return DiagnoseCheckpoint(asked.run, score=replace(own_score(asked.run), k=None))


def first_look(kind: type[Args], argv: Sequence[str]) -> Args | None:
    """What the words say by themselves; None where they ask for help, or are mistaken."""
    nowhere = io.StringIO()
    try:
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            return tyro.cli(kind, args=list(argv), config=(tyro.conf.AvoidSubcommands,))
    except SystemExit:
        return None


def own_score(run: str) -> Score:
    settings = open_run(run).config
    return configs.loads(settings.read_text(), str(settings)).score


VERBS = (
    Verb("diagnose run", DiagnoseRun, diagnose_run, "score a run's samples again, or compare runs",
         diagnose_default),
    Verb("diagnose record", DiagnoseRecord, diagnose_record, "a record that any trainer wrote"),
    Verb("diagnose checkpoint", DiagnoseCheckpoint, diagnose_checkpoint,
         "a model that has no record, or anyone's discriminator", checkpoint_default),
    Verb("diagnose folders", DiagnoseFolders, diagnose_folders,
         "two folders of images, from any generator"),
    Verb("filter", Filter, filter_images, "keep the better part of a folder of fakes"),
)  # fmt: skip
