"""Training: losses, what D says, the LDR of samples and groups over time, grids over time."""

import re
from typing import Any

import numpy as np
from markupsafe import Markup

from diagan.report import figures, pictures
from diagan.report.contents import OTHER_COLOUR, PALETTE, Contents, readable
from diagan.report.sections.common import HIGH, LOW, STAGES, Section

N_TRACES = 5
N_GRIDS = 6  # a stage
MAX_GROUP_LINES = 30


def training(c: Contents) -> Section | None:
    """Panels of curves, the most telling first, and a film of what G made."""
    panels = {**_over_records(c), **_over_steps(c)}
    films = _films(c)
    if not panels and not films:
        return None
    return Section(
        {"panels": {name: title for name, (title, _) in panels.items()}, "films": films},
        {"n_log_lines": len(c.log), "n_records": len(c.records)},
        {name: figure for name, (_, figure) in panels.items()},
        sources=("log.jsonl", "record", "generated/progress"),
    )


def _over_steps(c: Contents) -> dict[str, tuple[str, Markup]]:
    """What the log has: losses and D's opinion, by stage."""
    lines = [line for line in c.log if "step" in line and "warning" not in line]
    extra = sorted({key for line in lines for key in line if key.startswith("loss_")}
                   - {"loss_D", "loss_G"})  # fmt: skip
    panels = {}
    for name, title, keys in (
        ("opinion", "What D says: chance of being real", ["d_real", "d_fake"]),
        ("loss-d", "Loss of the discriminator", ["loss_D", *extra]),
        ("loss-g", "Loss of the generator", ["loss_G"]),
    ):
        drawn = _stage_lines(lines, keys)
        if drawn:
            low, high = (0.0, 1.0) if name == "opinion" else (None, None)
            made = figures.curves(drawn, "step", "", title=title, y_low=low, y_high=high)
            panels[name] = (title, made)
    return panels


def _stage_lines(lines: list[dict[str, Any]], keys: list[str]) -> list[figures.Line]:
    """A line for each stage and key: colours tell stages, dashes keys."""
    drawn = []
    for stage in dict.fromkeys(line.get("stage", "") for line in lines):
        label, colour = STAGES.get(stage, (stage, OTHER_COLOUR))
        for key, dash in zip(keys, ("solid", "dashed", "dotted", "dotdash")):
            own = [line for line in lines if line.get("stage", "") == stage and key in line]
            if own:
                short = key.removeprefix("loss_").removeprefix("d_")
                name = f"{label}: {short}" if len(keys) > 1 else label
                x, y = [line["step"] for line in own], [line[key] for line in own]
                drawn.append(figures.Line(name, name, x, y, colour, dash))
    return drawn


def _over_records(c: Contents) -> dict[str, tuple[str, Markup]]:
    """The LDR of some samples and their ranks (Figure A1), and the mean LDR of each group."""
    s = c.samples
    if s is None or len(c.steps) < 2 or len(s.by_score) < 2:
        return {}
    n = min(N_TRACES, len(s.by_score) // 2)
    rows = np.concatenate([s.by_score[:n], s.by_score[-n:]])
    n_groups = len(s.group_names)
    sizes = np.maximum(np.bincount(s.group, minlength=n_groups), 1)
    values, ranks, means = [], [], []
    for step in c.steps:
        record = c.record(step)[s.index]  # [N], by row
        own = record[rows]
        values.append(own)
        ranks.append([100 * float((record < value).mean()) for value in own])
        means.append(np.bincount(s.group, weights=record, minlength=n_groups) / sizes)
    what = "LDR" if c.is_ldr else "Raw output of D"
    traces = _traces(c, rows, np.stack(values, axis=1), n)
    of_ranks = _traces(c, rows, np.array(ranks).T, n)
    title = f"{what} of the {n} highest and {n} lowest scored"
    panels = {
        "traces": (title, figures.curves(traces, "step", "", title=title)),
        "ranks": (
            "Their ranks: percent of the samples below",
            figures.curves(of_ranks, "step", "", title="Their ranks", y_low=0.0, y_high=100.0),
        ),
    }
    if 1 < n_groups <= MAX_GROUP_LINES:
        title = f"Mean {what} of each group"
        drawn = _group_lines(c, np.stack(means, axis=1))
        panels["group-ldr"] = (title, figures.curves(drawn, "step", "", title=title))
    return panels


def _traces(c: Contents, rows: np.ndarray, values: np.ndarray, n: int) -> list[figures.Line]:
    s = c.samples
    assert s is not None
    kinds = [("highest scored", HIGH, "solid")] * n + [("lowest scored", LOW, "dashed")] * n
    return [
        figures.Line(s.describe(int(row)), legend, c.steps, trace, colour, dash)
        for row, trace, (legend, colour, dash) in zip(rows, values, kinds)
    ]


def _group_lines(c: Contents, means: np.ndarray) -> list[figures.Line]:
    """Groups without a colour of their own share one, and an entry in the key."""
    s = c.samples
    assert s is not None
    n_other = sum(colour == OTHER_COLOUR for colour in c.colours.values())
    dashes = dict(zip(PALETTE, ("solid", "dashed", "dotdash", "dotted", "solid", "dashed")))
    lines = []
    for name, mean in zip(s.group_names, means):
        colour = c.colours[name]
        legend = name if colour != OTHER_COLOUR else f"{n_other} other groups"
        lines.append(figures.Line(name, legend, c.steps, mean, colour, dashes.get(colour, "solid")))
    return lines


def _films(c: Contents) -> list[dict[str, Any]]:
    """For each stage some of the grids that were made while training: their first quarter."""
    folder = c.run.generated / "progress"
    stages: dict[str, list[tuple[int, Any]]] = {}
    for file in sorted(folder.glob("*.png")):
        match = re.fullmatch(r"(\w+)-(\d+)", file.stem)
        if match:
            stages.setdefault(match[1], []).append((int(match[2]), file))
    films = []
    for stage in sorted(stages, key=list(STAGES).index if set(stages) <= set(STAGES) else None):
        frames = stages[stage]
        some = np.unique(np.linspace(0, len(frames) - 1, min(N_GRIDS, len(frames)), dtype=int))
        made = []
        for step, file in (frames[i] for i in some):
            with readable(file):
                made.append({"step": step, "uri": pictures.grid(file, part=0.5, side=160)})
        films.append({"label": STAGES.get(stage, (stage, ""))[0], "frames": made})
    return films
