"""Calibration: is the logit a log-density ratio?"""

from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from diagan.findings import calibration as judged
from diagan.report import figures
from diagan.report.contents import OTHER_COLOUR, PALETTE, Contents
from diagan.report.sections.common import HIGH, LOW, Section

N_BINS = 40
KINDS = {"heldout": ("held-out reals", LOW), "train": ("training reals", PALETTE[2]),
         "fake": ("generated", HIGH)}  # fmt: skip


def calibration(c: Contents) -> Section | None:
    """A panel for each discriminator that was judged: who was recorded, and who rejects."""
    files = [c.run.calibration, c.run.calibration.with_name(judged.REJECTION)]
    there = {file.stem.replace("_", "-"): file for file in files if file.exists()}
    if not there:
        return None
    panels: list[dict[str, Any]] = []
    numbers: list[dict[str, Any]] = []
    drawn: dict[str, Markup] = {}
    for name, file in there.items():
        logits, about = judged.read(file)
        drawn |= {f"{name}-bins": _reliability(about["bins"]),
                  f"{name}-logits": histogram(logits, KINDS)}  # fmt: skip
        panels.append({"name": name, **_panel(about)})
        numbers.append({key: value for key, value in about.items() if key != "format"})
    sources = tuple(_name for file in there.values() for _name in _pair(file))
    return Section({"panels": panels}, numbers, drawn, sources=sources)


def _pair(file: Path) -> tuple[str, str]:
    return file.name, file.with_suffix(".json").name


def _panel(about: dict[str, Any]) -> dict[str, Any]:
    line = about["line"]
    ends = {"value": line["temperature"], "low": line["low"], "high": line["high"]}
    temperature = {key: float("inf") if value is None else value for key, value in ends.items()}
    gap = {"value": about["gap"], "low": about["gap_low"], "high": about["gap_high"]}
    return {
        "judge": about.get("judge", "the discriminator"),
        "is_ldr": about.get("is_ldr", True),
        "temperature": temperature,
        "is_finite": bool(np.isfinite(temperature["value"])),
        "gap": gap if about["gap"] is not None else None,
        "factor": float(np.exp(min(about["gap"], 20.0))) if about["gap"] is not None else None,
        **{key: about[key] for key in ("auc", "error", "mass", "n_heldout", "n_fake", "warnings")},
    }


def _reliability(bins: list[dict[str, float]]) -> Markup:
    x = [b["said"] for b in bins]
    return figures.curves(
        [
            figures.Line("ideal", "ideal", [0, 1], [0, 1], OTHER_COLOUR, "dashed"),
            figures.Line("measured", "measured", x, [b["real"] for b in bins], LOW, dots=True),
            figures.Line("95 % interval, low", "95 % interval", x, [b["low"] for b in bins], LOW,
                         "dotted", width=1),
            figures.Line("95 % interval, high", "95 % interval", x, [b["high"] for b in bins], LOW,
                         "dotted", width=1),
        ],
        "chance of being real, as D says", "share of reals", 260,
        title="Reliability",
    )  # fmt: skip


def histogram(logits: dict[str, np.ndarray], kinds: dict[str, tuple[str, str]]) -> Markup:
    """Shares of samples by logit, a colour for each kind; a few strays are put at the ends."""
    everything = np.concatenate(list(logits.values()))
    low, high = np.percentile(everything, [0.2, 99.8])
    edges = np.linspace(low, high if high > low else low + 1, N_BINS + 1)
    bars = []
    for name, (legend, colour) in kinds.items():
        if name in logits:
            counts, _ = np.histogram(np.clip(logits[name], edges[0], edges[-1]), edges)
            bars.append(figures.Bars(legend, edges, 100 * counts / len(logits[name]), colour))
    return figures.histogram(bars, "LDR (logit of D)", "share of samples, %", 260, title="LDR")
