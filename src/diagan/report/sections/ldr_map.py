"""The LDR map: LDRM against sqrt(LDRV), a point a training sample, and all that a click tells."""

from typing import Any

import numpy as np

from diagan.findings.closeness import image_features
from diagan.report import pictures
from diagan.report.contents import OTHER_COLOUR, Contents, Samples
from diagan.report.sections.common import Section, legend, packed

MAX_POINTS = 50_000
N_HIGHEST = 2_000  # always among them
N_NEAREST = 6
SMALL_GROUP = 0.2  # of the largest
REGION = 3.0  # robust standard deviations above the median at which a region begins
TIMES = 4.0  # or, of LDRM, so many times the median's density ratio
REGIONS = {  # beyond the line in LDRM, in sqrt(LDRV): its name and what it means
    (False, False): ("covered", "D finds these no more real than what G makes, and does not waver"),
    (True, False): ("steadily missed", "D always finds these more real than what G makes"),
    (False, True): ("comes and goes", "G makes these at some times and forgets them at others"),
    (True, True): ("missed and unsettled", "both: the likeliest to be under-represented"),
}


def ldr_map(c: Contents) -> Section | None:
    """The map as data for the page's script, and its regions in words."""
    s = c.samples
    if s is None:
        return None
    known = np.isfinite(s.ldrm) & np.isfinite(s.ldrv)
    rows = s.by_score[known[s.by_score]]
    if not len(rows):
        return None
    shown = choose_points(rows, c.chosen[known[c.chosen]])
    shown = shown[_drawing_order(c, s, shown)]
    edges = (
        edge(s.ldrm[rows], np.log(TIMES) if c.is_ldr else np.inf),
        edge(np.sqrt(s.ldrv[rows])),
    )
    regions = _regions(s, rows, edges)
    counts = {
        "n_points": len(rows),
        "n_shown": len(shown),
        "n_missing": len(s.index) - len(rows),
        "n_close": len(c.chosen),
        "k": c.k,
    }
    return Section(
        {
            **counts,
            "n_highest": N_HIGHEST,
            "regions": regions,
            "groups": legend(c),
            "has_pictures": c.sprite is not None,
            "has_curves": len(c.steps) > 1,
            "arms": list(c.fakes) if c.sprite else [],
            "sds": round(REGION),
            "times": round(TIMES) if c.is_ldr else None,
        },
        {**counts, "regions": regions},
        data=_for_script(c, s, rows, shown, edges),
        sources=("samples.parquet", "record", "thumbnails.npz", "generated"),
    )


def _for_script(
    c: Contents, s: Samples, rows: np.ndarray, shown: np.ndarray, edges: tuple[float, float]
) -> dict[str, Any]:
    what = "LDR" if c.is_ldr else "raw output of D"
    return {
        "k": c.k,
        "n": len(rows),
        "axes": [f"LDRM: mean {what}", "√LDRV: its standard deviation over time"],
        "edges": edges,
        "regions": [name for name, _ in REGIONS.values()],
        "groups": [[name, c.colours[name]] for name in s.group_names],
        "points": _points(s, shown),
        "chosen": _chosen(c, s, rows, shown),
        "curves": _curves(c),
        "nearest": _nearest(c),
    }


def choose_points(rows: np.ndarray, close: np.ndarray) -> np.ndarray:
    """Of rows by falling score: all, or the highest, those shown closely and a seeded sample."""
    if len(rows) <= MAX_POINTS:
        return rows
    first = np.union1d(rows[:N_HIGHEST], close)
    others = rows[~np.isin(rows, first)]
    rest = np.random.default_rng(0).choice(others, MAX_POINTS - len(first), replace=False)
    return np.concatenate([first, rest])


def _drawing_order(c: Contents, s: Samples, rows: np.ndarray) -> np.ndarray:
    """Groups without a colour first and small ones last, on top; among them by score."""
    sizes = np.bincount(s.group, minlength=len(s.group_names))
    is_small = sizes < SMALL_GROUP * sizes.max()
    has_colour = np.array([c.colours[name] != OTHER_COLOUR for name in s.group_names])
    layer = np.where(has_colour, 1 + is_small, 0)  # of each group
    return np.lexsort([s.score[rows], layer[s.group[rows]]])


