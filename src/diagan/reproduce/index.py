"""results/README.md: what of the paper was measured, and every other measurement."""

import ast
from pathlib import Path

from diagan.experiments.cells import Table
from diagan.experiments.figures import SCRIPTS
from diagan.experiments.tables import ARCHITECTURES, TABLES
from diagan.reproduce.plan import BOOKS, is_picture
from diagan.reproduce.render import MISSING, count_text, table_json, write_table
from diagan.reproduce.shelf import Shelf
from diagan.rundir import read_json, replacing


def write_index(results: Path) -> Path:
    """results/README.md, and anew every table of which something is stored, or was."""
    shelf = Shelf(results)
    for table in TABLES.values():
        there = (results / "tables" / f"{table.name}.md").exists()
        if there or table_json(table, shelf)["scales"]:
            write_table(table, shelf)
    with replacing(results / "README.md") as temporary:
        temporary.write_text(index(shelf))
    return results / "README.md"


def index(shelf: Shelf) -> str:
    results = shelf.results
    lines = [
        "# What was measured", "",
        "This page is written by `diagan reproduce --index` from the files beside it. Run folders "
        "are not kept here; they lie under `DIAGAN_RUNS` (or `runs/`), and commands go on where "
        "they stopped.", "",
        "## The paper", "",
        "`diagan reproduce NAME` plans the runs, estimates them, does what fits into "
        "`--time-left`, and writes `tables/NAME.md`. A cell that nobody measured says so.", "",
        "| name | what | measured | files |", "| --- | --- | --- | --- |",
        *(book_row(table, shelf) for table in BOOKS.values()),
        *(f"| {name} | {title} (`{command}`) | {'yes' if (results / file).exists() else MISSING} "
          f"| {link(results / file, results)} |"
          for name, (title, command, file) in SCRIPTS.items()),
        *(f"| {name} | {what} | not numbers | |" for name, what in ARCHITECTURES.items()), "",
    ]  # fmt: skip
    ratio = shelf.median_ratio()
    if ratio is not None:
        lines += [
            f"Estimates: the median of actual / estimated seconds over {len(shelf.ratios())} "
            f"stored runs is {ratio:.2f} (`measured/*/provenance.json`).", "",
        ]  # fmt: skip
    pages = {p for p in results.glob("*.md") if p.name != "README.md"}
    alone = [p for p in pages if not p.with_suffix(".json").exists()]
    whole = [p for p in results.glob("*.json") if "-seed" not in p.stem]  # not a seed's own
    rows = [other_row(file) for file in sorted([*whole, *alone])]
    lines += ["## Other measurements", "", "| what | command | scale, date | files |",
              "| --- | --- | --- | --- |", *filter(None, rows), ""]  # fmt: skip
    lines += ["A file that is not here has not been measured yet."]
    return "\n".join(lines) + "\n"


def book_row(table: Table, shelf: Shelf) -> str:
    results = shelf.results
    drawn = sorted((results / "figures").glob(f"{table.name}-*.png"))
    pictures = [link(picture, results) for picture in drawn]
    if is_picture(table):
        files = ", ".join(pictures)
        told = ", ".join(p.stem.removeprefix(f"{table.name}-") for p in drawn) or MISSING
    else:
        found = table_json(table, shelf)["scales"]
        told = "; ".join(
            f"{scale}: {count_text(x)}, seeds {' '.join(map(str, x['seeds']))}"
            for scale, x in found.items()
        )
        files = ", ".join([link(results / "tables" / f"{table.name}.md", results), *pictures])
    return f"| {table.name} | {table.title} | {told or MISSING} | {files} |"


def link(file: Path, results: Path) -> str:
    name = file.relative_to(results).as_posix()
    return f"[{name}]({name})" if file.exists() else ""


def other_row(file: Path) -> str:
    """A measurement by a script: what its json says of itself, and the page beside it."""
    if file.suffix == ".md":
        return f"| {title_of(file, '')} | | | [{file.name}]({file.name}) |"
    found = read_json(file)
    if not isinstance(found, dict):
        return ""
    found = found.get("test", found)  # of several parts the one that counts
    if "command" not in found:
        return ""
    told = ", ".join(str(found[key]) for key in ("scale", "date") if key in found)
    beside = [p for p in (file.with_suffix(".md"), file) if p.exists()]
    links = ", ".join(f"[{p.name}]({p.name})" for p in beside)
    return f"| {title_of(file, found['command'])} | `{found['command']}` | {told} | {links} |"


def title_of(file: Path, command: str) -> str:
    """The heading of the page beside it, or the first line of the script that made it."""
    beside = file.with_suffix(".md")
    if beside.exists():
        return beside.read_text().split("\n", 1)[0].removeprefix("# ")
    scripts = [word for word in command.split() if word.endswith(".py")]
    script = file.parent.parent / scripts[0] if scripts else None
    if script and script.exists():
        return (ast.get_docstring(ast.parse(script.read_text())) or file.stem).split("\n", 1)[0]
    return file.stem
