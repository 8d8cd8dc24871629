"""Figure 1e: Partial Recall of the major and the minor groups over the minority level."""

from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from diagan.reproduce.pictures import COLOURS, INK, PALE, PAPER, Colour

KINDS = ("Gaussian", "MNIST-FMNIST", "Colored MNIST")
LEVELS = ("1", "2", "3")
UNDER = "minority level: sigma 3, 2.5, 2, or a majority of 90, 95, 99 %"
WIDTH, HEIGHT, LEFT, TOP, PLOT, UNIT = 1120, 720, 100, 60, 560, 260  # PLOT high, UNIT a level


def recall_curves(cells: Sequence[dict[str, Any]]) -> Image.Image | None:
    """A line for each kind of data and group, the major ones paler, with the deviation over seeds
    at each point; `cells` are those of the table figure1e at one scale, the levels in order."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(24)
    _axes(pen, font)
    names: list[tuple[float, str, Colour]] = []
    for colour, kind in zip(COLOURS, KINDS):
        for group in ("major", "minor"):
            rows = [x for x in cells if x["row"].startswith(kind) and x["row"].endswith(group)]
            points = [(level, x) for level, x in enumerate(rows) if x["n"]]
            shade = colour if group == "minor" else _paler(colour)
            _curve(pen, points, shade)
            names += [(points[-1][1]["mean"], f"{kind}, {group}", shade)] if points else []
    below = float(HEIGHT)
    for value, name, shade in sorted(names):  # from the lowest up, none upon another
        below = min(_y(value) - 14, below - 28)
        pen.text((_x(2) + 30, below), name, shade, font)
    return picture if names else None


def _axes(pen: ImageDraw.ImageDraw, font: Any) -> None:
    pen.text((LEFT, 14), "Partial Recall", INK, font)
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        pen.line([(LEFT, _y(value)), (_x(2) + 20, _y(value))], PALE if value else INK, 2)
        pen.text((LEFT - 14, _y(value)), f"{value:g}", INK, font, anchor="rm")
    for level, name in enumerate(LEVELS):
        pen.text((_x(level), TOP + PLOT + 10), name, INK, font, anchor="ma")
    pen.text((LEFT, TOP + PLOT + 50), UNDER, INK, font)


def _curve(
    pen: ImageDraw.ImageDraw, points: Sequence[tuple[int, dict[str, Any]]], colour: Colour
) -> None:
    places = [(_x(level), _y(cell["mean"])) for level, cell in points]
    pen.line(places, colour, 4, joint="curve")
    for (x, y), (_, cell) in zip(places, points):
        pen.ellipse([x - 7, y - 7, x + 7, y + 7], colour)
        spread = cell["deviation"] or 0.0
        ends = [_y(min(max(cell["mean"] + sign * spread, 0.0), 1.0)) for sign in (-1, 1)]
        pen.line([(x, ends[0]), (x, ends[1])], colour, 3)


def _x(level: float) -> float:
    return LEFT + 40 + UNIT * level


def _y(value: float) -> float:
    return TOP + PLOT * (1 - value)


def _paler(colour: Colour) -> Colour:
    red, green, blue = ((255 + c) // 2 for c in colour)
    return red, green, blue
