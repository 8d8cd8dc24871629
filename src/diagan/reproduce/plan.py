"""From a table to the work that fills it: runs that share their phase 1, cut into units."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from diagan.config import Config, Critic, Record, Rejection, Score
from diagan.errors import UserError, did_you_mean
from diagan.experiments.cells import (
    BY_HAND,
    MINOR,
    PROTOCOLS,
    Also,
    Cell,
    Table,
    group_of,
)
from diagan.experiments.figures import FIGURES, PICTURES, SCRIPTS
from diagan.experiments.tables import ARCHITECTURES, TABLES
from diagan.experiments.variants import Variant, arm_stage, stages_for
from diagan.kept import PASSES
from diagan.protocols import parse

BOOKS: dict[str, Table] = {**TABLES, **FIGURES}


@dataclass(frozen=True)
class Job:
    """A run of a variant, at a scale, with a seed."""

    variant: Variant
    scale: str
    seed: int

    @property
    def name(self) -> str:
        return self.variant.folder(self.scale, self.seed)

    @property
    def config(self) -> Config:
        return replace(self.variant.config(self.scale), seed=self.seed)


@dataclass(frozen=True)
class Unit:
    """What is started as a whole: a stage of training, or the measuring of an arm, by one protocol
    that trains a network or by all that do not."""

    job: Job
    what: str  # a stage, or an arm
    protocols: tuple[str, ...] = ()  # of the measuring; none: training

    @property
    def measures(self) -> bool:
        return bool(self.protocols)

    @property
    def is_slow(self) -> bool:
        return self.measures and is_slow(self.protocols[0])

    @property
    def name(self) -> str:
        if not self.measures:
            return self.what
        return f"measure {self.what}" + f", {self.protocols[0]}" * self.is_slow


def is_slow(protocol: str) -> bool:
    """Whether measuring by it trains a network."""
    return parse(split_subset(protocol)[0]).family == "re"


def find_table(name: str) -> Table:
    """`table5`, `Table5`, `a7` and `figureA10` are understood."""
    known = {key.lower(): key for key in BOOKS}
    for guess in (name.lower(), f"table{name.lower()}", f"figure{name.lower()}"):
        if guess in known:
            return BOOKS[known[guess]]
    for other, (_, command, _) in SCRIPTS.items():
        if other.lower() == name.lower():
            raise UserError(f"{other} has a script of its own: {command}")
    for other, what in ARCHITECTURES.items():
        if other.lower() == name.lower():
            raise UserError(f"{other} has no numbers to measure: it is {what}")
    raise UserError(f"there is no table or figure {name!r}{did_you_mean(name, BOOKS)}")


def selected(
    table: Table, scale: str, rows: Sequence[str] = (), columns: Sequence[str] = ()
) -> list[Cell]:
    """The cells that are asked for; below the paper's scale, without a word, the quick ones."""
    quick = table.quick if scale != "paper" else ()
    kept_rows = _matching(rows or [q for q in quick if q in table.rows], table.rows, "--rows")
    kept_columns = _matching(
        columns or [q for q in quick if q in table.columns], table.columns, "--columns"
    )
    return [c for c in table.cells if c.row in kept_rows and c.column in kept_columns]


def _matching(asked: Sequence[str], known: Sequence[str], flag: str) -> list[str]:
    """Names in full, or how they begin; upper and lower case are the same."""
    found: list[str] = []
    for word in asked:
        whole = [name for name in known if name.lower() == word.lower()]
        begins = [name for name in known if name.lower().startswith(word.lower())]
        if not begins:
            raise UserError(f"{flag} {word}: there is none{did_you_mean(word, known)}")
        found += whole or begins
    return found if asked else list(known)


def default_seeds(table: Table, scale: str, experiment: str) -> list[int]:
    """As many as the paper's trials: ten for Gaussians, three, or two for FFHQ; one for smoke."""
    if scale == "smoke":
        return [0]
    few = table.trials if experiment.startswith("gaussian") else min(table.trials, 3)
    return list(range(few))


