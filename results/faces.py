"""The paper's Table 6 for the drawn faces: attributes that are rare, without and with Dia-GAN.

    python results/faces.py [--runs DIR]

The `cpu` scale of drawn_faces. Writes results/faces.json, .md and .png; RUNS/drawn_faces is not
trained again. Occurrence is told by small classifiers, one for each attribute, trained on other
faces that have it in half of the cases and measured on yet others.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pages import HERE, about, arguments, keep
from strips import strips

from diagan import attributes, metrics
from diagan.config import DrawnFaces
from diagan.data import Dataset, load_dataset
from diagan.data.faces import NAMES
from diagan.evaluate import Arm
from diagan.experiments import at_scale, find
from diagan.features import by_name
from diagan.features.common import extract
from diagan.pipeline import run as play
from diagan.rundir import RunDir, read_json
from diagan.sample import load_generator

N_FAKES, N_CLASSIFIED, EPOCHS, N_SHOWN = 10_000, 6_000, 6, 24
ARMS = {"plain": "the plain GAN", "weighted": "Dia-GAN", "weighted+drs": "Dia-GAN with rejection"}

SEEN = """What is to be seen (faces.png): the 24 highest scored faces are all pale, and pale is the
one attribute with a higher LDRV and score. The plain GAN makes it in 4.1 % of its images (5 % in
the data), the weighted one in 9.5 %, rejection brings that to 4.8 %. Hats are hardly made by any of
them, and D does not notice: their score is lower than that of the others. Moustaches are counted
far too often: generated faces are grainy, and grain under a nose looks like one."""


def classifiers() -> list[tuple[attributes.AttributeClassifier, attributes.Quality]]:
    """One for each attribute, and how it does on faces with the attributes at their own rates."""
    even = load_dataset(DrawnFaces(n=N_CLASSIFIED, **dict.fromkeys(NAMES, 0.5)), seed=1)
    usual = load_dataset(DrawnFaces(n=N_CLASSIFIED), seed=2)
    found = []
    for name in NAMES:
        images, labels = np.asarray(even.values), even.attributes[name]
        classifier = attributes.fit_small(name, images, labels, seed=0, epochs=EPOCHS)
        test = (np.asarray(usual.values), usual.attributes[name])
        found.append((classifier, attributes.measure(classifier, *test)))
        print(name, found[-1][1], flush=True)
    return found


def diagnosed(run: RunDir, data: Dataset) -> dict[str, dict[str, float]]:
    """Mean LDRV and score of the faces with and without each attribute, and the score's AUC."""
    table = pq.read_table(run.samples, columns=["ldrv", "score"])
    ldrv, score = (table[name].to_numpy() for name in ("ldrv", "score"))
    known = np.isfinite(score)
    return {
        name: {
            "share": float(has.mean()),
            "ldrv_with": float(ldrv[known & (has == 1)].mean()),
            "ldrv_without": float(ldrv[known & (has == 0)].mean()),
            "score_with": float(score[known & (has == 1)].mean()),
            "score_without": float(score[known & (has == 0)].mean()),
        }
        for name, has in data.attributes.items()
    }


def generated(
    run: RunDir, data: Dataset, arm: Arm, judges: list[tuple[Any, attributes.Quality]]
) -> dict[str, dict[str, float | None]]:
    """Occurrence and Partial Recall of each attribute among what an arm makes."""
    look = by_name("discriminator", data.shape, run=run)

    def features(images: np.ndarray) -> np.ndarray:
        return np.concatenate([found.features.numpy() for found in extract(look, images)])

    fake = load_generator(run.path, arm.name).sample(N_FAKES, seed=0, drs=arm.drs)
    counted = attributes.occurrences(judges, fake)
    inside = metrics.recalled(real=features(np.asarray(data.values)), fake=features(fake), k=3)
    found: dict[str, dict[str, float | None]] = {"all": {"partial_recall": float(inside.mean())}}
    for name, has in data.attributes.items():
        seen = counted.counted.get(name)
        found[name] = {
            "occurrence": seen and seen.share,
            "corrected": seen and seen.corrected,
            "partial_recall": float(inside[has == 1].mean()),
            "partial_recall_without": float(inside[has == 0].mean()),
        }
    return found


def pictures(run: RunDir, data: Dataset) -> dict[str, np.ndarray]:
    score = np.nan_to_num(pq.read_table(run.samples)["score"].to_numpy(), nan=-np.inf)
    ranked = np.argsort(-score, kind="stable")
    kinds = {"faces with the highest score": np.asarray(data.values[ranked[:N_SHOWN]])}
    for name, title in ARMS.items():
        arm = Arm.of(name)
        kinds[title] = load_generator(run.path, arm.name).sample(N_SHOWN, seed=1, drs=arm.drs)
    return kinds


def page(found: dict[str, Any]) -> str:
    arms = found["generated"]
    head = ["attribute (share)", "LDRV with", "without", "score with", "without"]
    head += [f"{about}: {what}" for about in ARMS.values() for what in ("%", "Partial Recall")]
    lines = [
        "# Drawn faces: rare attributes, without and with Dia-GAN (as Table 6)",
        "",
        f"`{found['command']}`, {found['scale']}, {found['date']}; {found['minutes']:.0f} minutes.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + " --- |" * len(head),
    ]
    for name, d in found["diagnosed"].items():
        row = [f"{name} ({d['share']:.0%})", f"{d['ldrv_with']:.3f}", f"{d['ldrv_without']:.3f}"]
        row += [f"{d['score_with']:.3f}", f"{d['score_without']:.3f}"]
        for arm in ARMS:
            seen = arms[arm][name]
            row += ["-" if seen["occurrence"] is None else f"{100 * seen['occurrence']:.2f}"]
            row += [f"{seen['partial_recall']:.3f}"]
        lines.append("| " + " | ".join(row) + " |")
    quality = ", ".join(f"{n} {q['accuracy']:.1%} ({q['balanced']:.1%})"
                        for n, q in found["classifiers"].items())  # fmt: skip
    recalls = ", ".join(f"{about} {arms[arm]['all']['partial_recall']:.3f}"
                        for arm, about in ARMS.items())  # fmt: skip
    lines += [
        "",
        f"Recall of all faces: {recalls}. Recalls are in the features of the run's own D at the",
        "end of phase 1: not comparable with the paper's. Accuracy (balanced accuracy) of the",
        f"classifiers: {quality}.",
        "",
        SEEN,
        "",
        "![](faces.png)",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    asked = arguments(__doc__).parse_args()
    settings = at_scale(find("drawn_faces"), "cpu")
    run = play(replace(settings, device="cpu"), asked.runs / "drawn_faces")
    data = load_dataset(settings.data, seed=settings.seed)
    judges = classifiers()
    scale = "cpu: 10,000 faces of 32x32, DCGAN of half the width, 4,000 steps, seed 0"
    found = {
        **about("faces.py", scale=scale),
        "minutes": read_json(run.provenance)["seconds"] / 60,
        "classifiers": {judge.name: {"accuracy": q.accuracy, "balanced": q.balanced_accuracy}
                        for judge, q in judges},
        "diagnosed": diagnosed(run, data),
        "generated": {arm: generated(run, data, Arm.of(arm), judges) for arm in ARMS},
    }  # fmt: skip
    keep("faces", found, page)
    strips(pictures(run, data), columns=12).save(HERE / "faces.png", optimize=True)


if __name__ == "__main__":
    main()
