"""What a run found, in a few plain lines for the terminal."""

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
    lines += ["", f"samples, scores and weights: {run.samples}"] if run.samples.exists() else []
    lines += [f"draw from it:  diagan sample {run.path} --n 100 --out images"]
    return "\n".join([*lines, "look at the report:", str(run.report)])


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
