"""The panels of the paper's figures, drawn from run folders, and the sheet they are put on."""

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from PIL import Image, ImageDraw, ImageFont

from diagan import checkpoint
from diagan.data import Dataset
from diagan.experiments.cells import Cell
from diagan.ldr import discrepancy_score
from diagan.metrics.ranks import ascending
from diagan.random import numpy_generator
from diagan.record import LdrRecord
from diagan.reproduce.plan import Job
from diagan.reproduce.shelf import StoredRun
from diagan.rundata import read_settings
from diagan.rundir import RunDir, replacing
from diagan.sample import image_grid, load_at

SIDE, LINE = 280, 54  # pixels of a panel, and of one that is missing
MARGIN, TITLE = 12, 22
N_SHOWN = 64  # images of a grid
N_COUNTED = 100  # images of each kind in Figure 3d (FACTS 10)
N_TRACED, N_LIT = 50, 3  # samples of Figure A1; A1a shows three of them
PALE, INK, PAPER = (176, 186, 200), (40, 40, 40), (255, 255, 255)
COLOURS = ((0, 114, 178), (213, 94, 0), (0, 158, 115))  # told apart by colour-blind eyes too
Colour = tuple[int, int, int]
Panel = Callable[[Cell, RunDir, Dataset], Image.Image]


