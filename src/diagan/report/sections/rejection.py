"""Rejection: what it keeps, and what it does to the LDR."""

from typing import Any

import numpy as np

from diagan.findings.calibration import effective_share
from diagan.report.contents import ARMS, Contents, arm_label, readable
from diagan.report.sections.calibration import histogram
from diagan.report.sections.common import HIGH, LOW, Section

KINDS = {"before": ("as generated", LOW), "after": ("kept", HIGH)}


def rejection(c: Contents) -> Section | None:
    """For each generator that was drawn from by rejection: rate, effective size, LDR."""
    rates, ratios = (
        {line["arm"]: line for line in c.metrics if line["metric"] == metric}
        for metric in ("acceptance_rate", "mean_ratio")
    )
    rows, drawn, sources = [], {}, ["metrics.jsonl"]
    for arm, line in rates.items():
        row: dict[str, Any] = {
            "arm": ARMS.get((arm, False), arm), "label": arm_label(line), "rate": line["value"],
            "n": line.get("n_fake"), "by": line.get("rejects_by") or "D",
        }  # fmt: skip
        row |= {"mean_ratio": ratios[arm]["value"]} if arm in ratios else {}
        logits = _logits(c, arm)
        if "before" in logits:
            share = effective_share(logits["before"])
            row |= {"effective": share, "n_ldr": len(logits["before"]),
                    "n_effective": share * len(logits["before"])}  # fmt: skip
        row |= {f"mean_{kind}": float(values.mean()) for kind, values in logits.items()}
        if len(logits) == 2:
            row["figure"] = f"rejection-{arm}"
            drawn[row["figure"]] = histogram(logits, KINDS)
            sources += [f"generated/{arm}_ldr.npy", f"generated/{arm}_drs_ldr.npy"]
        rows.append(row)
    if not rows:
        return None
    return Section({"rows": rows}, rows, drawn, sources=tuple(sources))


def _logits(c: Contents, arm: str) -> dict[str, np.ndarray]:
    """The LDR of what an arm generates, and of what is kept of it, where they were stored."""
    files = {"before": f"{arm}_ldr.npy", "after": f"{arm}_drs_ldr.npy"}
    found = {}
    for kind, name in files.items():
        file = c.run.generated / name
        if file.exists():
            with readable(file):
                found[kind] = np.load(file, allow_pickle=False)
    return {kind: values for kind, values in found.items() if len(values)}
