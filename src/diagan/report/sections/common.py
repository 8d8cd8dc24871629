"""What a section is, and what several sections share.

A section is a function `NAME(c: Contents) -> Section | None` in sections/NAME.py, None where there
is nothing to say. templates/NAME.html.j2 shows it: `s` is what it returned as `shown`, `figure`
has the figures of the page by name (made by report/figures.py). report/__init__.py has the order.
For pictures of training samples: `thumbs` here, and the macro `thumbs` of templates/macros.html.j2.
"""

import base64
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from diagan.report.contents import OTHER_COLOUR, PALETTE, Contents

HIGH, LOW = PALETTE[0], PALETTE[1]
STAGES = {
    "phase1": ("phase 1", OTHER_COLOUR),
    "plain": ("plain GAN", LOW),
    "weighted": ("Dia-GAN", HIGH),
}


@dataclass(frozen=True)
class Section:
    """What the template shows, the figures in it by name, and what report.json keeps.

    `data` is what templates/page.js is given of it, `sources` are the files that it read.
    """

    shown: dict[str, Any]
    numbers: Any = None
    figures: dict[str, Markup] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


def thumbs(c: Contents, rows: Iterable[int]) -> list[dict[str, Any]]:
    """Pictures of those of the rows that have one, for the macro of the same name."""
    s = c.samples
    if s is None or c.sprite is None:
        return []
    return [
        {
            "at": c.place[row],
            "position": c.sprite.position(c.place[row]),
            "about": s.describe(row),
            "colour": c.colours[s.group_names[s.group[row]]],
        }
        for row in map(int, rows)
        if row in c.place
    ]


def legend(c: Contents) -> list[tuple[str, str]]:
    """Names and colours of the groups; those that share a colour share an entry."""
    if len(c.colours) < 2:
        return []
    own = [(name, colour) for name, colour in c.colours.items() if colour != OTHER_COLOUR]
    n_other = len(c.colours) - len(own)
    return [*own, (f"{n_other} other groups", OTHER_COLOUR)] if n_other else own


def packed(values: np.ndarray, kind: str) -> str:
    """An array for the page's script: little-endian numbers of a numpy type, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode()


def interval(line: dict[str, Any]) -> dict[str, Any]:
    return {key: line.get(key) for key in ("value", "low", "high", "n_fake")}


def bounds(line: dict[str, Any]) -> tuple[float, float]:
    """The interval of a share; where none was measured, the share itself."""
    low, high = (line.get(key) for key in ("low", "high"))
    return (line["value"] if low is None else low), (line["value"] if high is None else high)


def bar(line: dict[str, Any], limit: float) -> dict[str, float]:
    """Where a share and its interval sit on a scale from 0 to `limit`, in percent."""
    low, high = bounds(line)
    return {"at": 100 * line["value"] / limit, "from": 100 * low / limit, "to": 100 * high / limit}


def all_warnings(c: Contents) -> list[str]:
    """The diagnosis's warnings and the log's; one that repeats is told once."""
    found = list((c.diagnosis or {}).get("warnings") or [])
    repeated: dict[tuple[str, str], list[int]] = defaultdict(list)
    for line in c.log:
        if "warning" in line:
            repeated[line.get("stage", ""), line["warning"]].append(line.get("step", 0))
    for (stage, text), steps in repeated.items():
        label, _ = STAGES.get(stage, (stage, ""))
        where = capital(f"{label}, step {steps[0]:,}".removeprefix(", "))
        again = f" (told again until step {steps[-1]:,})" if len(steps) > 1 else ""
        found.append(f"{where}: {text}{again}")
    return found


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
