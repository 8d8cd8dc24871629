"""Two folders in, a diagnosis out: what a generator of any kind fails to make.

`real` are images that it should make, `fake` are images that it made.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diagan.config import PROBE_SCORE, Score
from diagan.data import Dataset
from diagan.evaluate import keep_pictures
from diagan.findings import calibration
from diagan.findings.calibration import Calibration
from diagan.findings.junk import small_pixels
from diagan.findings.verdict import CHANCE, DROPPED
from diagan.foreign import diagnosed
from diagan.foreign.diagnosed import Diagnosis
from diagan.foreign.probe import (
    Probed,
    ProbeSettings,
    Ratio,
    Tail,
    cross_fit,
    density_ratio,
    power,
    prepare,
    share_intervals,
    tail,
)
from diagan.measures import missing_line
from diagan.metrics import MIN_GROUP, missing_modes
from diagan.progress import Display, Silent, duration
from diagan.protocols import short
from diagan.random import numpy_generator
from diagan.record import LdrRecord
from diagan.rundir import RunDir, append_line, refuse_inside, replacing
from diagan.thumbnails import add_thumbnails

ARM = "fake"  # the name of what is judged, where a run has plain and weighted
FEW = 1_000  # images of a set under which the probe learns little
N_COMPARED = 10_000  # images of either set in which missing modes are looked for
N_TRIED = 12  # groups at most of which it is tried whether the probe would miss them
SAY_EVERY = 15.0  # seconds
SAYS_NOTHING = 3.0  # standard errors of an AUC around 0.5


def diagnose_folders(
    *, real: str, fake: str, out: str | Path, size: int | None = None,
    group_by: str | None = None, score: Score | None = None, seed: int = 0,
    settings: ProbeSettings | None = None, shown: Display | None = None,
) -> Diagnosis:  # fmt: skip
    """Train a probe between the two and diagnose the real images by it; all in the folder `out`."""
    shown = shown or Silent()
    diagnosed.refuse_other(Path(out))  # now, and not after minutes
    for images in (real, fake):
        refuse_inside(Path(out), images)
    reals, fakes = diagnosed.read_both(real, fake, size, group_by=group_by)
    for place in (reals, fakes):
        for note in place.data.notes:
            shown.say(f"{place.listing.where}: {note}")
    began = time.monotonic()
    found = probe(real=reals.data.values, fake=fakes.data.values, seed=seed, settings=settings,
                  groups=reals.data.groups, shown=shown)  # fmt: skip
    provenance = {
        "real": real, "fake": fake, "shape": list(reals.data.shape),
        "data": {"fingerprint": reals.data.fingerprint, "n": reals.data.n,
                 "notes": list(reals.data.notes)},
        "seconds": time.monotonic() - began,
    }  # fmt: skip
    return write(out, found, real=reals.data, fake=fakes.data.values, score=score or PROBE_SCORE,
                 provenance=provenance, seed=seed)  # fmt: skip


class Sight(NamedTuple):
    """What the probe says, and how much of a group's absence it would notice, 0 to 1.

    None: without the group too few images are left to try.
    """

    found: Probed
    powers: dict[int, float | None]


def probe(
    *, real: np.ndarray, fake: np.ndarray, seed: int, settings: ProbeSettings | None = None,
    groups: np.ndarray | None = None, shown: Display,
) -> Sight:  # fmt: skip
    """Train it, and say now and then how long it will take."""
    settings = settings or ProbeSettings()
    shown.say("probe: learning features")
    between = prepare(real=real, fake=fake, settings=settings, seed=seed)
    began = said = time.monotonic()

    def on_record(done: int, n: int) -> None:
        nonlocal said
        now = time.monotonic()
        if done == n or now - said > SAY_EVERY:
            said = now
            left = duration((now - began) / done * (n - done))
            shown.say(f"probe: {done} of {n} records, {left} left")

    found = cross_fit(between, settings, seed, on_record)
    powers: dict[int, float | None] = {}
    if groups is not None and (several := tried(found, groups)):
        shown.say(f"probe: would it notice if one of {len(several)} groups were missing?")
        powers = {group: power(between, groups, group, settings, seed) for group in several}
    return Sight(found, powers)


def tried(found: Probed, groups: np.ndarray) -> list[int]:
    """The groups for which it is worth the time: large enough, the highest scored first."""
    if groups.max() == 0:
        return []
    score, sizes = found.centred()[found.window].mean(axis=0), np.bincount(groups)
    means = np.bincount(groups, weights=score) / np.maximum(sizes, 1)
    return [int(g) for g in np.argsort(-means) if sizes[g] >= MIN_GROUP][:N_TRIED]


def write(
    out: str | Path, sight: Sight, *, real: Dataset, fake: np.ndarray, score: Score,
    provenance: Mapping[str, Any], seed: int,
) -> Diagnosis:  # fmt: skip
    """What the probe found as the folder of a diagnosis."""
    found = sight.found
    ratio, records = density_ratio(found), found.centred()
    with diagnosed.making(out) as run:
        judged = calibration.write(run.calibration, **found.looks, about=judge(found))
        keep_record(run, found, records, real.fingerprint)
        windowed = records[found.window]
        made = diagnosed.from_records(windowed, len(windowed), score, diagnosed.grouping_of(real))
        highest = tail(found)
        made = diagnosed.with_warnings(made, doubts(judged, highest))
        keep_fakes(run, fake, ratio.fake, seed)
        for line in shares(real, ratio, sight.powers, seed):
            append_line(run.metrics, line)
        diagnosed.write(
            run, made, columns=real.columns, about=about(found, judged, ratio, highest),
            images=real.values, provenance=provenance, seed=seed,
        )  # fmt: skip
        line = missing(real, fake, seed)
        append_line(run.metrics, line)
        add_thumbnails(run, real.values, [line])
    return made


def missing(real: Dataset, fake: np.ndarray, seed: int) -> dict[str, Any]:
    """Missing modes, without the probe, as a line of metrics.jsonl."""
    rows, others = (numpy_generator(seed, "folders/missing").permutation(n)[:N_COMPARED]
                    for n in (real.n, len(fake)))  # fmt: skip
    found = missing_modes(real=small_pixels(real.values, rows), fake=small_pixels(fake, others),
                          seed=seed)  # fmt: skip
    return missing_line(found, rows) | {
        "protocol": f"missing{short(len(others))}", "n_fake": len(others), "seed": seed,
        "data": real.fingerprint, "extractor": "small pixels", "comparable_with_published": False,
        "arm": ARM, "drs": False,
    }  # fmt: skip


def judge(found: Probed) -> dict[str, Any]:
    return {"judge": "the probe: every real and every fake by a network that never saw it",
            "is_ldr": True, "arm": ARM, "step": int(found.steps[-1])}  # fmt: skip


def about(found: Probed, judged: Calibration, ratio: Ratio, highest: Tail) -> dict[str, Any]:
    """What diagnosis.json holds beside the scores."""
    steps = found.steps[found.window]
    return {
        "mode": "folders", "is_ldr": True, "centred_on": "the held-out fakes of each fold",
        "first_step": int(steps[0]), "last_step": int(steps[-1]), "n_fake": found.fake.shape[1],
        "probe": {"auc": judged.auc, "auc_standard_error": standard_error(judged),
                  "loss": found.loss, "decay": found.decay,
                  "n_missed": ratio.n_under(DROPPED), "tail": asdict(highest)},
    }  # fmt: skip


def doubts(judged: Calibration, highest: Tail) -> Iterator[str]:
    """Why the diagnosis may be off, in plain words."""
    sees_all = judged.auc - 0.5 >= SAYS_NOTHING * standard_error(judged)
    if not sees_all and highest.chance > CHANCE:
        yield (
            "The probe can hardly tell the real images from the fakes "
            f"(AUC {judged.auc:.3f}, where 0.5 is a guess): as far as it sees, nothing is "
            "missing, and the order of the scores is mostly chance."
        )
    for n, what in ((judged.n_heldout, "real"), (judged.n_fake, "fake")):
        if n < FEW:
            yield f"There are {n:,} {what} images: a probe learns little from under {FEW:,}."


def standard_error(judged: Calibration) -> float:
    """Of an AUC of 0.5 (Mann and Whitney)."""
    n, m = judged.n_heldout, judged.n_fake
    return float(np.sqrt((n + m + 1) / (12 * n * m)))


def keep_record(run: RunDir, found: Probed, records: np.ndarray, fingerprint: str) -> None:
    """All records of the training."""
    kept = LdrRecord(run.record, records.shape[1], mode="eval", loss="non_saturating", is_ldr=True,
                     fingerprint=fingerprint)  # fmt: skip
    for step, values in zip(found.steps, records):
        kept.write(int(step), values)


def keep_fakes(run: RunDir, fake: np.ndarray, ldr: np.ndarray, seed: int) -> None:
    """Some of the fakes at random, as small pictures, with their LDR."""
    chosen = diagnosed.pictured(len(fake), seed)
    keep_pictures(run, ARM, np.asarray(fake[chosen]))
    file = run.generated / f"{ARM}_ldr.npy"
    with replacing(file) as temporary, temporary.open("wb") as stream:
        np.save(stream, ldr[chosen].astype(np.float32))


def shares(
    data: Dataset, ratio: Ratio, powers: Mapping[int, float | None], seed: int
) -> Iterator[dict[str, Any]]:
    """The share among the fakes of each group whose absence was tried, as lines of metrics.jsonl.

    `probe_balanced_accuracy` is how much of that absence was noticed: where it is low, a share like
    that of the data means nothing.
    """
    if not powers:
        return
    values = share_intervals(ratio, data.groups, len(data.group_names), seed=seed)
    for group, name in enumerate(data.group_names):
        if group in powers:
            value, low, high = (float(of[group]) for of in values)
            yield {
                "metric": "group_share", "protocol": "shares_by_density_ratio", "group": name,
                "value": value, "low": low, "high": high, "n_real": data.n,
                "n_fake": None,  # none was counted
                "probe_balanced_accuracy": powers[group],
                "seed": seed, "data": data.fingerprint, "arm": ARM, "drs": False,
            }  # fmt: skip
