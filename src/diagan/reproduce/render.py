"""Stored numbers -> a table beside the paper's, as Markdown and JSON.

Everything here is a function of files in results/: the same files give the same pages.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diagan.experiments import SCALES
from diagan.experiments.cells import MINOR, PROTOCOLS, Also, Cell, Table, group_of
from diagan.reproduce.plan import Job, unplanned
from diagan.reproduce.shelf import Shelf, of_one_extractor
from diagan.rundir import replacing, write_json

MISSING = "not measured"
INCEPTIONS = ("fid", "is", "partial_fid")  # published in Inception's features
ABOUT_SCALES = {
    "paper": "the paper's own settings",
    "cpu": "cpu scale: fewer samples and steps, narrower networks (`diagan run NAME --scale cpu`)",
    "smoke": "smoke scale: seconds of training, which shows that it runs and nothing else",
}


@dataclass(frozen=True)
class Measured:
    """A cell's numbers over seeds, and what they were measured with."""

    by_seed: dict[int, float]
    protocol: str
    precision: tuple[str, ...]
    features: tuple[str, ...]
    devices: tuple[str, ...]
    dates: tuple[str, ...]
    comparable: bool  # with published numbers, as far as the features go
    warnings: tuple[str, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.by_seed.values())))

    @property
    def deviation(self) -> float | None:
        values = list(self.by_seed.values())
        return float(np.std(values, ddof=1)) if len(values) > 1 else None


def protocols(metric: str, scale: str) -> list[str]:
    """The scale's own, and what may stand in for the paper's: that of cpu scale, marked."""
    known = PROTOCOLS.get(metric, {})
    return [known.get(name, "") for name in ([scale, "cpu"] if scale == "paper" else [scale])]


def measured(cell: Cell, scale: str, shelf: Shelf) -> Measured | None:
    """What is stored for a cell at a scale, over all seeds that have one and the same protocol."""
    tried = (measured_by(name, cell, scale, shelf) for name in protocols(cell.metric, scale))
    return next((found for found in tried if found), None)


def measured_by(protocol: str, cell: Cell, scale: str, shelf: Shelf) -> Measured | None:
    of_seed_0 = Job(cell.variant.at(scale), scale, 0)
    runs = shelf.seeds(of_seed_0)
    found = {seed: run.lines(cell.metric, protocol, cell.arm, cell.group)
             for seed, run in runs.items()}  # fmt: skip
    found = {seed: lines for seed, lines in found.items()
             if lines and runs[seed].is_of(replace(of_seed_0, seed=seed))}  # fmt: skip
    if not found:
        return None
    lines = of_one_extractor(found)
    there = [runs[seed] for seed in lines]
    stages = {"phase1", cell.arm.partition("+")[0]}
    return Measured(
        {seed: line["value"] for seed, line in lines.items()},
        protocol=protocol,
        precision=unique(run.provenance["precision"] for run in there),
        features=unique(x["extractor"] for x in lines.values() if "extractor" in x),
        devices=unique(run.provenance["device"] for run in there),
        dates=unique(run.provenance["started"][:10] for run in there),
        comparable=all(x.get("comparable_with_published", True) for x in lines.values()),
        warnings=unique(f"{run.folder.name}: {said}" for run in there
                        for stage, said in run.warnings if stage in stages),
    )  # fmt: skip


def unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


# --- a table -------------------------------------------------------------------------------------


def also_cells(table: Table, also: Also) -> list[Cell]:
    """The further number of every arm whose data have a minor group; each arm once."""
    found = []
    for cell in table.cells:
        if minor := group_of(cell.variant.experiment, MINOR):
            group = "" if also.metric in ("fid", "mean_ratio") else minor
            arm = "phase1" if also.metric in ("weight_share", "ldrv") else cell.arm
            found.append(replace(cell, metric=also.metric, group=group, arm=arm, paper=None))
    return found


def parts(table: Table) -> list[tuple[str, list[Cell]]]:
    main = [("", list(table.cells))]
    return main + [(also.title, also_cells(table, also)) for also in table.also]


