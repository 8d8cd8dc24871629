"""Does one look at D predict LDRV (Eq. 4, 5)? Ranks of predicted against recorded LDRV.

    python results/theory.py RUN ... [--runs DIR]

Reads finished run folders that have a record, adds them to what is stored, and trains nothing. The
figures go to results/theory.json and .md.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pages import Stored, add_runs, head
from scipy.stats import spearmanr

from diagan import config, ldr
from diagan.checkpoint_diagnosis import Look, fakes, from_look, ldr_pass, ldrv_pass, looking
from diagan.data import Dataset, load_dataset
from diagan.diagnosis import Grouping, diagnose
from diagan.record import LdrRecord
from diagan.rundir import open_run
from diagan.sample import load_at

WINDOW = 50  # the last records
CENTRES = ("none", "median")
LIMIT, DEFAULT = "to 0", "1 / 3F"
# At the limit the predicted LDRV is s_0 |phi|^2: what feature norms alone would tell.
PRIORS: dict[str, float | None] = {
    LIMIT: 1e-12, "1e-4": 1e-4, DEFAULT: None, "0.01": 0.01, "1": 1.0, "100": 100.0,
}  # fmt: skip


def minor_over_major(data: Dataset, ldrv: np.ndarray) -> float:
    """AUC of the rare group against the first, the major one."""
    chosen = np.isin(data.groups, (0, data.rare))
    return ldr.auc(ldrv[chosen], data.groups[chosen] == data.rare)


def measure(path: Path) -> dict[str, Any]:
    """Ranks at the end of phase 1, where the window of the record ends too."""
    run = open_run(path)
    settings = config.loads(run.config.read_text(), str(run.config))
    data = load_dataset(settings.data, seed=settings.seed, root=settings.data_root)
    record = LdrRecord(run.record, data.n, fingerprint=data.fingerprint)
    trained = load_at(run, "phase1", settings.phase1_steps)
    steps = [step for step in record.steps if step <= settings.phase1_steps][-WINDOW:]
    recorded = {
        how: ldr.moments(ldr.centre(record.read(step), how) for step in steps).ldrv
        for how in CENTRES
    }
    with looking(trained.d):
        fake = fakes(trained, data.n, settings.seed)
        logits, information = ldr_pass(trained.d, real=data.values, fake=fake)
        predicted = {
            name: ldrv_pass(trained.d, information.posterior(s_0), real=data.values)
            for name, s_0 in PRIORS.items()
        }
    score = replace(settings.score, k=None)
    grouping = Grouping(data.groups, data.group_names, data.rare)
    s_0 = 1 / (3 * information.n_features)
    one_look = Look(logits, predicted[DEFAULT], s_0, n_fake=data.n)
    return {
        "n": data.n,
        "n_features": information.n_features,
        "step": settings.phase1_steps,
        "n_records": len(steps),
        "record_mode": settings.record.mode,
        "auc_recorded": {how: minor_over_major(data, ldrv) for how, ldrv in recorded.items()},
        "auc_predicted": {name: minor_over_major(data, v) for name, v in predicted.items()},
        "rank_correlation": {
            how: {name: float(spearmanr(v, ldrv).statistic) for name, v in predicted.items()}
            for how, ldrv in recorded.items()
        },
        "diagnosis_auc": {
            "checkpoint": from_look(one_look, score, grouping).auc,
            "record": diagnose((record.read(step) for step in steps), score, grouping).auc,
        },
    }


def page(stored: Stored) -> str:
    runs = stored["runs"]
    lines = [
        *head("Predicted LDRV (Eq. 4, 5) against recorded LDRV", stored),
        f"D at the end of phase 1 in eval mode, as many fakes as reals; the last {WINDOW} records.",
        "Rank correlation (Spearman) over all training samples, with records as they are / less",
        f"their median. AUC: minor above major. s_0 {LIMIT}: the norm of the features and nothing",
        "more. The default, 1 / 3F, was chosen after a look at gaussian_3-seed0 and at runs of an",
        "earlier demo (a DCGAN): the other Gaussians and these demos are a fresh test of it.",
        "",
        "| run | s_0 | rank correlation | AUC predicted | AUC recorded |",
        "| --- | --- | --- | --- | --- |",
    ]
    for run, found in runs.items():
        recorded = " / ".join(f"{found['auc_recorded'][how]:.3f}" for how in CENTRES)
        for name in PRIORS:
            ranks = " / ".join(f"{found['rank_correlation'][how][name]:.2f}" for how in CENTRES)
            auc = found["auc_predicted"][name]
            lines.append(f"| {run} | {name} | {ranks} | {auc:.3f} | {recorded} |")
    lines += [
        "",
        "The whole diagnosis (k auto, the run's other score settings): AUC of the rare group",
        f"against all others, from one checkpoint (s_0 {DEFAULT}) and from the records.",
        "",
        "| run | from | LDRM | LDRV | score |",
        "| --- | --- | --- | --- | --- |",
    ]
    for run, found in runs.items():
        for source, auc in found["diagnosis_auc"].items():
            numbers = " | ".join(f"{auc[name]:.3f}" for name in ("ldrm", "ldrv", "score"))
            lines.append(f"| {run} | {source} | {numbers} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    scale = "the runs' own; float32 features, float64 statistics"
    add_runs("theory", __doc__, measure, lambda _: scale, page)


if __name__ == "__main__":
    main()