def protocols_of(cell: Cell, also: Iterable[Also], scale: str) -> set[str]:
    """What has to be measured of the cell's arm: its own metric and what stands beside it."""
    metrics = [cell.metric]
    if group_of(cell.variant.experiment, MINOR):
        metrics += [more.metric for more in also]
    if cell.metric == "grid":
        metrics += ["group_share"]  # drawn from, the arm has its grid
    subset = f"@{cell.group}" if cell.group.startswith("attribute:") else ""
    return {PROTOCOLS[m][scale] + subset for m in metrics if m in PROTOCOLS}


def split_subset(protocol: str) -> tuple[str, str]:
    """`partial_recall10k_k3@attribute:Bald` is a protocol, and the samples it is measured on."""
    name, _, subset = protocol.partition("@")
    return name, subset


def make_plan(
    table: Table, cells: Sequence[Cell], scale: str, seeds: Sequence[int] | None = None
) -> list[Unit]:
    """Every unit once, in an order in which a shared phase 1 comes before what branches off it.

    Of a seed, slow measuring is last: little time tells something of every row.
    """
    arms: dict[Job, dict[str, set[str]]] = {}
    for cell in cells:
        if cell.metric in BY_HAND:
            continue
        variant = cell.variant.at(scale)
        for seed in seeds or default_seeds(table, scale, variant.experiment):
            wanted = arms.setdefault(Job(variant, scale, seed), {})
            wanted.setdefault(cell.arm, set()).update(protocols_of(cell, table.also, scale))
    found = [unit for job in ordered(list(arms)) for unit in units(job, arms[job])]
    return sorted(found, key=lambda unit: (unit.job.seed, unit.is_slow))


def ordered(jobs: list[Job]) -> list[Job]:
    """All of the first seed, then of the next; runs with the same phase 1 together, short first."""
    keys = {job: phase1_key(job.config) for job in jobs}
    first: dict[Config, int] = {}
    for i, job in enumerate(jobs):
        first.setdefault(keys[job], i)
    return sorted(jobs, key=lambda job: (job.seed, first[keys[job]], job.config.phase1_steps))


def units(job: Job, arms: dict[str, set[str]]) -> list[Unit]:
    """Phase 1; then each further stage, followed by the measuring of what it trained."""
    found = [Unit(job, "phase1")]
    for stage in ["phase1", *stages_for(list(arms))]:
        found += [Unit(job, stage)] if stage != "phase1" else []
        mine = [(arm, sorted(arms[arm])) for arm in sorted(arms) if arm_stage(arm) == stage]
        for arm, protocols in mine:
            quick = tuple(name for name in protocols if not is_slow(name))
            found += [Unit(job, arm, quick)] if quick else []
            found += [Unit(job, arm, (name,)) for name in protocols if is_slow(name)]
    return found


def phase1_key(c: Config) -> Config:
    """Equal for two runs if the one's phase 1, as far as it goes, is the other's.

    What is left out comes into play after it (scores, weights, the critic, rejection, GOLD, a
    penalty or learning rate of phase 2), or does not touch training (records, the log).
    """
    record = Record() if c.record.mode in PASSES else c.record
    optim, penalty = c.optim, c.penalty
    if optim.decay == "restart":
        optim = replace(optim, decay="linear")
    if penalty.r1_from == "phase2":
        penalty = replace(penalty, r1=0.0, every=1, r1_from="phase1")
    return replace(
        c, phase1_share=1.0, score=Score(), critic=Critic(), rejection=Rejection(), record=record,
        optim=optim, penalty=penalty, plain_arm=True, weighted_arm=True,
        methods=replace(c.methods, gold="off"),
        n_evaluate=1, log_every=1, grid_every=1, checkpoint_every=1, data_root=None,
    )  # fmt: skip


def stage_key(c: Config) -> Config:
    """Equal for two runs if all their training is: they differ in how is drawn and measured."""
    return replace(
        c, rejection=Rejection(), plain_arm=True, weighted_arm=True, n_evaluate=1, log_every=1,
        grid_every=1, checkpoint_every=1, data_root=None,
    )  # fmt: skip


def unplanned(cells: Iterable[Cell]) -> list[str]:
    """Why some cells are not filled by a command."""
    reasons = {cell.metric: BY_HAND[cell.metric] for cell in cells if cell.metric in BY_HAND}
    return [f"{metric}: {reason}" for metric, reason in reasons.items()]


def is_picture(table: Table) -> bool:
    return all(cell.metric in PICTURES for cell in table.cells)
