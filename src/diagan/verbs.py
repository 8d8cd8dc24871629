"""The verbs: what each takes, and the one library function that it calls.

Nothing here imports torch before it has to: --help answers at once.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, TextIO

from tyro.conf import Positional, arg

from diagan import config as configs
from diagan.config import DCGAN, Config, ImageFolder, Optim, Penalty, Record, Score, StyleGAN2
from diagan.diagnose_verbs import (
    DiagnoseCheckpoint,
    DiagnoseFolders,
    DiagnoseRecord,
    DiagnoseRun,
    Filter,
    checkpoint_default,
    diagnose_checkpoint,
    diagnose_default,
    diagnose_folders,
    diagnose_record,
    diagnose_run,
    filter_images,
)
from diagan.errors import UserError
from diagan.experiments import EXPERIMENTS, at_scale, find

Scale = Literal["paper", "cpu", "smoke"]


@dataclass(frozen=True)
class Demo:
    """Train and diagnose a small GAN on digits that ship with diagan, in minutes.

    It ends with how well the rare digits were found, and brought back.
    """

    out: str = "runs/demo"
    """The folder of the run."""
    seed: int = 0
    scale: Literal["cpu", "smoke"] = "cpu"
    """smoke: a few seconds, to see whether it works."""


@dataclass(frozen=True)
class Run:
    """Train, record, diagnose, train on with weights, reject and report.

    diagan run EXPERIMENT: an experiment of the paper (`diagan list` shows them).

    diagan run --data PATH: images of your own; see also `diagan data check`.

    diagan run --config FILE: what a config.json says.

    On a folder that holds the same run already it goes on where it stopped.
    """

    experiment: Annotated[Positional[str], arg(metavar="EXPERIMENT")] = ""
    """The name of an experiment; the flags below override its settings."""
    data: Annotated[str | None, arg(metavar="PATH")] = None
    """A folder of images, a .zip, .parquet, .npy or .npz file, or a name on the hub."""
    config_file: Annotated[str | None, arg(name="config", metavar="FILE")] = None
    """A config.json."""
    out: Annotated[str | None, arg(metavar="DIR")] = None
    """The folder of the run (default: runs/ and the experiment's name)."""
    scale: Scale = "paper"
    """cpu: minutes on two cores; smoke: seconds, to see whether it works."""
    budget: Annotated[str | None, arg(metavar="TIME")] = None
    """How long it may take, such as 30m or 2h: sets the steps (with --data)."""
    config: Annotated[Config, arg(name="")] = EXPERIMENTS["colored_mnist_99"].config


@dataclass(frozen=True)
class DataCheck:
    """Look at images before a run: what is there, what would be converted, what is unreadable.

    Groups are sub-folders, or a column of a metadata.csv (which names files in file_name), of a
    parquet file or of a .npz.
    """

    path: Annotated[Positional[str], arg(metavar="PATH")]
    """A folder of images, a .zip, .parquet, .npy or .npz file, or a name on the hub."""
    size: int | None = None
    """Side in pixels (default: the nearest of 32, 64, 128, 256)."""
    group_by: str | None = None
    """The column that names the groups (default: group, label or class)."""


@dataclass(frozen=True)
class Evaluate:
    """Measure what a run's generators make, or a folder of images against another.

    diagan evaluate RUN: every arm of a run; the numbers are also in its metrics.jsonl.

    diagan evaluate --real DIR --fake DIR: images of any origin.

    A metric's name says what is measured: fid50k_train, kid10k_heldout, is50k, pr10k_k3, dc10k_k5,
    partial_recall10k_k3, partial_fid50k_ends5k, group_fid10k, re50k_epochs50, shares10k.
    """

    run: Annotated[Positional[str], arg(metavar="RUN")] = ""
    """The folder of a run."""
    real: Annotated[str | None, arg(metavar="DIR")] = None
    """Real images; sub-folders are groups."""
    fake: Annotated[str | None, arg(metavar="DIR")] = None
    """Generated images."""
    metrics: Annotated[tuple[str, ...], arg(metavar="NAME ...")] = ()
    """Which; by default FID, KID, precision, recall, density, coverage and the groups."""
    n: int | None = None
    """Generated images for the default metrics (10,000; of a folder, all it has up to that)."""
    arms: Annotated[tuple[str, ...], arg(metavar="ARM ...")] = ()
    """Of a run: plain, weighted, phase1, and any of them with +drs, such as plain+drs."""
    features: str | None = None
    """inception, classifier-colored_mnist, classifier-mnist_fmnist, pixels, discriminator; by
    default inception where its weights are, else what is at hand."""
    weights: Annotated[str | None, arg(metavar="FILE")] = None
    """Weights for the features, instead of the imported ones."""
    resize: Literal["tf1", "halfpixel"] = "tf1"
    """How Inception's input is resized: as the original graph does, or as pytorch-fid."""
    by: str = "group"
    """Which subsets: group, score (quarters of it), attribute:NAME, or a file of indices."""
    size: int | None = None
    """Side to which the images of folders are brought (default: the first real image's)."""
    seed: int | None = None
    """Of the drawn images (default: the run's)."""
    json: bool = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class WeightsImport:
    """Keep a downloaded weight file (Inception for FID, VGG16) for all later evaluations."""

    file: Annotated[Positional[str], arg(metavar="FILE")]
    """Such as pt_inception-2015-12-05-6726825d.pth or vgg16-397923af.pth."""


@dataclass(frozen=True)
class WeightsFetch:
    """Download a weight file from its public place; the only command that downloads one."""

    name: Annotated[Positional[Literal["inception", "vgg16"]], arg(metavar="NAME")]
    """inception or vgg16."""


@dataclass(frozen=True)
class Sample:
    """Draw images from a finished run: PNGs in a folder, and a grid of some beside it."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The folder of a run."""
    n: int = 64
    """How many."""
    out: Annotated[str, arg(metavar="DIR")] = "samples"
    """Where to: a folder that is empty or not there yet."""
    drs: bool = True
    """Rejection sampling; --no-drs takes the images as the generator makes them."""
    arm: Literal["auto", "weighted", "plain", "phase1"] = "auto"
    """Which generator; auto: the weighted one (Dia-GAN) where there is one."""
    seed: int = 0


@dataclass(frozen=True)
class Report:
    """Write a run's report.html again from its folder, or one page for several runs.

    diagan report RUN RUN ... --out FILE: the runs side by side.
    """

    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN ...")]
    """The folder of a run or of a diagnosis; or several of them."""
    out: Annotated[str | None, arg(metavar="FILE")] = None
    """Where the page for several runs goes (default: comparison.html)."""


@dataclass(frozen=True)
class Reproduce:
    """Measure a table or a figure of the paper, beside the paper's numbers.

    diagan reproduce: their names, and what of them was measured.

    diagan reproduce NAME: plans the runs, does what fits into --time-left.

    It says how long each takes, and writes results/tables/NAME.md.

    The same command goes on where it stopped.
    """

    name: Annotated[Positional[str], arg(metavar="NAME")] = ""
    """table1 to table6, tableA7 to tableA13, figure1 to figureA10, complexity, departures."""
    scale: Scale = "paper"
    """cpu: minutes on two cores; smoke: seconds, to see whether it works."""
    seeds: tuple[int, ...] = ()
    """Which seeds (default: as many as the paper has trials)."""
    rows: Annotated[tuple[str, ...], arg(metavar="ROW ...")] = ()
    """Only these, by name or how they begin (default: all; below the paper's scale, the quick)."""
    columns: Annotated[tuple[str, ...], arg(metavar="COLUMN ...")] = ()
    """Only these, likewise."""
    time_left: Annotated[str | None, arg(metavar="TIME")] = None
    """Such as 150m: nothing is started that would not end by then."""
    plan: bool = False
    """Print the plan with its estimates, and do nothing."""
    index: bool = False
    """Write results/README.md and the tables anew from what is stored, and do nothing else."""
    data_root: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder with <name>/<split>.parquet (default: DIAGAN_DATA, or else the Hugging Face hub)."""
    runs: Annotated[str | None, arg(metavar="DIR")] = None
    """Where run folders lie (default: DIAGAN_RUNS, or else runs)."""
    results: Annotated[str, arg(metavar="DIR")] = "results"
    """Where small files and tables go."""


@dataclass(frozen=True)
class List:
    """List the experiments that can be run by name."""


def demo(args: Demo) -> None:
    from diagan import pipeline
    from diagan.summary import run_summary

    config = replace(at_scale(find("demo"), args.scale), seed=args.seed)
    say(run_summary(pipeline.run(config, args.out)))


def run(args: Run) -> None:
    from diagan import pipeline
    from diagan.summary import run_summary

    place = Path(args.data or "run").resolve()
    out = args.out or f"runs/{args.experiment or (place.stem if place.is_file() else place.name)}"
    if args.budget and not args.data:
        raise UserError("--budget goes with --data; give an experiment --steps instead")
    seconds = parse_budget(args.budget) if args.budget else None
    say(run_summary(pipeline.run(configs.check(args.config), out, seconds)))


def data_check(args: DataCheck) -> None:
    if args.size is not None and args.size < 1:
        raise UserError(f"--size {args.size}: expected at least 1")
    from diagan.data.check import check_images

    for finding in check_images(args.path, args.size, args.group_by):
        print(finding)


def evaluate(args: Evaluate) -> None:
    if bool(args.run) == bool(args.real or args.fake) or bool(args.real) != bool(args.fake):
        raise UserError("give the folder of a RUN, or both --real DIR and --fake DIR")
    if args.n is not None and (args.metrics or args.n < 1):
        raise UserError("--n goes with the default metrics, at least 1; a metric's name has its n")
    if args.run and args.size:
        raise UserError("--size goes with --real and --fake; a run has its own")
    if not args.run and (args.arms or args.by != "group"):
        raise UserError("--arms and --by go with a RUN; of folders the sub-folders are groups")
    from diagan.evaluate import N_DEFAULT, Look, evaluate_folders, evaluate_run
    from diagan.progress import Silent, display
    from diagan.summary import metrics_table

    look = Look(args.features, Path(args.weights) if args.weights else None, args.resize)
    with Silent() if args.json else display() as shown:
        if args.run:
            lines = evaluate_run(args.run, args.metrics, n=args.n or N_DEFAULT, arms=args.arms,
                                 look=look, by=args.by, seed=args.seed, shown=shown)  # fmt: skip
        else:
            lines = evaluate_folders(str(args.real), str(args.fake), args.metrics, n=args.n,
                                     look=look, size=args.size, seed=args.seed or 0,
                                     shown=shown)  # fmt: skip
    print(json.dumps(lines, indent=2) if args.json else metrics_table(lines))


def weights_import(args: WeightsImport) -> None:
    from diagan.weights import import_weights

    stored = import_weights(args.file)
    print(f"{stored.name}: kept in {stored.path} (SHA-256 {stored.sha256})")


def weights_fetch(args: WeightsFetch) -> None:
    from diagan.weights import fetch

    stored = fetch(args.name)
    print(f"{stored.name}: kept in {stored.path} (SHA-256 {stored.sha256})")


def sample(args: Sample) -> None:
    from diagan.sample import write_samples

    arm = None if args.arm == "auto" else args.arm
    print(write_samples(args.run, args.n, args.out, drs=args.drs, arm=arm, seed=args.seed))


def report(args: Report) -> None:
    if not args.runs:
        raise UserError("give the folder of a RUN, or of several")
    if len(args.runs) == 1 and args.out:
        raise UserError("--out goes with several runs; the report of one lies in its folder")
    from diagan.report import write_comparison, write_report

    if len(args.runs) == 1:
        print(write_report(Path(args.runs[0])))
    else:
        out = Path(args.out or "comparison.html")
        print(write_comparison([Path(run) for run in args.runs], out))


def reproduce(args: Reproduce) -> None:
    seconds = parse_budget(args.time_left, "--time-left") if args.time_left else None
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise UserError(
            "reproduce is one process: start one on each GPU with other --seeds, or train a run "
            "with torchrun -m diagan run and measure it here (docs/reproduce.md)"
        )
    from diagan import reproduce as room

    if args.index:
        print(f"wrote {room.write_index(Path(args.results))}")
        return
    if not args.name:
        print(room.names(Path(args.results)))
        return
    request = room.Request(args.name, args.scale, args.seeds, args.rows, args.columns, seconds,
                           args.plan)  # fmt: skip
    runs = Path(args.runs or os.environ.get("DIAGAN_RUNS") or "runs")
    root = args.data_root or os.environ.get("DIAGAN_DATA")
    written = room.reproduce(request, runs=runs, results=Path(args.results), data_root=root)
    if written:
        print(written.read_text() if written.suffix == ".md" else "", f"wrote {written}", sep="\n")


def list_experiments(args: List) -> None:
    for e in EXPERIMENTS.values():
        needs = f" (needs {e.needs})" if e.needs else ""
        print(f"{e.name:26} {e.paper or '-':30} {e.about}{needs}")
    print("\nscales: paper (as it is), cpu (minutes on two cores), smoke (seconds)")


def say(text: str, to: TextIO | None = None) -> None:
    """Print, once: of the processes that torchrun starts only the first speaks."""
    if os.environ.get("RANK", "0") == "0":
        print(text, file=to)


def run_default(argv: Sequence[str]) -> Run:
    """The config that flags then override: an experiment's, a file's, or that for a folder."""
    peek = {n: _value_of(argv, f"--{n}") for n in ("data", "data.size", "config", "scale")}
    name = _experiment(argv)
    given = [what for what in (name, peek["data"], peek["config"]) if what]
    if len(given) > 1:
        raise UserError("give one of EXPERIMENT, --data PATH and --config FILE")
    if not given and not {"-h", "--help"} & set(argv):
        raise UserError("give an EXPERIMENT (`diagan list`), --data PATH, or --config FILE")
    if peek["data"]:
        base = for_folder(peek["data"], peek["data.size"])
    elif peek["config"]:
        base = configs.loads(_read(peek["config"]), peek["config"])
    else:
        base = find(name or "colored_mnist_99")
    if peek["scale"] in ("cpu", "smoke"):
        base = at_scale(base, peek["scale"])
    return Run(experiment=name, config=base)


def for_folder(path: str, size: str | None = None) -> Config:
    """A person's own images: the robust choices of FACTS 12 instead of the paper's.

    The side is the nearest of 32, 64, 128 and 256 unless given, and the network follows from it.
    """
    side = int(size) if size and size.isdecimal() else _side_of(path)
    width = 0.5 if side == 64 else 1.0  # D has four times the channels at twice the side
    small = Config(
        data=ImageFolder(path=path, size=side),
        network=DCGAN(width=width, dropout=0.0, headroom=0.02, d_norm="spectral"),
        steps=10_000,
        optim=Optim(lr=2e-4, betas=(0.5, 0.9)),
        record=Record(every=50),
        score=Score(centre="median", clip="floor"),
    )
    if side <= 64:
        return small
    return replace(
        small,
        network=StyleGAN2(width=0.25),
        batch_size=16,
        optim=Optim(lr=2e-3, betas=(0.0, 0.99), decay="none"),
        penalty=Penalty(r1=1.0, every=16),
    )


def _side_of(path: str) -> int:
    """32 where the images cannot be found or read: loading them says why."""
    from diagan.data.folder import list_images, nearest_side

    try:
        return nearest_side(list_images(path))
    except UserError:
        return 32


def parse_budget(text: str, flag: str = "--budget") -> float:
    """Seconds of `90s`, `30m` or `2h`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not match or float(match[1]) == 0:
        raise UserError(f"{flag} {text}: expected a time such as 90s, 30m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def _experiment(argv: Sequence[str]) -> str:
    """The first word, or a known name further on that is no flag's value."""
    if argv and not argv[0].startswith("-"):
        return argv[0]
    for flag, word in pairwise(argv):
        is_value = flag.startswith("--") and "=" not in flag and "no-" not in flag
        if word in EXPERIMENTS and not is_value:
            return word
    return ""


def _value_of(argv: Sequence[str], flag: str) -> str | None:
    for word, following in zip(argv, [*argv[1:], None]):
        if word == flag:
            return following
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read {path}: it is not a text file") from None


@dataclass(frozen=True)
class Verb:
    """What is typed after `diagan`, what parses it, what does it, and the line of help."""

    name: str
    args: type
    act: Callable[..., None]
    about: str
    default: Callable[[Sequence[str]], object] | None = None


VERBS = (
    Verb("demo", Demo, demo, "see it work in minutes, on data that ships with diagan"),
    Verb("run", Run, run, "train and diagnose: an experiment, or your own folder", run_default),
    Verb("diagnose run", DiagnoseRun, diagnose_run, "score a run's samples again, or compare runs",
         diagnose_default),
    Verb("diagnose record", DiagnoseRecord, diagnose_record, "a record that any trainer wrote"),
    Verb("diagnose checkpoint", DiagnoseCheckpoint, diagnose_checkpoint,
         "a model that has no record, or anyone's discriminator", checkpoint_default),
    Verb("diagnose folders", DiagnoseFolders, diagnose_folders,
         "two folders of images, from any generator"),
    Verb("filter", Filter, filter_images, "keep the better part of a folder of fakes"),
    Verb("evaluate", Evaluate, evaluate, "FID, precision, recall, ... of a run or of folders"),
    Verb("data check", DataCheck, data_check, "look at your own images before a run"),
    Verb("weights import", WeightsImport, weights_import, "keep a downloaded weight file"),
    Verb("weights fetch", WeightsFetch, weights_fetch, "download a weight file, when you say so"),
    Verb("sample", Sample, sample, "draw images from a finished run"),
    Verb("report", Report, report, "write a run's report again, or one of several runs"),
    Verb("reproduce", Reproduce, reproduce, "the paper's tables and figures, measured"),
    Verb("list", List, list_experiments, "the experiments by name"),
)  # fmt: skip
