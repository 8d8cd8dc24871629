"""The verbs. Each parses, calls one library function and prints what it wrote.

Nothing here imports torch before it has to: --help answers at once.
"""

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, TextIO, TypeVar

import tyro
from tyro.conf import Positional, arg

from diagan import config as configs
from diagan.config import DCGAN, Config, ImageFolder, Optim, Record, Score
from diagan.errors import Interrupted, UserError
from diagan.experiments import EXPERIMENTS, at_scale, find
from diagan.rundir import open_run

Scale = Literal["paper", "cpu", "smoke"]
T = TypeVar("T")


@dataclass(frozen=True)
class Demo:
    """Train and diagnose a small GAN on digits that ship with diagan, in minutes.

    It ends with how well the rare digits were found, and brought back.
    """

    out: str = "runs/demo"
    """The folder of the run."""
    seed: int = 1
    """With some seeds the rare digits are found but do not come back: results/demo.md."""
    scale: Literal["cpu", "smoke"] = "cpu"
    """smoke: a few seconds, to see whether it works."""


@dataclass(frozen=True)
class Run:
    """Train, record, diagnose, train on with weights, reject and report.

    diagan run EXPERIMENT: an experiment of the paper (`diagan list` shows them).

    diagan run --data PATH: a folder of images of your own.

    diagan run --config FILE: what a config.json says.

    On a folder that holds the same run already it goes on where it stopped.
    """

    experiment: Annotated[Positional[str], arg(metavar="EXPERIMENT")] = ""
    """The name of an experiment; the flags below override its settings."""
    data: Annotated[str | None, arg(metavar="PATH")] = None
    """A folder of images."""
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
class DiagnoseRun:
    """Score and weigh the samples of a run again, perhaps with other settings."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The folder of a run."""
    score: Annotated[Score, arg(name="")] = field(default_factory=Score)


@dataclass(frozen=True)
class Sample:
    """Draw images from a finished run: PNGs and a grid of them."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The folder of a run."""
    n: int = 64
    """How many."""
    out: Annotated[str, arg(metavar="DIR")] = "samples"
    """Where to; made if it is not there."""
    drs: bool = True
    """Rejection sampling; --no-drs takes the images as the generator makes them."""
    arm: Literal["auto", "weighted", "plain", "phase1"] = "auto"
    """Which generator; auto: the weighted one (Dia-GAN) where there is one."""
    seed: int = 0


@dataclass(frozen=True)
class Report:
    """Write a run's report.html again from its folder."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The folder of a run."""


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

    out = args.out or f"runs/{args.experiment or Path(args.data or 'run').resolve().name}"
    if args.budget and not args.data:
        raise UserError("--budget goes with --data; give an experiment --steps instead")
    seconds = parse_budget(args.budget) if args.budget else None
    say(run_summary(pipeline.run(configs.check(args.config), out, seconds)))


def diagnose_run(args: DiagnoseRun) -> None:
    from diagan import pipeline

    found = pipeline.diagnose_again(args.run, args.score)
    pipeline.tell(pipeline.display(), found)
    print(f"wrote {args.run}/samples.parquet, diagnosis.json and report.html")


def sample(args: Sample) -> None:
    from diagan.sample import write_samples

    arm = None if args.arm == "auto" else args.arm
    print(write_samples(args.run, args.n, args.out, drs=args.drs, arm=arm, seed=args.seed))


def report(args: Report) -> None:
    from diagan.report import write_report

    print(write_report(open_run(args.run).path))


def list_experiments(args: List) -> None:
    for e in EXPERIMENTS.values():
        print(f"{e.name:18} {e.paper or '-':26} {e.about}")
    print("\nscales: paper (as it is), cpu (minutes on two cores), smoke (seconds)")


def say(text: str, to: TextIO | None = None) -> None:
    """Print, once: of the processes that torchrun starts only the first speaks."""
    if os.environ.get("RANK", "0") == "0":
        print(text, file=to)


def run_default(argv: Sequence[str]) -> Run:
    """The config that flags then override: an experiment's, a file's, or that for a folder."""
    peek = {name: _value_of(argv, f"--{name}") for name in ("data", "config", "scale")}
    name = _experiment(argv)
    given = [what for what in (name, peek["data"], peek["config"]) if what]
    if len(given) > 1:
        raise UserError("give one of EXPERIMENT, --data PATH and --config FILE")
    if not given and not {"-h", "--help"} & set(argv):
        raise UserError("give an EXPERIMENT (`diagan list`), --data PATH, or --config FILE")
    if peek["data"]:
        base = for_folder(peek["data"])
    elif peek["config"]:
        base = configs.loads(_read(peek["config"]), peek["config"])
    else:
        base = find(name or "colored_mnist_99")
    if peek["scale"] in ("cpu", "smoke"):
        base = at_scale(base, peek["scale"])
    return Run(experiment=name, config=base)


