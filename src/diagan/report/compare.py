"""Several runs side by side: what each misses, makes and measures, and where they differ."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from diagan.config import flat
from diagan.metrics.ranks import correlation, overlap, ranks
from diagan.report import pictures
from diagan.report.contents import Contents, arm_label
from diagan.report.sections.common import Section
from diagan.report.sections.groups import groups

N_PICTURES = 24
BYTES = 400_000  # of each sprite
TOP_SHARE = 0.05
A_NUMBER = ("metric", "protocol", "group", "extractor", "extractor_version")  # and its arm


def compare(
    runs: list[Contents], judge: Callable[[Contents], Section]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What templates/compare.html.j2 shows, and the numbers of its .json.

    `judge` is the section that gives the verdict.
    """
    names = _names(runs)
    columns = [_column(name, c, judge) for name, c in zip(names, runs)]
    table = _metrics(names, runs)
    agreement = _agreement(names, runs)
    sprites = {
        f"run-{i} .{kind}": sprite.css
        for i, column in enumerate(columns)
        for kind, sprite in column.pop("sprites").items()
    }
    numbers = {
        "runs": [
            {key: column[key] for key in ("name", "n", "kind", "k", "claims")} for column in columns
        ],
        "settings": _settings(names, runs),
        "metrics": [
            {
                **row,
                "values": {name: line and line["value"] for name, line in row["values"].items()},
            }
            for row in table
        ],
        "agreement": agreement,
    }
    shown = {"columns": columns, "metrics": table, "agreement": agreement, "names": names,
             "settings": numbers["settings"], "backgrounds": sprites}  # fmt: skip
    return shown, numbers


def _names(runs: list[Contents]) -> list[str]:
    """Folder names; with the folder above where two are the same."""
    names = [c.name for c in runs]
    if len(set(names)) == len(names):
        return names
    return [f"{c.run.path.resolve().parent.name}/{c.name}" for c in runs]


def _column(name: str, c: Contents, judge: Callable[[Contents], Section]) -> dict[str, Any]:
    """One run: its claims, pictures and groups."""
    diagnosis = c.diagnosis or {}
    sprites: dict[str, pictures.Sprite] = {}
    kinds: list[dict[str, Any]] = []
    if c.samples is not None and len(c.thumbnails[0]):
        rows = [row for row in c.samples.by_score.tolist() if row in c.place][:N_PICTURES]
        images = c.thumbnails[1][[c.place[row] for row in rows]]
        sprites["real"] = pictures.sprite(images, BYTES)
        kinds.append({"label": "Missed the most", "css": "real"})
    for number, (label, images) in enumerate(c.fakes.items()):
        sprites[f"arm-{number}"] = pictures.sprite(images[:N_PICTURES], BYTES)
        kinds.append({"label": f"Made by {label}", "css": f"arm-{number}"})
    for kind in kinds:
        sprite = sprites[kind["css"]]
        kind["positions"] = [sprite.position(at) for at in range(sprite.n)]
    by_group = groups(c)
    return {
        "name": name,
        "kind": c.config.data.kind if c.config else diagnosis.get("mode", ""),
        "n": diagnosis.get("n"),
        "k": diagnosis.get("k"),
        "claims": [finding["claim"] for finding in judge(c).numbers],
        "pictures": kinds,
        "groups": by_group.shown if by_group else None,
        "sprites": sprites,
    }


def _settings(names: list[str], runs: list[Contents]) -> dict[str, dict[str, Any]]:
    """Settings in which the runs differ, by name and run."""
    configs = [flat(c.config) if c.config else {} for c in runs]
    keys = dict.fromkeys(key for config in configs for key in config)
    return {
        key: dict(zip(names, (config.get(key) for config in configs)))
        for key in keys
        if len({str(config.get(key)) for config in configs}) > 1
    }


def _metrics(names: list[str], runs: list[Contents]) -> list[dict[str, Any]]:
    """A row a number, a column a run; what every run has comes first. What is measured in different
    features, as those of each run's own D are, is not one number."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, c in zip(names, runs):
        for line in c.metrics:
            key = (arm_label(line), *(line.get(word) or "" for word in A_NUMBER))
            rows.setdefault(key, {})[name] = line
    made = [dict(zip(("arm", *A_NUMBER), key)) | {"values": found} for key, found in rows.items()]
    return sorted(made, key=lambda row: -len(row["values"]))


def _agreement(names: list[str], runs: list[Contents]) -> list[dict[str, Any]]:
    """How alike two runs of the same data rank its samples: Spearman, and the top 5 % in common."""
    found = []
    for (name, a), (other, b) in combinations(zip(names, runs), 2):
        if a.samples is None or b.samples is None or not _same_data(a, b):
            continue
        known = np.isfinite(a.samples.score) & np.isfinite(b.samples.score)
        x, y = (ranks(c.samples.score[known]) for c in (a, b) if c.samples)
        n_top = max(1, round(TOP_SHARE * len(x)))
        found.append({"runs": (name, other), "spearman": correlation(x, y),
                      "shared_top": overlap(x, y, n_top), "by_chance": TOP_SHARE})  # fmt: skip
    return found


def _same_data(a: Contents, b: Contents) -> bool:
    one, two = ((c.provenance.get("data") or {}).get("fingerprint") for c in (a, b))
    return bool(one) and one == two
