"""At a glance: what the GAN fails to make beside what it makes, in pictures; the rare group."""

from typing import Any

import numpy as np

from diagan.report.contents import Contents
from diagan.report.sections.common import Section, bar, bounds, interval, thumbs

N_PICTURES = 24  # of each


def glance(c: Contents) -> Section:
    """Pictures first; with a rare group, its share in the data and in what each arm makes."""
    diagnosis = c.diagnosis or {}
    rare, data_at = c.rare, 0.0
    rows: list[dict[str, Any]] = []
    if rare is not None:
        lines = {
            label: of_group[rare["name"]]
            for label, of_group in c.shares.items()
            if rare["name"] in of_group
        }
        limit = 1.08 * max([rare["share"], *(bounds(line)[1] for line in lines.values())])
        data_at = 100 * rare["share"] / limit
        rows = [{"label": label, "line": line} | bar(line, limit) for label, line in lines.items()]
    about = {
        key: diagnosis.get(key)
        for key in ("n", "n_records", "first_step", "last_step", "auc", "mode")
    }
    about["steps"] = max((line.get("step", 0) for line in c.log), default=None)
    about["is_ldr"] = c.is_ldr
    made = next(iter(c.fake_sprites.items()), None)
    return Section(
        {
            **about,
            "config": c.config,
            "rare": rare,
            "top_group": max(c.groups, key=lambda group: group.get("score") or 0.0, default=None),
            "mean_score": float(np.nanmean(c.samples.score)) if c.samples else None,
            "rows": rows,
            "data_at": data_at,
            "missed": _missed(c),
            "made": made and {
                "label": made[0],
                "positions": [made[1].position(i) for i in range(min(N_PICTURES, made[1].n))],
            },
        },
        {
            **about,
            "rare": rare and {"name": rare["name"], "n": rare["n"], "share": rare["share"]},
            "shares": {row["label"]: interval(row["line"]) for row in rows},
        },
        sources=("diagnosis.json", "metrics.jsonl", "thumbnails.npz", "generated"),
    )  # fmt: skip


def _missed(c: Contents) -> list[dict[str, Any]]:
    """Every few of the highest scored 2 %, so that one look shows more than one kind of them."""
    if c.samples is None or c.sprite is None:
        return []
    ranked = [row for row in c.samples.by_score.tolist() if row in c.place]
    top = ranked[: max(N_PICTURES, min(len(ranked) // 4, round(0.02 * len(c.samples.index))))]
    return thumbs(c, top[:: max(1, len(top) // N_PICTURES)][:N_PICTURES])