def diagnose_default(argv: Sequence[str]) -> DiagnoseRun | None:
    """The run's own settings, which flags then override."""
    if not argv or argv[0].startswith("-"):
        return None
    settings = open_run(argv[0]).config
    return DiagnoseRun(argv[0], configs.loads(_read(str(settings)), str(settings)).score)


def for_folder(path: str) -> Config:
    """A person's own images: the robust choices of FACTS 12 instead of the paper's."""
    return Config(
        data=ImageFolder(path=path),
        network=DCGAN(dropout=0.0, headroom=0.02, d_norm="spectral"),
        steps=10_000,
        optim=Optim(lr=2e-4, betas=(0.5, 0.9)),
        record=Record(every=50),
        score=Score(centre="median", clip="floor"),
    )


def parse_budget(text: str) -> float:
    """Seconds of `90s`, `30m` or `2h`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not match or float(match[1]) == 0:
        raise UserError(f"--budget {text}: expected a time such as 90s, 30m or 2h")
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
    Verb(
        "diagnose run", DiagnoseRun, diagnose_run, "score a run's samples again", diagnose_default
    ),
    Verb("sample", Sample, sample, "draw images from a finished run"),
    Verb("report", Report, report, "write a run's report again"),
    Verb("list", List, list_experiments, "the experiments by name"),
)

USAGE = """usage: diagan VERB ... (diagan VERB --help tells more)

diagan finds the training samples that a GAN under-represents, and repairs it.
"""

# What tyro says of a mistake, and how it is said here.
SENTENCES = (
    (r"Unrecognized options: (-.*?)(, .*)?", r"there is no flag \1"),
    (r"Unrecognized options: (.*?)(, .*)?", r"\1 was not expected here"),
    (r"Missing from .*?: (\S+) (.*)\. \(required\)", r"\1 is missing (\2)"),
    (r"Missing value for argument '(\S+)'\..*", r"\1: a value is missing"),
    (r"Error parsing (\S+): invalid literal for int.*: '(.*)'", r"\1 \2: expected a whole number"),
    (r"Error parsing (\S+): could not convert .*: '(.*)'", r"\1 \2: expected a number"),
    (r"Error parsing (\S+): no type matching (\S+) .* from \['(.*?)'\].*", r"\1 \3: expected \2"),
    (r"invalid choice '(.*)' for argument '(\S+)'\. Expected (.*)\.", r"\2 \1: expected \3"),
)


def parse(verb: Verb, argv: Sequence[str]) -> object:
    """The verb's arguments; what tyro says of a mistake is brought down to one line."""
    complaint = io.StringIO()
    default = verb.default(argv) if verb.default else None
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                verb.args,
                args=list(argv),
                prog=f"diagan {verb.name}",
                config=(tyro.conf.AvoidSubcommands,),
                **({"default": default} if default else {}),
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise UserError(one_line(complaint.getvalue())) from None


def one_line(box: str) -> str:
    """The sentence inside tyro's box, in our words, and the flag that may have been meant."""
    plain = re.sub(r"\x1b\[[0-9;]*m|│", "", box).partition("\n")[2]  # no colours, no title
    parts = [" ".join(part.split()) for part in re.split(r"[─╭╮╰╯]+|-{9,}", plain)]
    said, *more = [part for part in parts if part]
    for pattern, sentence in SENTENCES:
        if match := re.fullmatch(pattern, said):
            said = match.expand(sentence)
    if said.startswith("there is no flag") and len(more) > 1:  # the last part is on --help
        known = re.findall(r"--[\w.-]+", " ".join(part.partition(":")[2] for part in more[:-1]))
        said += configs.did_you_mean(said.split()[-1], known)
    return said


def main(argv: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        dispatch(words)
    except UserError as error:
        print(f"diagan: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a full disk, no permission, a file where a folder should be
        where = f" ({error.filename})" if error.filename else ""
        print(f"diagan: cannot go on: {error.strerror or error}{where}", file=sys.stderr)
        sys.exit(2)
    except (Interrupted, KeyboardInterrupt) as stop:
        say(f"diagan: {str(stop) or 'stopped'}", to=sys.stderr)
        sys.exit(130)


def dispatch(words: list[str]) -> None:
    for verb in VERBS:
        name = verb.name.split()
        if words[: len(name)] == name:
            verb.act(parse(verb, words[len(name) :]))
            return
    asks = not words or words[-1] in ("-h", "--help")
    below = [verb for verb in VERBS if asks and words[:-1] in ([], verb.name.split()[:1])]
    if below:
        print("\n".join([USAGE, *(f"  {verb.name:14} {verb.about}" for verb in below)]))
        return
    known = [verb.name for verb in VERBS]
    raise UserError(f"there is no verb {words[0]!r}{configs.did_you_mean(words[0], known)}")