def _points(s: Samples, rows: np.ndarray) -> dict[str, Any]:
    return {
        "x": packed(s.ldrm[rows], "f4"),
        "y": packed(np.sqrt(s.ldrv[rows]), "f4"),
        "group": packed(s.group[rows], "u2"),
        "index": packed(s.index[rows], "u4"),
    }


def _chosen(c: Contents, s: Samples, rows: np.ndarray, shown: np.ndarray) -> dict[str, Any]:
    """Of each sample that is shown closely: its point (none: the highest number), rank, file."""
    none = len(shown)
    point = np.full(len(s.index), none)
    point[shown] = np.arange(len(shown))
    rank = np.zeros(len(s.index), dtype=np.int64)
    rank[rows] = np.arange(1, len(rows) + 1)
    files = [] if s.files is None else [s.files[row].as_py() or "" for row in c.chosen.tolist()]
    return {
        "point": packed(point[c.chosen], "u4"),
        "rank": packed(rank[c.chosen], "u4"),
        "file": files,
        "flag": [] if s.flag is None else [str(flag or "") for flag in s.flag[c.chosen]],
        "sprite": [c.sprite.n_columns, c.sprite.n_rows, c.sprite.ratio] if c.sprite else None,
    }


def _curves(c: Contents) -> dict[str, Any] | None:
    """The LDR of the chosen samples over the records [M, T], and the quantiles of all samples."""
    s = c.samples
    if s is None or len(c.steps) < 2:
        return None
    values = np.empty((len(c.chosen), len(c.steps)), dtype=np.float32)
    band = []
    for at, step in enumerate(c.steps):
        record = c.record(step)
        values[:, at] = record[s.index[c.chosen]]
        band.append([float(f"{q:.4g}") for q in np.quantile(record, (0.05, 0.5, 0.95))])
    low, high = float(values.min()), float(values.max())
    scaled = (values - low) / ((high - low) or 1.0) * 65535
    return {"steps": c.steps, "band": band, "low": low, "high": high,
            "values": packed(scaled.round(), "u2")}  # fmt: skip


def _nearest(c: Contents) -> list[dict[str, Any]]:
    """For every chosen picture the nearest of each arm, and how many are nearer to theirs."""
    if c.sprite is None:
        return []
    real, found = image_features(c.thumbnails[1]), []
    for number, (label, images) in enumerate(c.fakes.items()):
        fake = image_features(images)
        if fake.shape[1] != real.shape[1]:
            continue
        nearest, distance = pictures.nearest(real=real, fake=fake, n=N_NEAREST)
        order = np.argsort(np.argsort(distance)) / max(len(distance) - 1, 1)
        sprite = c.fake_sprites[label]
        found.append({"label": label, "arm": number, "n": len(images), "each": nearest.shape[1],
                      "sprite": [sprite.n_columns, sprite.n_rows],
                      "at": packed(nearest, "u2"),
                      "further": packed(np.floor(100 * order), "u1")})  # fmt: skip
    return found


def edge(values: np.ndarray, most: float = np.inf) -> float:
    """Where values begin to stand out, at most so far above the median.

    The bulk's median and quartiles do not feel a rare group, but they do where much is missed.
    """
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(median + min(REGION * (high - low) / 1.349, most))  # 1.349: quartiles of a normal


def _regions(s: Samples, rows: np.ndarray, edges: tuple[float, float]) -> list[dict[str, Any]]:
    """How many samples lie in each region, and of which groups most of them are."""
    right, up = s.ldrm[rows] > edges[0], np.sqrt(s.ldrv[rows]) > edges[1]
    found = []
    for (is_right, is_up), (name, meaning) in REGIONS.items():
        own = rows[(right == is_right) & (up == is_up)]
        counts = np.bincount(s.group[own], minlength=len(s.group_names))
        most = [int(i) for i in np.argsort(-counts, kind="stable")[:3] if counts[i]]
        groups = [{"name": s.group_names[i], "n": int(counts[i])} for i in most]
        found.append({"name": name, "meaning": meaning, "n": len(own),
                      "groups": groups if len(s.group_names) > 1 else []})  # fmt: skip
    return found