def table_json(table: Table, shelf: Shelf) -> dict[str, Any]:
    """Every cell at every scale at which something is stored; pages are made from this alone."""
    cells = [
        {**cell_json(cell, scale, shelf), "part": title}
        for scale in SCALES
        for title, part in parts(table)
        for cell in part
    ]
    scales = unique(x["scale"] for x in cells if x["n"])
    kept = [x for x in cells if x["scale"] in scales or (not scales and x["scale"] == "paper")]
    return {
        "name": table.name,
        "title": table.title,
        "scales": {scale: counted(kept, scale) for scale in scales},
        "failed": failures(table, shelf),
        "cells": kept,
    }


def failures(table: Table, shelf: Shelf) -> dict[str, str]:
    """Runs of the table that could not be finished, and why."""
    jobs = dict.fromkeys(
        Job(cell.variant.at(scale), scale, 0) for scale in SCALES for cell in table.cells
    )
    runs = [run for job in jobs for run in shelf.seeds(job).values()]
    return {run.folder.name: run.provenance["failed"] for run in runs
            if run.provenance.get("failed")}  # fmt: skip


def counted(cells: Sequence[dict[str, Any]], scale: str) -> dict[str, Any]:
    main = [x for x in cells if x["scale"] == scale and not x["part"]]
    seeds = sorted({int(seed) for x in cells if x["scale"] == scale for seed in x["by_seed"]})
    n_smaller = sum(x["smaller"] for x in main)
    return {"measured": sum(x["n"] > 0 for x in main) - n_smaller, "smaller": n_smaller,
            "of": len(main), "seeds": seeds}  # fmt: skip


def count_text(count: dict[str, Any]) -> str:
    more = f" and {count['smaller']} more by a smaller protocol" if count["smaller"] else ""
    return f"{count['measured']} of {count['of']} cells{more}"


def cell_json(cell: Cell, scale: str, shelf: Shelf) -> dict[str, Any]:
    found = measured(cell, scale, shelf)
    own = protocols(cell.metric, scale)[0]
    return {
        "row": cell.row, "column": cell.column, "scale": scale,
        "run": cell.variant.at(scale).name, "arm": cell.arm, "metric": cell.metric,
        "group": cell.group, "protocol": found.protocol if found else own,
        "smaller": bool(found and found.protocol != own),
        "n": len(found.by_seed) if found else 0,
        "mean": found.mean if found else None,
        "deviation": found.deviation if found else None,
        "by_seed": {str(k): v for k, v in found.by_seed.items()} if found else {},
        "paper": cell.paper.value if cell.paper else None,
        "paper_deviation": cell.paper.deviation if cell.paper else None,
        "paper_text": cell.paper.text if cell.paper else "",
        **({"precision": found.precision, "device": found.devices, "features": found.features,
            "dates": found.dates, "comparable": found.comparable, "warnings": found.warnings}
           if found else {}),
    }  # fmt: skip


def page(found: dict[str, Any], table: Table) -> str:
    """Markdown: a section for each scale at which something was measured."""
    lines = [f"# {heading(table.name)}: {table.title}", ""]
    lines += [f"{note}" for note in table.notes] + [""] * bool(table.notes)
    lines += [f"- {reason}" for reason in unplanned(table.cells)]
    lines += [""] * bool(unplanned(table.cells))
    if not found["scales"]:
        lines += ["Nothing of it has been measured yet. The paper's numbers:", ""]
        lines += markdown([x for x in found["cells"] if not x["part"]])
    for scale, count in found["scales"].items():
        lines += section(found, table, scale, count)
    if found["failed"]:
        lines += ["Runs that could not be finished:", ""]
        lines += [f"- {run}: {why}" for run, why in found["failed"].items()]
    return "\n".join(lines).rstrip() + "\n"


