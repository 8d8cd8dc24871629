"""What a run found, in a few plain lines for the terminal."""

from collections.abc import Sequence
from shlex import quote
from typing import Any

from diagan.findings.words import per_cent
from diagan.metrics import MIN_GROUP
from diagan.rundir import RunDir, read_json, read_lines

ARMS = (
    ("phase1", False, "images of the GAN"),
    ("plain", False, "images of the plain GAN"),
    ("weighted", False, "images of Dia-GAN"),
    ("weighted", True, "images of Dia-GAN with rejection"),
)


def run_summary(run: RunDir) -> str:
    """AUC and shares where there is a rare group, warnings, and the report's path last."""
    lines: list[str] = []
    if run.diagnosis.exists():
        found = read_json(run.diagnosis)
        if found["rare"] and found["auc"]:
            lines += rare_lines(run, found)
        lines += [f"warning: {text}" for text in found["warnings"]]
    lines += [f"warning: {line['warning']}" for line in read_lines(run.log) if "warning" in line]
    lines += verdict_lines(run)
    lines += ["", f"samples, scores and weights: {run.samples}"] if run.samples.exists() else []
    lines += [f"draw from it:  diagan sample {quote(str(run.path))} --n 100 --out images"]
    return "\n".join([*lines, "look at the report:", str(run.report)])


def verdict_lines(run: RunDir) -> list[str]:
    """What the report claims, the most severe first."""
    report = run.report.with_suffix(".json")
    findings = read_json(report)["verdict"] if report.exists() else []
    return [f"verdict: {f['claim']}".replace("\N{NO-BREAK SPACE}", " ") for f in findings]


def rare_lines(run: RunDir, found: dict) -> list[str]:  # type: ignore[type-arg]
    rare = found["rare"]
    group = next(g for g in found["groups"] if g["name"] == rare)
    lines = [
        "",
        f"How well was the rare group ({rare}) found? AUC of the score: {found['auc']['score']:.3f}"
        f" (1: every {rare} sample scores above every other, 0.5: chance)",
        f"How often is {rare}?",
        f"  {100 * group['share']:5.2f} %  in the data",
    ]
    shares = {
        (line["arm"], line["drs"]): line
        for line in read_lines(run.metrics)
        if line["metric"] == "group_share" and line["group"] == rare
    }
    for arm, drs, name in ARMS:
        if line := shares.get((arm, drs)):
            spread = f"{100 * line['low']:.2f} to {100 * line['high']:.2f}"
            lines.append(f"  {100 * line['value']:5.2f} %  among {name} ({spread})")
    accuracy = next(iter(shares.values()))["probe_balanced_accuracy"] if shares else 0
    return [*lines, f"  (told by a nearest-neighbour probe, balanced accuracy {accuracy:.3f})", ""]


def metrics_table(lines: Sequence[dict[str, Any]]) -> str:
    """A row a number and group, a column an arm; intervals in brackets."""
    columns = list(dict.fromkeys(map(_column, lines)))
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for line in lines:
        key = (line["metric"], line.get("protocol", ""), line.get("group", ""))
        rows.setdefault(key, {})[_column(line)] = _number(line)
    head = ["metric", "protocol", "group", *columns]
    body = [[*key, *(cells.get(column, "") for column in columns)] for key, cells in rows.items()]
    widths = [max(map(len, column)) for column in zip(head, *body)]
    table = ["  ".join(f"{cell:{w}}" for cell, w in zip(row, widths)) for row in [head, *body]]
    return "\n".join(["", *(row.rstrip() for row in table), "", *_notes(lines)])


def _arm(line: dict[str, Any]) -> str:
    return f"{_column(line)}: " if "arm" in line else ""


def _column(line: dict[str, Any]) -> str:
    return line["arm"] + ("+drs" if line["drs"] else "") if "arm" in line else "value"


def _number(line: dict[str, Any]) -> str:
    text = f"{line['value']:.4g}"
    return f"{text} ({line['low']:.4g} to {line['high']:.4g})" if "low" in line else text


def _notes(lines: Sequence[dict[str, Any]]) -> list[str]:
    """From what the numbers are, and whom they may be compared with."""
    measured = [line for line in lines if "extractor" in line]
    counts = sorted({(line["n_real"], line["n_fake"]) for line in measured if line["n_real"]})
    notes = [f"{fake:,} generated against {real:,} real" for real, fake in counts]
    for name in dict.fromkeys(line["extractor"] for line in measured):
        theirs = any(x["comparable_with_published"] for x in measured if x["extractor"] == name)
        notes.append(
            f"features: {name}" + ("" if theirs else ", not comparable with published FID")
        )
    notes += [f"{_arm(line)}a kind is {per_cent(mode['real_share'])} of the real and "
              f"{per_cent(mode['fake_share'])} of the generated ones, such as index "
              f"{', '.join(map(str, mode['examples'][:3]))}"
              for line in lines for mode in line.get("modes", ())]  # fmt: skip
    small = [x["group"] for x in measured if "group" in x and x["n_real"] < MIN_GROUP]
    return notes + [f"{g}: under {MIN_GROUP} samples, no verdict" for g in dict.fromkeys(small)]