def sheet(cells: Sequence[Cell], draw: Callable[[Cell], Image.Image | None]) -> Image.Image | None:
    """Rows and columns with their names, where a panel that is missing says so; none if all are."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = list(dict.fromkeys(cell.column for cell in cells))
    panels = {(cell.row, cell.column): draw(cell) for cell in cells}
    if not any(panels.values()):
        return None
    # A row of which nothing is measured is a line.
    heights = [SIDE if any(panels.get((row, x)) for x in columns) else LINE for row in rows]
    step, left = SIDE + MARGIN, 130
    size = (left + len(columns) * step, TITLE + sum(heights) + MARGIN * len(rows))
    picture = Image.new("RGB", size, PAPER)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(14)
    for x, column in enumerate(columns):
        pen.text((left + x * step, 3), column, INK, font)
    top = TITLE
    for row, height in zip(rows, heights):
        middle = (6, top + height // 2)
        pen.multiline_text(middle, textwrap.fill(row, 14), INK, font, anchor="lm")
        for x, column in enumerate(columns):
            if (row, column) in panels:
                picture.paste(fitted(panels[row, column], height), (left + x * step, top))
        top += height + MARGIN
    return picture


def fitted(panel: Image.Image | None, height: int) -> Image.Image:
    if panel is None:
        empty = Image.new("RGB", (SIDE, height), (240, 240, 240))
        ImageDraw.Draw(empty).text((SIDE // 2 - 44, height // 2 - 8), "not measured", INK,
                                   ImageFont.load_default(14))  # fmt: skip
        return empty
    return panel.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS)


def panel(
    cell: Cell, job: Job, run: RunDir | None, stored: Path, load: Callable[[], Dataset]
) -> Image.Image | None:
    """Drawn of the run, if there is one, and kept beside its numbers; else as it was kept."""
    if cell.metric == "grid":  # kept by whoever measured the arm
        file = stored / f"{cell.arm.replace('+', '_')}.png"
    else:
        file = stored / f"{'_'.join(filter(None, [cell.metric, cell.group]))}.png"
        if run and run.samples.exists():
            write_picture(fitted(PANELS[cell.metric](cell, run, load()), SIDE), file)
    return Image.open(file) if file.exists() and StoredRun(stored).is_of(job) else None


# --- training images by score --------------------------------------------------------------------


def order(run: RunDir, k: str) -> np.ndarray:
    """Indices from the lowest score to the highest, of the run or for another k."""
    table = pq.read_table(run.samples, columns=["ldrm", "ldrv", "score"])
    ldrm, ldrv, score = (table[name].to_numpy() for name in ("ldrm", "ldrv", "score"))
    if k == "inf":
        score = ldrv
    elif k:
        score = discrepancy_score(ldrm, np.maximum(ldrv, 0), float(k))  # Eq. 7
    return ascending(score)


def end_of_ranking(cell: Cell, run: RunDir, data: Dataset) -> Image.Image:
    ranked = order(run, cell.group.removeprefix("k="))
    chosen = ranked[::-1][:N_SHOWN] if cell.metric == "highest" else ranked[:N_SHOWN]
    return image_grid(np.asarray(data.values[chosen]), scale=2)


def intensities(images: np.ndarray) -> np.ndarray:
    """How often each level occurs, the channels one after the other, smoothed: [C 256]."""
    counts = [np.bincount(images[:, c].ravel(), minlength=256) for c in range(images.shape[1])]
    kernel = np.hanning(17) / np.hanning(17).sum()
    return np.concatenate([np.convolve(channel, kernel, mode="same") for channel in counts])


def intensity(cell: Cell, run: RunDir, data: Dataset) -> Image.Image:
    """Figure 3d: lowest and highest scored, and generated."""
    ranked = order(run, "")
    step = checkpoint.steps(run.checkpoints, "phase1")[-1]
    seed = read_settings(run).seed
    kinds = {
        "lowest": np.asarray(data.values[ranked[:N_COUNTED]]),
        "highest": np.asarray(data.values[ranked[::-1][:N_COUNTED]]),
        "generated": load_at(run, "phase1", step).sample(N_COUNTED, seed=seed, drs=False),
    }
    curves = [intensities(images) for images in kinds.values()]
    return chart(curves, COLOURS, list(kinds), "level, channels one after the other")


# --- the record over time ------------------------------------------------------------------------


def traces(cell: Cell, run: RunDir, data: Dataset) -> Image.Image:
    """Figure A1: 50 random samples over the records, three of them in colour."""
    record = LdrRecord(run.record, data.n)
    seed = read_settings(run).seed
    chosen = numpy_generator(seed, "figures/traces").permutation(data.n)[:N_TRACED]
    rows = []
    for logits in record:
        if cell.metric == "ranks":
            ranks = np.empty(data.n)
            ranks[np.argsort(logits, kind="stable")] = np.arange(data.n)
            rows.append(ranks[chosen])
        else:
            rows.append(logits[chosen])
    curves = list(np.array(rows).T)[::-1]  # the coloured ones last, on top
    colours = [PALE] * (len(curves) - N_LIT) + list(COLOURS[:N_LIT])
    steps = record.steps
    return chart(curves, colours, [], f"step {steps[0]:,} to {steps[-1]:,}, {len(steps)} records")


def chart(
    curves: Sequence[np.ndarray], colours: Sequence[Colour], names: Sequence[str], below: str
) -> Image.Image:
    """Lines over equal steps, the least and the greatest value at the side, names underneath."""
    scale = 2  # drawn larger and shrunk, which smooths the lines
    n_across = 3 if len(names) <= 3 else 2
    side, left, line = SIDE * scale, 40 * scale, 14 * scale
    bottom = side - line * (2 + math.ceil(len(names) / n_across))
    picture = Image.new("RGB", (side, side), PAPER)
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(11 * scale)
    low, high = min(c.min() for c in curves), max(c.max() for c in curves)
    span = (high - low) or 1.0
    for curve, colour in zip(curves, colours):
        x = np.linspace(left, side - 4, len(curve))
        y = bottom - (curve - low) / span * (bottom - 10 * scale)
        pen.line(list(zip(x.tolist(), y.tolist())), fill=colour, width=scale)
    pen.line([(left, 4), (left, bottom), (side - 4, bottom)], fill=INK, width=scale)
    pen.text((2, 4), label(high), INK, font)
    pen.text((2, bottom - line), label(low), INK, font)
    pen.text((left, bottom + 4), below, INK, font)
    for i, (name, colour) in enumerate(zip(names, colours)):
        across, down = i % n_across, i // n_across
        corner = (left + across * (side - left) // n_across, bottom + line * (down + 1) + 4)
        pen.text(corner, name, colour, font)
    return picture


def label(value: float) -> str:
    return (
        f"{value:,.0f}"
        if abs(value) >= 100 or math.isclose(value, round(value))
        else f"{value:.2g}"
    )


PANELS: dict[str, Panel] = {
    "highest": end_of_ranking,
    "lowest": end_of_ranking,
    "intensity": intensity,
    "ldr": traces,
    "ranks": traces,
}


def write_picture(picture: Image.Image, path: Path) -> None:
    with replacing(path) as temporary:
        picture.save(temporary, format="PNG", optimize=True)
