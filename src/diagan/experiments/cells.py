"""What a table is made of: cells, each filled by a run, an arm and a metric; rows and columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from diagan.experiments.presets import Changes
from diagan.experiments.variants import Variant


@dataclass(frozen=True)
class Number:
    """What the paper reports: a mean, and its deviation over trials where it gives one."""

    value: float
    deviation: float | None = None
    text: str = field(default="", compare=False)  # with the paper's digits

    @classmethod
    def of(cls, text: str) -> "Number | None":
        """Of `0.838±0.033`, `19.23`, or `-` for none."""
        if text == "-":
            return None
        value, _, deviation = text.partition("±")
        told = text.replace("±", " ± ")
        return cls(float(value), float(deviation) if deviation else None, told)


@dataclass(frozen=True)
class Cell:
    """A number that a run gives; `group` where it is of one group of the data."""

    row: str
    column: str
    variant: Variant
    arm: str
    metric: str
    group: str = ""
    paper: Number | None = None


@dataclass(frozen=True)
class Part:
    """What a row or a column says of its cells; the other says the rest."""

    name: str
    experiment: str = ""
    suffix: str = ""  # of a baseline: _gold
    changes: Changes = ()
    longer: float = 1.0
    arm: str = ""
    metric: str = ""
    group: str = ""


@dataclass(frozen=True)
class Also:
    """A further number of the same runs and arms, which the paper does not have.

    Of the minor group, where it is a number by group.
    """

    title: str
    metric: str


@dataclass(frozen=True)
class Table:
    """`quick` names the rows or columns that are run at a smaller scale if nothing is said."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    trials: int = 3
    also: tuple[Also, ...] = ()
    quick: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(cell.column for cell in self.cells))


# --- what a metric's protocol is at each scale ---------------------------------------------------

PROTOCOLS: dict[str, dict[str, str]] = {
    metric: dict(zip(("paper", "cpu", "smoke"), names.split()))
    for metric, names in {
        "fid": "fid50k_train fid10k_train fid128_train",
        "is": "is50k is10k is128",
        "precision": "pr10k_k3 pr10k_k3 pr128_k3",
        "recall": "pr10k_k3 pr10k_k3 pr128_k3",
        "partial_recall": "partial_recall10k_k3 partial_recall10k_k3 partial_recall128_k3",
        "partial_fid": "partial_fid50k_ends5k partial_fid10k_ends1k partial_fid128_ends32",
        **dict.fromkeys(
            ("reconstruction_error", "reconstruction_error_as_published"),
            "re50k_epochs50 re10k_epochs10 re128_epochs1",
        ),
        "group_share": "shares10k shares10k shares128",
    }.items()
}
# Read off a run folder: LDRV and score by group or attribute (over the window, or the last 50
# records), the time that training took, and what each drawing by rejection tells.
FROM_FOLDER = ("ldrv", "ldrv_last50", "score", "weight_share", "hours", "mean_ratio")
BY_HAND = {
    "occurrence": "needs a classifier of the attribute: diagan.attributes in Python",
    **dict.fromkeys(
        ("data_share", "race_share", "race_recall"),
        "needs a classifier of faces: diagan.extras.deepface in Python",
    ),
}
MINOR = {"colored_mnist": "green", "mnist_fmnist": "FMNIST", "gaussian": "minor"}
MAJOR = {"colored_mnist": "red", "mnist_fmnist": "MNIST", "gaussian": "major"}


def group_of(experiment: str, which: dict[str, str]) -> str:
    """The minor or the major group of an experiment's data; none for photos."""
    return next((name for kind, name in which.items() if experiment.startswith(kind)), "")


def grid(rows: Sequence[Part], columns: Sequence[Part], numbers: str = "") -> tuple[Cell, ...]:
    """Every row with every column; `numbers` are the paper's, read along the rows."""
    papers = iter(numbers.split())
    return tuple(
        _cell(row, column, Number.of(next(papers, "-"))) for row in rows for column in columns
    )


def _cell(row: Part, column: Part, paper: Number | None) -> Cell:
    experiment = row.experiment or column.experiment
    group = row.group or column.group
    which = {"minor": MINOR, "major": MAJOR}.get(group)
    return Cell(
        row.name,
        column.name,
        Variant(
            experiment + (row.suffix or column.suffix),
            (*row.changes, *column.changes),
            row.longer * column.longer,
        ),
        row.arm or column.arm,
        row.metric or column.metric,
        group_of(experiment, which) if which else group,
        paper,
    )