def section(
    found: dict[str, Any], table: Table, scale: str, count: dict[str, Any]
) -> Iterator[str]:
    cells = [x for x in found["cells"] if x["scale"] == scale]
    there = [x for x in cells if x["n"]]
    seeds = " ".join(map(str, count["seeds"]))

    def told(key: str) -> str:
        return ", ".join(sorted({word for x in there for word in x[key]})) or "none"

    own = any(x["metric"] in INCEPTIONS and not x["comparable"] for x in there)
    yield from (
        f"## At {ABOUT_SCALES[scale]}", "",
        f"- command: `diagan reproduce {table.name} --scale {scale} --seeds {seeds}`",
        f"- measured: {count_text(count)}; device: {told('device')}; "
        f"precision: {told('precision')}; dates: {told('dates')}",
        f"- protocols: {', '.join(sorted({x['protocol'] for x in there} - {''})) or 'none'}; "
        f"features: {told('features')}" + (", not comparable with published FID" * own),
        "- a cell: mean ± deviation over seeds (n seeds), then the paper's", "",
    )  # fmt: skip
    main, more = [x for x in cells if not x["part"]], further(cells)
    if len(table.columns) == 1:
        main += more.pop(table.columns[0], [])
    yield from (*markdown(main), "")
    for column, ours in more.items():
        title = f", {column}" if column else ""
        yield from (f"Of the same runs{title}, which the paper does not have:", "",
                    *markdown(ours), "")  # fmt: skip
    if smaller := sorted({x["protocol"] for x in there if x["smaller"]}):
        yield from ("† by a smaller protocol than the paper's, which the command does not measure: "
                    f"`diagan evaluate RUN --metrics {' '.join(smaller)}`.", "")  # fmt: skip
    warnings = sorted({w for x in there for w in x["warnings"]})
    if warnings:
        yield from ("! marks numbers of runs that gave a warning:", "")
        yield from (f"- {text}" for text in warnings)
        yield ""


def further(cells: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Our own numbers as tables by title: one for each column in which something was measured.

    What the numbers are takes the place of the column; where there is only one row, of that.
    """
    ours = [x for x in cells if x["part"]]
    if len({x["row"] for x in ours}) == 1 < len({x["column"] for x in ours}):
        return {"": [{**x, "row": x["part"]} for x in ours]} if any(x["n"] for x in ours) else {}
    return {
        column: [{**x, "column": x["part"]} for x in ours if x["column"] == column]
        for column in unique(x["column"] for x in ours if x["n"])
    }


def markdown(cells: Sequence[dict[str, Any]]) -> list[str]:
    """A table; rows without any number, ours or the paper's, are named below it."""
    rows, columns = (unique(x[key] for x in cells) for key in ("row", "column"))
    by_place = {(x["row"], x["column"]): x for x in cells}
    known = {x["row"] for x in cells if x["n"] or x["paper_text"]}
    told = [row for row in rows if row in known]
    missing = [row for row in rows if row not in known]
    lines = ["| | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for row in told:
        texts = [cell_text(by_place.get((row, column))) for column in columns]
        lines.append(f"| {row} | " + " | ".join(texts) + " |")
    return lines + ["", f"{MISSING.capitalize()}: {'; '.join(missing)}."] * bool(missing)


def cell_text(x: dict[str, Any] | None) -> str:
    """`0.812 ± 0.003 (3); paper 0.838 ± 0.033`; what is missing is seen to be missing."""
    if x is None:
        return ""
    mine = f"{spread(x['mean'], x['deviation'])} ({x['n']})" if x["n"] else MISSING
    mine += " †" * x.get("smaller", False)
    mine += " !" if x.get("warnings") else ""
    return f"{mine}; paper {x['paper_text']}" if x["paper_text"] else mine


def spread(value: float, deviation: float | None) -> str:
    text = number(value)
    if deviation is None:
        return text
    decimals = len(text.partition(".")[2]) or 3
    return f"{text} ± {f'{deviation:.{decimals}f}' if deviation else 0}"


def number(value: float) -> str:
    """Two decimals from 1 on, three below, and more for very small ones."""
    size = abs(value)
    if size == 0:
        return "0"
    return f"{value:.2f}" if size >= 1 else f"{value:.3f}" if size >= 0.01 else f"{value:.4f}"


def heading(name: str) -> str:
    """`Table A7` of `tableA7`."""
    for word in ("table", "figure"):
        if name.startswith(word):
            return f"{word.capitalize()} {name.removeprefix(word)}"
    return name.capitalize()


def write_table(table: Table, shelf: Shelf) -> Path:
    """tables/NAME.json and .md from the stored runs."""
    found = table_json(table, shelf)
    write_json(shelf.results / "tables" / f"{table.name}.json", found)
    target = shelf.results / "tables" / f"{table.name}.md"
    with replacing(target) as temporary:
        temporary.write_text(page(found, table))
    return target
