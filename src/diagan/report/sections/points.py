"""Data of two dimensions: the training points by score, and what each arm makes."""

import numpy as np

from diagan.report import figures
from diagan.report.contents import OTHER_COLOUR, Contents, readable
from diagan.report.sections.common import HIGH, LOW, Section

MAX_POINTS = 5_000
TOP_SHARE = 0.05
TRAINING = "training points"


def points(c: Contents) -> Section | None:
    """Panels with the same axes (Figure 2); among the training points the highest scored."""
    panels: dict[str, list[figures.Cloud]] = {}
    training = _training(c)
    if training:
        panels[TRAINING] = training
    for label, file in c.generated(".npy").items():
        with readable(file):
            values = np.load(file, allow_pickle=False)
        panels[label] = [(values[:MAX_POINTS], LOW)]
    if not panels:
        return None
    made = figures.scatter(panels)
    names = {label: f"points-{number}" for number, label in enumerate(made)}
    n_shown = {label: sum(len(own) for own, _ in clouds) for label, clouds in panels.items()}
    return Section(
        {"names": names, "n": n_shown, "training": TRAINING, "colour": HIGH},
        {"n_shown": n_shown},
        {names[label]: figure for label, figure in made.items()},
        sources=("samples.parquet", "generated"),
    )


def _training(c: Contents) -> list[figures.Cloud]:
    """A seeded sample of the points; those of the highest scores in their own colour, on top."""
    s = c.samples
    if s is None or s.points is None:
        return []
    rows = np.random.default_rng(0).permutation(len(s.index))[:MAX_POINTS]
    is_high = s.score[rows] > np.nanquantile(s.score, 1 - TOP_SHARE)
    return [(s.points[rows[~is_high]], OTHER_COLOUR), (s.points[rows[is_high]], HIGH)]
