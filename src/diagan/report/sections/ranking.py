"""The highest and lowest scored samples beside generated ones, for any k (Figures 3, A3 to A6)."""

from typing import Any

import numpy as np

from diagan.report import figures
from diagan.report.contents import Contents
from diagan.report.sections.common import HIGH, LOW, Section, legend, thumbs
from diagan.thumbnails import N_RANKED, scored

TOP_SHARE = 0.05
N_INTENSITY = 100  # images of each kind (Figure 3d)
LEVELS = 8  # intensities that share a place on the axis
MADE = "#009E73"


def ranking(c: Contents) -> Section | None:
    """Pictures, or rows of a table where there are none."""
    s = c.samples
    if s is None or not len(s.by_score):
        return None
    ranks = [c.ranked(k) for k in c.stops]
    n = min(N_RANKED, len(s.by_score) // 2)
    ends = {"Highest scored": s.by_score[:n], "Lowest scored": s.by_score[::-1][:n]}
    exact = all(
        row in c.place for rows in ranks for row in [*rows[:n].tolist(), *rows[::-1][:n].tolist()]
    )
    own = len(c.stops) // 2 if c.k else 0
    made = next(iter(c.fake_sprites.items()), None)
    shades = _intensities(c, ranks)
    return Section(
        {
            "cards": [
                {"label": label, "id": label.split()[0].lower(), "thumbs": thumbs(c, rows),
                 "rows": [_row(c, row) for row in rows[:16].tolist()]}
                for label, rows in ends.items()
            ],
            "n": n,
            "n_close": len(c.chosen),
            "exact": exact,
            "stop": own,
            "n_stops": len(c.stops),
            "k": c.k,
            "made": made and {"label": made[0],
                              "positions": [made[1].position(i) for i in range(min(n, made[1].n))]},
            "has_pictures": c.sprite is not None,
            "has_shades": shades is not None,
            "n_intensity": N_INTENSITY,
            "legend": legend(c),
        },
        {"k": c.k, "stops": [k for k in c.stops if np.isfinite(k)],
         "highest": s.index[ends["Highest scored"]].tolist(),
         "lowest": s.index[ends["Lowest scored"]].tolist()},
        {"shades": shades["figure"]} if shades else {},
        {"stops": [k if np.isfinite(k) else None for k in c.stops], "own_stop": own,
         "limits": [_limit(c, k) for k in c.stops], "n_ranked": n,
         "shades": shades["lines"] if shades else None},
        sources=("samples.parquet", "thumbnails.npz", "generated"),
    )  # fmt: skip


def _limit(c: Contents, k: float) -> float:
    """The score that 5 % of the samples exceed at this k."""
    s = c.samples
    assert s is not None
    return float(np.nanquantile(scored(s.ldrm, s.ldrv, k), 1 - TOP_SHARE))


def _row(c: Contents, row: int) -> dict[str, Any]:
    s = c.samples
    assert s is not None
    file = s.files[row].as_py() if s.files is not None else None
    return {"index": int(s.index[row]), "group": s.group_names[s.group[row]], "file": file or "",
            "ldrm": s.ldrm[row], "spread": np.sqrt(s.ldrv[row]), "score": s.score[row]}  # fmt: skip


def _intensities(c: Contents, ranks: list[np.ndarray]) -> dict[str, Any] | None:
    """Figure 3d: how often each intensity occurs, at every stop; only at the ends does k matter."""
    if c.sprite is None:
        return None
    images = c.thumbnails[1]
    lines = []
    for rows in ranks:
        with_picture = [c.place[row] for row in rows.tolist() if row in c.place]
        n = min(N_INTENSITY, len(with_picture) // 2)
        if not n:
            return None
        lines.append([_shades(images[with_picture[:n]]), _shades(images[with_picture[-n:]])])
    made = next(iter(c.fakes.items()), None)
    if made and made[1].shape[-1] != images.shape[-1]:
        made = None
    of_made = _shades(made[1][:N_INTENSITY]) if made else None
    at = len(c.stops) // 2 if c.k else 0
    seen = lines[at] if of_made is None else [*lines[at], of_made]
    top = _top(np.concatenate(seen))
    x = np.arange(len(lines[0][0])) * LEVELS
    drawn = [
        figures.Line("highest scored", "highest scored", x, lines[at][0], HIGH),
        figures.Line("lowest scored", "lowest scored", x, lines[at][1], LOW, "dashed"),
    ]
    if made and of_made is not None:
        drawn.append(
            figures.Line(made[0], f"made by {made[0]}", x, of_made, MADE, "dotted", width=2.4)
        )
    channels = "red, green, then blue" if images.shape[-1] == 3 else "black to white"
    figure = figures.curves(drawn, f"intensity ({channels})", "share of pixels, %", 200,
                            title="How bright the images are", y_low=0.0, y_high=top)  # fmt: skip
    rounded = [[[round(float(v), 3) for v in line] for line in both] for both in lines]
    return {"figure": figure, "lines": {"top": round(top, 4), "values": rounded}}


def _top(values: np.ndarray) -> float:
    """Of the axis: where a background of one colour towers over the rest, its spike is cut off."""
    return 1.1 * min(float(values.max()), 8 * float(np.quantile(values, 0.75)) + 0.1)


def _shades(images: np.ndarray) -> np.ndarray:
    """Percent of the pixels at each intensity [C * 256 / LEVELS], smoothed; channels in a row."""
    kernel = np.exp(-0.5 * (np.arange(-3, 4) / 1.2) ** 2)
    parts = []
    for channel in range(images.shape[-1]):
        counts = np.bincount(images[..., channel].ravel() // LEVELS, minlength=256 // LEVELS)
        padded = np.pad(100 * counts / counts.sum(), 3, mode="edge")
        parts.append(np.convolve(padded, kernel / kernel.sum(), mode="valid"))
    return np.concatenate(parts)
