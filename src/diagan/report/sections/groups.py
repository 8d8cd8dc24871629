"""Groups: how each weighs in the data, in the weights, and in what every arm makes."""

import math
from typing import Any

from diagan.metrics import MIN_GROUP
from diagan.report.contents import DATA_ARM, Contents, arm_label
from diagan.report.sections.common import Section, bounds, interval

RATIOS = (0.1, 0.25, 0.5, 1, 2, 4)  # marks of the axis: share made / share of the data
LOWEST, HIGHEST = 0.05, 8.0  # the ends of the axis


def groups(c: Contents) -> Section | None:
    """A row a group; the bars show how often it is made beside how often it is in the data."""
    if not c.groups:
        return None
    recalls = _partial_recalls(c)
    rows = [
        {
            **group,
            "shares": {label: shares.get(group["name"]) for label, shares in c.shares.items()},
            "recalls": {label: of.get(group["name"]) for label, of in recalls.items()},
            "bars": _bars(c, group),
            "few": group["n"] < MIN_GROUP,
        }
        for group in sorted(c.groups, key=lambda group: -(group.get("score") or 0.0))
    ]
    kept = ("name", "n", "share", "weight_share", "ldrm", "ldrv", "score")
    found = [
        {
            **{key: row.get(key) for key in kept},
            "generated": {label: interval(line) for label, line in row["shares"].items() if line},
            "partial_recall": {arm: interval(line) for arm, line in row["recalls"].items() if line},
        }
        for row in rows
    ]
    probes = _probes(c)
    return Section(
        {"rows": rows, "arms": list(c.shares), "recall_arms": list(recalls), "probes": probes,
         "colours": c.colours, "rare": c.rare and c.rare["name"],
         "bar_arms": [arm for arm in c.shares if arm != DATA_ARM],
         "marks": [(_mark(ratio), _at(ratio)) for ratio in RATIOS],
         "any_few": any(row["few"] for row in rows)},
        {"groups": found, "probes": probes},
        sources=("diagnosis.json", "metrics.jsonl"),
    )  # fmt: skip


def _bars(c: Contents, group: dict[str, Any]) -> list[dict[str, Any]]:
    """Share made / share of the data and its interval, as places on the axis, arm by arm."""
    found = []
    arms = [label for label in c.shares if label != DATA_ARM]
    for number, label in enumerate(arms):
        line = c.shares[label].get(group["name"])
        if line is None or not group["share"]:
            continue
        low, high = (bound / group["share"] for bound in bounds(line))
        ratio = line["value"] / group["share"]
        found.append({"arm": label, "number": number, "ratio": ratio, "at": _at(ratio),
                      "from": _at(low), "to": _at(high)})  # fmt: skip
    return found


def _at(ratio: float) -> float:
    """Percent along the axis, which is logarithmic."""
    clipped = min(max(ratio, LOWEST), HIGHEST)
    return 100 * math.log(clipped / LOWEST) / math.log(HIGHEST / LOWEST)


def _mark(ratio: float) -> str:
    return f"{ratio:g} ×" if ratio >= 1 else f"1/{1 / ratio:g}"


def _partial_recalls(c: Contents) -> dict[str, dict[str, dict[str, Any]]]:
    """The last measured Partial Recall of each group by arm."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for line in c.metrics:
        if line["metric"] == "partial_recall" and line.get("group"):
            found.setdefault(arm_label(line), {})[line["group"]] = line
    return found


def _probes(c: Contents) -> list[dict[str, Any]]:
    """What told the groups of generated samples, and how often it is right."""
    keys = ("probe", "probe_accuracy", "probe_balanced_accuracy")
    probes = {
        tuple(line.get(key) for key in keys)
        for shares in c.shares.values()
        for line in shares.values()
        if line.get("probe")
    }
    names = ("probe", "accuracy", "balanced_accuracy")
    return [dict(zip(names, probe)) for probe in sorted(probes, key=str)]
