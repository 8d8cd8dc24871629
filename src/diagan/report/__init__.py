"""A run folder -> report.html, one page that opens from disk, and report.json with its numbers."""

import secrets
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from diagan.errors import UserError
from diagan.report import numbers
from diagan.report.compare import compare
from diagan.report.contents import Contents, open_folder
from diagan.report.sections.calibration import calibration
from diagan.report.sections.changed import changed
from diagan.report.sections.clusters import clusters
from diagan.report.sections.common import Section
from diagan.report.sections.glance import glance
from diagan.report.sections.groups import groups
from diagan.report.sections.head import head
from diagan.report.sections.junk import junk
from diagan.report.sections.ldr_map import ldr_map
from diagan.report.sections.making import making
from diagan.report.sections.metrics import metrics
from diagan.report.sections.missing import missing
from diagan.report.sections.points import points
from diagan.report.sections.ranking import ranking
from diagan.report.sections.rejection import rejection
from diagan.report.sections.training import training
from diagan.report.sections.verdict import verdict
from diagan.report.sections.warnings import warnings
from diagan.rundir import replacing, write_json

FORMAT = 1
# In the order of the page; a section that has nothing to say returns None and is left out.
SECTIONS = (
    head,
    verdict,
    glance,
    warnings,
    ldr_map,
    ranking,
    groups,
    changed,
    missing,
    points,
    metrics,
    junk,
    calibration,
    rejection,
    training,
    clusters,
    making,
)


TITLES = {
    "glance": "At a glance",
    "ldr_map": "LDR map",
    "missing": "Missing modes",
    "junk": "Rare or junk",
    "making": "How this was made",
}


def write_report(path: Path) -> Path:
    """Write report.html and report.json of the folder `path`, from its files alone."""
    run = open_folder(path)
    contents = Contents(run)
    made = {section.__name__: section(contents) for section in SECTIONS}
    found = {name: section for name, section in made.items() if section is not None}
    html = _render(contents, found)
    shown = {name: section.numbers for name, section in found.items() if section.numbers}
    sources = {name: _sources(contents, section) for name, section in found.items()}
    write_json(
        run.report.with_suffix(".json"),
        numbers.finite({"format": FORMAT, "run": contents.name, **shown, "sources": sources}),
    )
    with replacing(run.report) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return run.report


def write_comparison(paths: Sequence[Path], out: Path) -> Path:
    """Write one page that shows several runs side by side, and its numbers beside it as .json."""
    beside = out.with_suffix(".json")
    if out.suffix.lower() != ".html" or out.is_dir():
        raise UserError(f"--out {out}: expected the name of an .html file")
    if beside.exists() and not out.exists():
        raise UserError(f"{beside} is there already, where its numbers would go; choose another "
                        "--out")  # fmt: skip
    shown, found = compare([Contents(open_folder(path)) for path in paths], verdict)
    html = _environment().get_template("compare.html.j2").render(s=shown)
    with replacing(out) as temporary:
        temporary.write_text(html, encoding="utf-8")
    write_json(beside, numbers.finite({"format": FORMAT, **found}))
    return out


def _environment() -> Environment:
    """Everything is escaped; only figures and the sprites' CSS are markup."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(
        percent=numbers.percent,
        share=numbers.share,
        number=numbers.significant,
        interval=numbers.interval,
        auc=numbers.auc,
        marked=numbers.marked,
    )
    return environment


def _render(c: Contents, found: dict[str, Section]) -> str:
    """Fill the page."""
    sprites = {"real": c.sprite} if c.sprite else {}
    sprites |= {f"arm-{i}": sprite for i, sprite in enumerate(c.fake_sprites.values())}
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            sections={name: section.shown for name, section in found.items()},
            figure={name: f for section in found.values() for name, f in section.figures.items()},
            data={key: value for section in found.values() for key, value in section.data.items()},
            sources={name: _sources(c, section) for name, section in found.items()},
            titles=TITLES,
            backgrounds={name: sprite.css for name, sprite in sprites.items()},
            # Only scripts with this word run: what slipped in from data would not.
            nonce=secrets.token_urlsafe(16),
        )
    )


def _sources(c: Contents, section: Section) -> list[str]:
    """Those of the files that are there."""
    return [name for name in section.sources if (c.run.path / name).exists()]
