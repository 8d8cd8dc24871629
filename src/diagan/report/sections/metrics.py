"""Metrics: the last value of each, a column an arm, with its protocol."""

from typing import Any

from diagan.experiments.tables import TABLES
from diagan.experiments.variants import Variant, named
from diagan.report.contents import ARMS, Contents, arm_label
from diagan.report.sections.common import Section

LOWER_IS_BETTER = {"fid", "kid", "partial_fid", "group_fid", "reconstruction_error",
                   "reconstruction_error_as_published"}  # fmt: skip
ELSEWHERE = {"group_share", "missing_modes", "mean_ratio"}  # have sections of their own


def metrics(c: Contents) -> Section | None:
    """A row a metric and group; what is better is said, not coloured: intervals overlap."""
    lines = [line for line in c.metrics if line["metric"] not in ELSEWHERE]
    if not lines:
        return None
    rows: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for line in lines:
        key = (line["metric"], line.get("protocol") or "", line.get("group") or "")
        rows.setdefault(key, {})[arm_label(line)] = line
    seen = {arm for of_arm in rows.values() for arm in of_arm}
    arms = [arm for arm in ARMS.values() if arm in seen]
    arms += sorted(seen - set(arms))
    experiment = named(c.config) if c.config else None
    papers = _papers(experiment[0]) if experiment else {}
    made = [
        {"metric": metric, "protocol": protocol, "group": group, "lines": of_arm,
         "is_share": metric in ("acceptance_rate", "precision", "recall", "partial_recall"),
         "papers": {arm: papers[metric, group, arm] for arm in arms
                    if (metric, group, arm) in papers},
         "better": "lower" if metric in LOWER_IS_BETTER else "higher",
         "counts": _counts(of_arm)}
        for (metric, protocol, group), of_arm in rows.items()
    ]  # fmt: skip
    seen_by = {line["extractor"]: line["comparable_with_published"]
               for line in lines if "extractor" in line}  # fmt: skip
    own = [name for name, comparable in seen_by.items() if not comparable]
    kept = ("metric", "protocol", "group", "value", "low", "high", "n_real", "n_fake", "extractor")
    numbers = [{"arm": arm} | {key: line.get(key) for key in kept}
               for of_arm in rows.values() for arm, line in of_arm.items()]  # fmt: skip
    of_paper = [{"metric": metric, "group": group, "arm": arm, **paper}
                for (metric, group, arm), paper in papers.items()]  # fmt: skip
    about = {"experiment": experiment[0], "scale": experiment[1]} if experiment else None
    return Section(
        {"rows": made, "arms": arms, "own_features": own, "experiment": about,
         "has_papers": any(row["papers"] for row in made)},
        {"measured": numbers, "experiment": about, "paper": of_paper},
        sources=("metrics.jsonl",),
    )  # fmt: skip


def _papers(experiment: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """What the paper reports for an experiment as it is, by metric, group and arm."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for table in TABLES.values():
        for cell in table.cells:
            if cell.paper is None or cell.variant != Variant(experiment):
                continue
            arm, _, drs = cell.arm.partition("+")
            label = ARMS.get((arm, bool(drs)), cell.arm)
            number = {"value": cell.paper.value, "deviation": cell.paper.deviation}
            found.setdefault((cell.metric, cell.group, label), {**number, "table": table.name})
    return found


def _counts(of_arm: dict[str, dict[str, Any]]) -> str:
    """How many reals and fakes were compared; all arms have the same."""
    line = next(iter(of_arm.values()))
    real, fake = line.get("n_real"), line.get("n_fake")
    return " / ".join(f"{n:,}" for n in (real, fake) if n)
