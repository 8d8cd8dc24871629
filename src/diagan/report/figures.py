"""Bokeh figures on a 2-D canvas. Bokeh is imported where a figure is made, and nowhere else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagan.report.pictures import Sprite

INK = "#7b808a"  # readable on white and on black: figures need not know of dark mode
FAINT = "#8a8f9840"
MAX_LINE_POINTS = 1_000
LEGEND_LETTERS = 28
# Bokeh takes tooltips for HTML and text between $$ for TeX, which it would fetch a library for.
# Names come from data: here they lose the characters that either could be made of.
UNSAFE = str.maketrans({"<": "‹", ">": "›", "&": "＆", '"': "”", "'": "’", "$": "＄", "\\": "＼"})


@dataclass(frozen=True)
class Line:
    """One curve; curves of one legend hide together."""

    name: str
    legend: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    colour: str
    dash: str = "solid"


@dataclass(frozen=True)
class Cloud:
    """The points of one entry of the legend; the arrays all have one value a point."""

    name: str
    colour: str
    x: np.ndarray
    y: np.ndarray
    index: np.ndarray
    score: np.ndarray
    group: list[str]


def embed(figures: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """JavaScript for all figures, with Bokeh itself, and a div for each; nothing for no figures."""
    if not figures:
        return "", {}
    from bokeh.embed import components
    from bokeh.resources import Resources

    bokeh = Resources(mode="inline", components=["bokeh"], log_level="warn")
    script, divs = components(figures, wrap_script=False)
    return "\n".join([*bokeh.js_raw, script]), divs


def plain(name: str) -> str:
    """A name that Bokeh takes for nothing but text."""
    return name.translate(UNSAFE)


def ldr_map(clouds: list[Cloud], x_label: str, y_label: str, sprite: Sprite | None,
            line: tuple[float, float] | None) -> Any:  # fmt: skip
    """LDRM against sqrt(LDRV), a point a sample; `line` has a slope and an intercept."""
    from bokeh.models import ColumnDataSource, HoverTool, Slope

    figure = _figure(height=520, x_axis_label=x_label, y_axis_label=y_label)
    renderers = []
    for cloud in clouds:
        places = [sprite.places.get(i) if sprite else None for i in cloud.index.tolist()]
        source = ColumnDataSource({
            "x": cloud.x.astype(np.float32),
            "y": cloud.y.astype(np.float32),
            "index": cloud.index.astype(np.int32),
            "score": cloud.score.astype(np.float32),
            "group": [plain(name) for name in cloud.group],
            "left": np.array([place[0] if place else 0 for place in places], dtype=np.int16),
            "top": np.array([place[1] if place else 0 for place in places], dtype=np.int16),
            "side": np.array([sprite.cell if sprite and p else 0 for p in places], dtype=np.int16),
        })  # fmt: skip
        renderers.append(
            figure.scatter("x", "y", source=source, size=5, color=cloud.colour, alpha=0.6,
                           line_color=None, legend_label=_short(cloud.name))
        )  # fmt: skip
    if line:
        figure.add_layout(
            Slope(gradient=line[0], y_intercept=line[1], line_color=INK, line_dash="dashed")
        )
    figure.add_tools(HoverTool(renderers=renderers, tooltips=_tooltip(sprite), limit=1))
    _legend(figure)
    if len(clouds) == 1:
        figure.legend.visible = False
    return figure


def scatter(panels: dict[str, tuple[np.ndarray, str]]) -> dict[str, Any]:
    """A panel for each set of points [n, 2] and its colour; they pan and zoom together."""
    figures: dict[str, Any] = {}
    everything = np.concatenate([points for points, _ in panels.values()])
    # A few strays do not shrink the rest to a dot.
    low, high = np.percentile(everything, [0.1, 99.9])
    margin = 0.08 * (high - low) or 1.0
    ranges: dict[str, Any] = {
        "x_range": (low - margin, high + margin),
        "y_range": (low - margin, high + margin),
    }
    for name, (points, colour) in panels.items():
        figure = _figure(height=None, aspect_ratio=1, sizing_mode="scale_width", **ranges)
        ranges = {"x_range": figure.x_range, "y_range": figure.y_range}
        x, y = points.astype(np.float32).T
        figure.scatter(x, y, size=3, color=colour, alpha=0.5, line_color=None)
        figures[name] = figure
    return figures


def curves(lines: list[Line], x_label: str, y_label: str, height: int = 300) -> Any:
    """Curves over steps; a click in the legend hides those of that entry."""
    from bokeh.models import HoverTool

    figure = _figure(height=height, x_axis_label=x_label, y_axis_label=y_label)
    for line in lines:
        every = max(1, -(-len(line.x) // MAX_LINE_POINTS))
        x, y = (np.asarray(v, dtype=np.float32)[::every] for v in (line.x, line.y))
        figure.line(x, y, color=line.colour, line_dash=line.dash, line_width=1.6, alpha=0.9,
                    name=plain(line.name), legend_label=_short(line.legend))  # fmt: skip
    figure.add_tools(
        HoverTool(tooltips=[("", "$name"), ("step", "@x{0}"), ("value", "@y{0.00}")], limit=1)
    )
    _legend(figure)
    return figure


def _figure(**options: Any) -> Any:
    from bokeh.plotting import figure as new_figure

    settings: dict[str, Any] = {
        "sizing_mode": "stretch_width",
        "tools": "pan,box_zoom,wheel_zoom,reset",
        "active_scroll": None,
        "active_drag": "box_zoom",
        "output_backend": "canvas",
        "background_fill_alpha": 0,
        "border_fill_alpha": 0,
        "outline_line_color": None,
        "min_width": 240,
    }
    figure = new_figure(**settings | options)
    figure.toolbar.logo = None
    figure.toolbar.autohide = True
    figure.grid.grid_line_color = FAINT
    for axis in figure.axis:
        axis.axis_line_color = axis.major_tick_line_color = INK
        axis.minor_tick_line_color = None
        axis.major_label_text_color = axis.axis_label_text_color = INK
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
        axis.axis_label_text_font = axis.major_label_text_font = "system-ui, sans-serif"
    figure.xaxis.formatter.use_scientific = False
    return figure


def _legend(figure: Any) -> None:
    """Below the figure, where it covers no point; a click hides and shows."""
    legend = figure.legend[0]
    legend.update(
        click_policy="hide", background_fill_alpha=0, border_line_color=None, ncols=2,
        label_text_color=INK, label_text_font="system-ui, sans-serif", label_text_font_size="13px",
        inactive_fill_alpha=0.15, margin=0, padding=4, spacing=8, location="left",
    )  # fmt: skip
    figure.add_layout(legend, "below")


def _tooltip(sprite: Sprite | None) -> str:
    """HTML around columns; the picture is a piece of the page's one sprite (`--sprite`)."""
    picture = (
        f'<div style="width:@side{{0}}px;height:@side{{0}}px;image-rendering:pixelated;'
        f"background:var(--sprite) -@left{{0}}px -@top{{0}}px/{sprite.width}px auto"
        '"></div>'
        if sprite
        else ""
    )
    words = "<b>@group</b><br>index @index{0}<br>score @score{0.00}"
    return f'<div style="display:flex;gap:8px">{picture}<div>{words}</div></div>'


def _short(name: str) -> str:
    name = plain(name)
    return name if len(name) <= LEGEND_LETTERS else name[: LEGEND_LETTERS - 1] + "…"
