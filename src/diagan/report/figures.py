"""Charts as inline SVG with HTML around it: no script, sharp at any width, colours by the page.

The drawing is stretched to the room that there is, while lines keep their width (non-scaling
strokes) and words are HTML: on a phone the axes read as on a screen. Every chart has its words for
those who hear the page instead of seeing it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from diagan.report.numbers import significant

MAX_LINE_POINTS = 400
UNITS = 1_000  # of the drawing, a side
DASHES = {"solid": "", "dashed": "6 4", "dotted": "1.5 4", "dotdash": "8 3 2 3"}


@dataclass(frozen=True)
class Line:
    """One curve; curves of one legend share an entry in the key below the chart."""

    name: str
    legend: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    colour: str
    dash: str = "solid"
    dots: bool = False  # mark the points, where they are few
    width: float = 1.8


@dataclass(frozen=True)
class Bars:
    """A histogram: counts or shares [n] between edges [n + 1]."""

    legend: str
    edges: np.ndarray
    heights: np.ndarray
    colour: str


@dataclass(frozen=True)
class Axis:
    """A linear axis with round ticks."""

    low: float
    high: float

    @classmethod
    def over(cls, values: np.ndarray, zero: bool = False) -> "Axis":
        """Around finite values, a little wider; from zero where it is asked for."""
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        low = min(low, 0.0) if zero else low
        room = 0.04 * (high - low) or 0.5 * abs(high) or 1.0
        return cls(low if zero and low == 0 else low - room, high + room)

    def at(self, value: float) -> float:
        """0 to 1 along the axis."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self, n: int = 5) -> list[float]:
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / n))
        step *= next(m for m in (1, 2, 5, 10) if m * step * n >= self.high - self.low)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def curves(
    lines: Sequence[Line], x_label: str, y_label: str, height: int = 240, *,
    title: str = "", y_low: float | None = None, y_high: float | None = None,
) -> Markup:  # fmt: skip
    """Lines over a common axis."""
    x = Axis.over(np.concatenate([np.asarray(line.x, dtype=float) for line in lines]))
    y = Axis.over(np.concatenate([np.asarray(line.y, dtype=float) for line in lines]))
    y = Axis(y.low if y_low is None else y_low, y.high if y_high is None else y_high)
    drawn = Markup("").join(_line(line, x, y) for line in lines)
    words = "; ".join(f"{line.name} {_course(line)}" for line in lines[:12])
    alt = f"{title or y_label} against {x_label}. {words}."
    legend = {line.legend: (line.colour, line.dash) for line in lines}
    return _frame(drawn, x, y, x_label, y_label, alt, f"height:{height}px", legend)


def histogram(
    bars: Sequence[Bars], x_label: str, y_label: str, height: int = 200, *, title: str = "",
    marks: Sequence[tuple[float, str]] = (),
) -> Markup:  # fmt: skip
    """Histograms over each other, half transparent; `marks` are dashed lines across, with words."""
    x = Axis(float(min(b.edges[0] for b in bars)), float(max(b.edges[-1] for b in bars)))
    y = Axis.over(np.concatenate([b.heights for b in bars]), zero=True)
    drawn = Markup("").join(_steps(b, x, y) for b in bars)
    for value, name in marks:
        at = _units(x.at(value))
        drawn += Markup('<path d="M{} 0V{}" class="mark"><title>{}</title></path>').format(
            at, UNITS, name
        )
    words = "; ".join(f"{b.legend}: most at {_tick(_mode(b))}" for b in bars)
    alt = f"{title or y_label} against {x_label}. {words}."
    legend = {b.legend: (b.colour, "solid") for b in bars}
    return _frame(drawn, x, y, x_label, y_label, alt, f"height:{height}px", legend)


Cloud = tuple[np.ndarray, str]  # points [n, 2] and their colour


def scatter(panels: Mapping[str, Sequence[Cloud]]) -> dict[str, Markup]:
    """A square panel for each list of clouds, the last on top; all with the same axes."""
    everything = np.concatenate([points for clouds in panels.values() for points, _ in clouds])
    low, high = np.percentile(everything, [0.1, 99.9])  # a few strays do not shrink the rest
    margin = 0.08 * (high - low) or 1.0
    axis = Axis(float(low - margin), float(high + margin))
    return {
        name: _frame(
            Markup("").join(_dots(points, axis, axis, colour) for points, colour in clouds),
            axis, axis, "", "", f"{sum(len(p) for p, _ in clouds):,} points: {name}",
            "aspect-ratio:1", {},
        )
        for name, clouds in panels.items()
    }  # fmt: skip


