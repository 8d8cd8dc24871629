"""`sample` and `report`.

Nothing here imports torch before it has to: --help answers at once.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from diagan.errors import UserError
from diagan.verbs.common import Verb


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
    budget: float | None = None
    """Images made for each one kept, such as 1.5 (default: the run's, or as the paper rejects)."""
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


def sample(args: Sample) -> None:
    from diagan.sample import write_samples

    arm = None if args.arm == "auto" else args.arm
    print(write_samples(args.run, args.n, args.out, drs=args.drs, budget=args.budget, arm=arm,
                        seed=args.seed))  # fmt: skip


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


VERBS = (
    Verb("sample", Sample, sample, "draw images from a finished run"),
    Verb("report", Report, report, "write a run's report again, or one of several runs"),
)  # fmt: skip
