"""A run folder -> report.html, one page that opens from disk, and report.json with its numbers."""

import secrets
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from diagan.report import numbers, sections
from diagan.report.contents import Contents
from diagan.report.figures import embed
from diagan.rundir import open_run, replacing, write_json

FORMAT = 1
# In the order of the page; a section that has nothing to say returns None and is left out.
SECTIONS = (
    sections.head,
    sections.summary,
    sections.warnings,
    sections.images,
    sections.points,
    sections.ldr_map,
    sections.groups,
    sections.measurements,
    sections.curves,
    sections.making,
)


def write_report(path: Path) -> Path:
    """Write report.html and report.json of the run in `path`, from its files alone."""
    run = open_run(path)
    contents = Contents(run)
    made = {section.__name__: section(contents) for section in SECTIONS}
    found = {name: section for name, section in made.items() if section is not None}
    html = _render(found)
    shown = {name: section.numbers for name, section in found.items() if section.numbers}
    write_json(
        run.report.with_suffix(".json"),
        numbers.finite({"format": FORMAT, "run": contents.name, **shown}),
    )
    with replacing(run.report) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return run.report


def _render(found: dict[str, sections.Section]) -> str:
    """Fill the page. Everything is escaped; only Bokeh's own output is let through as it is."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(
        percent=numbers.percent,
        share=numbers.share,
        number=numbers.significant,
        auc=numbers.auc,
    )
    figures: dict[str, Any] = {}
    for section in found.values():
        figures |= section.figures
    script, divs = embed(figures)
    return environment.get_template("page.html.j2").render(
        **dict.fromkeys(section.__name__ for section in SECTIONS)
        | {name: section.shown for name, section in found.items()},
        figure=divs,
        script=script,
        # Only scripts with this word run: what slipped in from data would not.
        nonce=secrets.token_urlsafe(16),
    )
