"""The paper's tables and figures by name: planned, run as time allows, beside its numbers."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from diagan.errors import UserError
from diagan.experiments.cells import Cell, Table
from diagan.experiments.figures import SCRIPTS
from diagan.experiments.tables import ARCHITECTURES
from diagan.progress import duration
from diagan.reproduce.curves import recall_curves
from diagan.reproduce.index import index, write_index
from diagan.reproduce.pictures import panel, sheet, write_picture
from diagan.reproduce.plan import (
    BOOKS,
    Job,
    Unit,
    find_table,
    is_picture,
    make_plan,
    selected,
    unplanned,
)
from diagan.reproduce.render import write_table
from diagan.reproduce.shelf import Shelf
from diagan.reproduce.work import Workshop
from diagan.rundir import read_json

__all__ = ["Request", "names", "reproduce", "write_index"]


@dataclass(frozen=True)
class Request:
    """What is asked for; without seeds, as many as the paper has trials."""

    name: str
    scale: str = "paper"
    seeds: tuple[int, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    seconds: float | None = None  # time left
    only_plan: bool = False
    quick: bool = False  # no measuring that trains a network


def reproduce(
    request: Request,
    *,
    runs: Path,
    results: Path,
    data_root: str | None = None,
    say: Callable[[str], None] = print,
) -> Path | None:
    """Plan, say what it takes, do what fits into the time, and write the table or the figure."""
    deadline = None if request.seconds is None else time.time() + request.seconds
    table = find_table(request.name)
    if any(seed < 0 for seed in request.seeds):
        raise UserError("--seeds are numbers from 0 on")
    cells = selected(table, request.scale, request.rows, request.columns)
    shop = Workshop(runs, results, data_root, deadline, say)
    units = make_plan(table, cells, request.scale, request.seeds)
    units = [unit for unit in units if not (request.quick and unit.is_slow)]
    jobs = list(dict.fromkeys(unit.job for unit in units))
    shop.refuse(jobs)
    say(f"{table.name}: {table.title}, at {request.scale} scale: {len(jobs)} runs in {len(units)} "
        f"units under {runs}")  # fmt: skip
    for reason in unplanned(cells):
        say(f"not by a command: {reason}")
    planned = shop.estimates([unit for unit in units if unit.job.name not in shop.failed])
    tell_plan(units, planned, shop, say)
    if request.only_plan:
        return None
    try:
        left = shop.work(planned)
    finally:
        shop.keep_all(jobs)
        path = write(table, request, jobs, shop)
    for job in jobs:
        shop.report(job)
    if left:
        say(f"{len(left)} units wait for more time; the same command goes on")
    if jobs and all(job.name in shop.failed for job in jobs):
        raise UserError(f"none of the {len(jobs)} runs could be measured, for what is said above")
    return path


def write(table: Table, request: Request, jobs: Sequence[Job], shop: Workshop) -> Path | None:
    """The table or the figure, and what keeps up with it."""
    path = (
        draw(table, selected(table, request.scale), jobs, shop)
        if is_picture(table)
        else write_table(table, Shelf(shop.results))
    )
    if table.name == "figure1e":
        draw_curves(shop.results, request.scale)
    if (shop.results / "README.md").exists():
        write_index(shop.results)
    return path


def names(results: Path) -> str:
    """Every table and figure; below it, what of it is measured."""
    lines = index(Shelf(results)).split("\n")
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    known = [row for row in rows if row[0] in {*BOOKS, *SCRIPTS, *ARCHITECTURES}]
    return "\n".join(
        f"{name:11} {what}" + (f" ({told})" if told.startswith("not ") else f"\n{'':14}{told}")
        for name, what, told, *_ in known
    )


def tell_plan(
    units: Sequence[Unit], planned: dict[Unit, float], shop: Workshop, say: Callable[[str], None]
) -> None:
    for unit in units:
        if unit in planned:
            say(f"  {duration(planned[unit]):>8}  {unit.job.name}, {unit.name}")
    n_done = sum(unit not in planned and unit.job.name not in shop.failed for unit in units)
    say(f"about {duration(sum(planned.values()))} in {len(planned)} units; {n_done} are done")
    if shop.deadline:
        say(f"time left: {duration(max(shop.deadline - time.time(), 0))}")


def draw_curves(results: Path, scale: str) -> None:
    found = read_json(results / "tables" / "figure1e.json")["cells"]
    if picture := recall_curves([x for x in found if x["scale"] == scale]):
        write_picture(picture, results / "figures" / f"figure1e-{scale}.png")


def draw(table: Table, cells: Sequence[Cell], jobs: Sequence[Job], shop: Workshop) -> Path | None:
    """A sheet in results/figures for each seed that has something to show; the last one's path."""
    last = None
    for seed in sorted({job.seed for job in jobs}):
        scale = jobs[0].scale

        def drawn(cell: Cell, seed: int = seed, scale: str = scale) -> Image.Image | None:
            job = Job(cell.variant.at(scale), scale, seed)
            run = shop.folder(job) if job in jobs and job.name not in shop.failed else None
            return panel(
                cell, job, run, shop.stored(job), lambda: shop.clock.dataset(shop.settings(job))
            )

        if picture := sheet(cells, drawn):
            last = shop.results / "figures" / f"{table.name}-{scale}-seed{seed}.png"
            write_picture(picture, last)
    return last
