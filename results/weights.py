"""Where the weight goes: the rare group's share of the draws, by mode of recording and by rule.

    python results/weights.py RUN ... [--runs DIR]

Reads the records of runs that have a rare group; nothing is trained. Adds them to
results/weights.json and .md.
"""

from typing import Any

import numpy as np
from pages import Stored, add_runs, head

from diagan import diagnosis, ldr
from diagan.config import Score
from diagan.record import LdrRecord
from diagan.rundata import load_data, read_settings
from diagan.rundir import RunDir

RULES = {
    "k = 3, cap (the paper's)": Score(k=3.0),
    "k = 3, floor": Score(k=3.0, clip="floor"),
    "k = 1, cap": Score(k=1.0),
    "k = 1, exponent 3, cap (the first release's)": Score(k=1.0, exponent=3.0),
    "k = 3, centred, cap": Score(k=3.0, centre="median"),
    "k = 3, centred, floor": Score(k=3.0, centre="median", clip="floor"),
    "k = 5, centred, floor": Score(k=5.0, centre="median", clip="floor"),
    "LDRM alone, cap": Score(terms="ldrm"),
    "LDRV alone, centred, floor": Score(terms="ldrv", centre="median", clip="floor"),
}


def look(run: RunDir) -> dict[str, Any]:
    """Moments of the rare group and of the others, and for each rule the weight and the AUC."""
    settings = read_settings(run)
    data = load_data(run, settings)
    record = LdrRecord(run.record, data.n)
    steps = [s for s in record.steps if s <= settings.phase1_steps][-settings.record.window :]
    records = np.stack([record.read(step) for step in steps])
    is_rare = data.groups == data.rare
    moments = ldr.moments(records)
    means = {name: [float(values[~is_rare].mean()), float(values[is_rare].mean())]
             for name, values in (("ldrm", moments.ldrm), ("ldrv", moments.ldrv))}  # fmt: skip
    grouping = diagnosis.Grouping(data.groups, data.group_names, data.rare)
    rules = {}
    for name, score in RULES.items():
        found = diagnosis.diagnose(iter(records), score, grouping)
        share = next(group.weight_share for group in found.groups if group.name == found.rare)
        rules[name] = {"weight": share, "auc": found.auc["score"] if found.auc else None}
    how = {"mode": settings.record.mode, "n_records": len(records), "seed": settings.seed,
           "n": data.n, "steps": settings.phase1_steps,
           "share": float(is_rare.mean())}  # fmt: skip
    return {**how, **means, "rules": rules}


def page(stored: Stored) -> str:
    columns = ["records", "seed", "digits", "steps", "LDRM", "LDRV", *RULES]
    lines = [
        *head("Where the weight goes", stored),
        "A row is a phase 1, recorded with D in train mode (new batches of 64 for every record) or",
        "in eval mode. LDRM and LDRV: of the major / the minor group. Then for each rule the minor",
        "group's share of the draws in phase 2, and the AUC of the score for it.",
        "",
        "| " + " | ".join(columns) + " |",
        "| ---" * len(columns) + " |",
    ]  # fmt: skip
    for x in stored["runs"].values():
        moments = [f"{x[name][0]:.3g} / {x[name][1]:.3g}" for name in ("ldrm", "ldrv")]
        cells = [f"{of['weight']:.2%}, {of['auc']:.3f}" if (of := x["rules"].get(rule)) else
                 "not measured" for rule in RULES]  # fmt: skip
        about = [f"{x['n_records']}, {x['mode']} mode", str(x["seed"]), f"{x['n']:,}",
                 f"{x['steps']:,}"]  # fmt: skip
        lines.append("| " + " | ".join([*about, *moments, *cells]) + " |")
    return "\n".join(lines) + "\n"


def scale(runs: Stored) -> str:
    shares, steps = ({x[key] for x in runs.values()} for key in ("share", "steps"))
    return (f"{' and '.join(f'{share:.0%}' for share in sorted(shares))} in the minor group, "
            f"{' and '.join(f'{n:,}' for n in sorted(steps))} steps of phase 1")  # fmt: skip


def main() -> None:
    add_runs("weights", __doc__, lambda path: look(RunDir(path)), scale, page)


if __name__ == "__main__":
    main()
