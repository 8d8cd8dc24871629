"""`demo`, `run`, `data check` and `list`.

Nothing here imports torch before it has to: --help answers at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from diagan import config as configs
from diagan.config import Config
from diagan.errors import UserError
from diagan.experiments import EXPERIMENTS, at_scale, find
from diagan.experiments.own import for_folder
from diagan.verbs.common import Scale, Verb, parse_budget, say


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
    from diagan.data.check import check_images

    for finding in check_images(args.path, args.size, args.group_by):
        print(finding)


def list_experiments(args: List) -> None:
    for e in EXPERIMENTS.values():
        needs = f" (needs {e.needs})" if e.needs else ""
        print(f"{e.name:26} {e.paper or '-':30} {e.about}{needs}")
    print("\nscales: paper (as it is), cpu (minutes on two cores), smoke (seconds)")


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


VERBS = (
    Verb("demo", Demo, demo, "see it work in minutes, on data that ships with diagan"),
    Verb("run", Run, run, "train and diagnose: an experiment, or your own folder", run_default),
    Verb("data check", DataCheck, data_check, "look at your own images before a run"),
    Verb("list", List, list_experiments, "the experiments by name"),
)  # fmt: skip
