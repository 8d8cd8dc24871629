"""`evaluate`, `reproduce` and `weights`.

Nothing here imports torch before it has to: --help answers at once.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from diagan.errors import UserError
from diagan.verbs.common import Scale, Verb, parse_budget


@dataclass(frozen=True)
class Evaluate:
    """Measure what a run's generators make, or a folder of images against another.

    diagan evaluate RUN: every arm of a run; the numbers are also in its metrics.jsonl.

    diagan evaluate --real DIR --fake DIR: images of any origin.

    A metric's name says what is measured: fid50k_train, kid10k_heldout, is50k, pr10k_k3, dc10k_k5,
    partial_recall10k_k3, partial_fid50k_ends5k, group_fid10k, re50k_epochs50, shares10k,
    missing10k.
    """

    run: Annotated[Positional[str], arg(metavar="RUN")] = ""
    """The folder of a run."""
    real: Annotated[str | None, arg(metavar="DIR")] = None
    """Real images; sub-folders are groups."""
    fake: Annotated[str | None, arg(metavar="DIR")] = None
    """Generated images."""
    metrics: Annotated[tuple[str, ...], arg(metavar="NAME ...")] = ()
    """Which; by default FID, KID, precision, recall, density, coverage, missing modes and the
    groups."""
    n: int | None = None
    """Generated images for the default metrics (10,000; of a folder, all it has up to that)."""
    arms: Annotated[tuple[str, ...], arg(metavar="ARM ...")] = ()
    """Of a run: plain, weighted, phase1, and any of them with +drs, such as plain+drs."""
    features: str | None = None
    """inception, classifier-colored_mnist, classifier-mnist_fmnist, patches, pixels, discriminator;
    by default inception where its weights are, else what is at hand."""
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
    """Only these, by name or how they begin (default: all; below the paper's scale, a few)."""
    columns: Annotated[tuple[str, ...], arg(metavar="COLUMN ...")] = ()
    """Only these, likewise."""
    time_left: Annotated[str | None, arg(metavar="TIME")] = None
    """Such as 150m: nothing is started that would not end by then."""
    quick: bool = False
    """Leave out what trains a network to measure by: the reconstruction error."""
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
class WeightsImport:
    """Keep a downloaded weight file (Inception for FID, VGG16) for all later evaluations."""

    file: Annotated[Positional[str], arg(metavar="FILE")]
    """Such as pt_inception-2015-12-05-6726825d.pth or vgg16-397923af.pth."""


@dataclass(frozen=True)
class WeightsFetch:
    """Download a weight file from its public place; the only command that downloads one."""

    name: Annotated[Positional[Literal["inception", "vgg16"]], arg(metavar="NAME")]
    """inception or vgg16."""


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
                           args.plan, args.quick)  # fmt: skip
    runs = Path(args.runs or os.environ.get("DIAGAN_RUNS") or "runs")
    root = args.data_root or os.environ.get("DIAGAN_DATA")
    written = room.reproduce(request, runs=runs, results=Path(args.results), data_root=root)
    if written:
        print(written.read_text() if written.suffix == ".md" else "", f"wrote {written}", sep="\n")


def weights_import(args: WeightsImport) -> None:
    from diagan.weights import import_weights

    stored = import_weights(args.file)
    print(f"{stored.name}: kept in {stored.path} (SHA-256 {stored.sha256})")


def weights_fetch(args: WeightsFetch) -> None:
    from diagan.weights import fetch

    stored = fetch(args.name)
    print(f"{stored.name}: kept in {stored.path} (SHA-256 {stored.sha256})")


VERBS = (
    Verb("evaluate", Evaluate, evaluate, "FID, precision, recall, ... of a run or of folders"),
    Verb("reproduce", Reproduce, reproduce, "the paper's tables and figures, measured"),
    Verb("weights import", WeightsImport, weights_import, "keep a downloaded weight file"),
    Verb("weights fetch", WeightsFetch, weights_fetch, "download a weight file, when you say so"),
)  # fmt: skip