def key(entries: dict[str, tuple[str, str]]) -> Markup:
    """The names of lines, each after a piece of it."""
    swatch = Markup(
        '<span><svg class="swatch" viewBox="0 0 24 8" aria-hidden="true"><path d="M0 4H24" '
        'stroke="{}" stroke-dasharray="{}"/></svg>{}</span>'
    )
    made = Markup("").join(
        swatch.format(colour, DASHES[dash], name) for name, (colour, dash) in entries.items()
    )
    return Markup('<div class="keys">{}</div>').format(made)


def _frame(
    drawn: Markup, x: Axis, y: Axis, x_label: str, y_label: str, alt: str, size: str,
    legend: dict[str, tuple[str, str]],
) -> Markup:  # fmt: skip
    """The drawing inside its axes; all that is read aloud is `alt`."""
    grid, words = Markup(""), Markup("")
    for value in y.ticks():
        at = 1 - y.at(value)
        grid += Markup('<path d="M0 {}H{}" class="grid"/>').format(_units(at), UNITS)
        words += Markup('<span class="y" style="top:{:.1f}%">{}</span>').format(
            100 * at, _tick(value)
        )
    for value in x.ticks():
        words += Markup('<span class="x" style="left:{:.1f}%">{}</span>').format(
            100 * x.at(value), _tick(value)
        )
    return Markup(
        '<figure class="plot"><div role="img" aria-label="{alt}">{above}<div class="area" style="'
        '{size}"><svg viewBox="0 0 {units} {units}" preserveAspectRatio="none" aria-hidden="true">'
        "{grid}{drawn}</svg>{words}</div>{below}</div>{legend}</figure>"
    ).format(
        alt=alt, size=size, units=UNITS, grid=grid, drawn=drawn, words=words,
        above=Markup('<div class="label">{}</div>').format(y_label) if y_label else "",
        below=Markup('<div class="label end">{}</div>').format(x_label) if x_label else "",
        legend=key(legend) if len(legend) > 1 else "",
    )  # fmt: skip


def _line(line: Line, x: Axis, y: Axis) -> Markup:
    every = max(1, -(-len(line.x) // MAX_LINE_POINTS))
    keep = np.unique(np.append(np.arange(0, len(line.x), every), len(line.x) - 1))
    xs, ys = (np.asarray(v, dtype=float)[keep] for v in (line.x, line.y))
    finite = np.isfinite(xs) & np.isfinite(ys)
    points = " ".join(
        f"{_units(x.at(a))},{_units(1 - y.at(b))}" for a, b in zip(xs[finite], ys[finite])
    )
    made = Markup(
        '<polyline points="{}" stroke="{}" stroke-width="{}" stroke-dasharray="{}"><title>{}'
        "</title></polyline>"
    ).format(points, line.colour, line.width, DASHES[line.dash], line.name)
    if line.dots:
        made += _dots(np.stack([xs[finite], ys[finite]], axis=1), x, y, line.colour, 6)
    return made


def _steps(bars: Bars, x: Axis, y: Axis) -> Markup:
    base = _units(1 - y.at(max(y.low, 0.0)))
    path = f"M{_units(x.at(bars.edges[0]))} {base}"
    for left, right, height in zip(bars.edges, bars.edges[1:], bars.heights):
        top = _units(1 - y.at(height))
        path += f"L{_units(x.at(left))} {top}L{_units(x.at(right))} {top}"
    path += f"L{_units(x.at(bars.edges[-1]))} {base}Z"
    return Markup(
        '<path d="{}" fill="{}" fill-opacity=".28" stroke="{}"><title>{}</title></path>'
    ).format(path, bars.colour, bars.colour, bars.legend)


def _dots(points: np.ndarray, x: Axis, y: Axis, colour: str, size: float = 3) -> Markup:
    """Lines without length and with round ends: dots that the stretching leaves round."""
    path = "".join(f"M{_units(x.at(a))} {_units(1 - y.at(b))}h0" for a, b in points.tolist())
    return Markup('<path d="{}" stroke="{}" stroke-width="{}" class="dots"/>').format(
        path, colour, size
    )


def _units(share: float) -> str:
    """A place in the drawing, at most a little outside of it."""
    return f"{UNITS * min(max(share, -1), 2):.4g}"


def _tick(value: float) -> str:
    size = abs(value)
    if size >= 10_000:
        return f"{value / 1_000:g}k"
    return "0" if size < 1e-12 else f"{value:.4g}"


def _course(line: Line) -> str:
    ys = np.asarray(line.y, dtype=float)
    ys = ys[np.isfinite(ys)]
    return f"from {significant(float(ys[0]))} to {significant(float(ys[-1]))}" if len(ys) else ""


def _mode(bars: Bars) -> float:
    at = int(np.argmax(bars.heights))
    return float(bars.edges[at] + bars.edges[at + 1]) / 2
