"""What the GAN fails to make, how sure that is, and what to try: the rules of findings.verdict."""

from dataclasses import asdict
from typing import Any

import numpy as np

from diagan.findings import closeness
from diagan.findings.calibration import read as read_calibration
from diagan.findings.evidence import Estimate, Evidence, Group
from diagan.findings.junk import JUNK, find_junk
from diagan.findings.verdict import verdict as judge
from diagan.metrics.shares import wilson
from diagan.random import numpy_generator
from diagan.report.contents import ARMS, DATA_ARM, Contents
from diagan.report.sections.common import Section, thumbs

TAIL = 0.1  # of the log
N_LEAST = 100  # pictures of reals and fakes; fewer tell nothing
N_BINS = 20
N_JUNK = 12  # shown: a row of pictures
TITLES = {
    "collapsed": "Collapsed", "dropped": "Not generated", "under_represented": "Too rare",
    "junk": "Junk in the data", "fine": "Fine", "not_repaired": "Not repaired",
    "improved": "Repaired in part", "repaired": "Repaired", "not_sure": "Cannot be told",
}  # fmt: skip
TONES = {"collapsed": "bad", "dropped": "bad", "under_represented": "bad", "junk": "bad",
         "not_repaired": "bad", "fine": "good", "improved": "good", "repaired": "good"}  # fmt: skip
PLAIN = tuple(ARMS[name, False] for name in ("plain", "phase1"))
DIA = tuple(ARMS["weighted", drs] for drs in (True, False))


def verdict(c: Contents) -> Section:
    """The findings, the most severe first, and what cannot be said."""
    found = judge(evidence(c))
    doubts = [finding for finding in found if finding.kind == "not_sure"]
    claims = [finding for finding in found if finding.kind != "not_sure"]
    first, *others = claims or doubts[:1]
    is_junk = any(finding.kind == "junk" for finding in claims)
    shown = {
        "junk": thumbs(c, junk_rows(c)[0][:N_JUNK]) if is_junk else [],
        "first": first,
        "others": others,
        "doubts": doubts if claims else doubts[1:],
        "titles": TITLES,
        "tones": TONES,
    }
    sources = tuple(dict.fromkeys(name for f in found for name in f.source.split(" and ") if name))
    return Section(shown, [asdict(finding) for finding in found], sources=sources)


def evidence(c: Contents) -> Evidence:
    """What the files of a run tell."""
    diagnosis = c.diagnosis or {}
    known: dict[str, Any] = {"judged": judged_arm(c), "repaired": first(DIA, c.shares)}
    if diagnosis:
        known |= {"n_records": diagnosis.get("n_records"), "is_ldr": c.is_ldr}
    known |= shares(c) | log_tail(c) | junk(c) | calibration(c) | missed(c)
    return Evidence(**known | pictures(c, known["judged"]))


def judged_arm(c: Contents) -> str | None:
    """The GAN as it is without Dia-GAN, or whatever was measured."""
    there = [*c.shares, *c.fakes]
    others = [arm for arm in there if arm not in DIA and arm != DATA_ARM]
    return first(PLAIN, there) or first(others, there) or first(DIA, there)


def first(wanted: tuple[str, ...] | list[str], there: Any) -> str | None:
    return next((arm for arm in wanted if arm in there), None)


def shares(c: Contents) -> dict[str, Any]:
    """The groups, and what the probe counts of each among the generated."""
    groups = []
    for g in c.groups:
        lines = {arm: lines[g["name"]] for arm, lines in c.shares.items() if g["name"] in lines}
        powers = [line.get("probe_balanced_accuracy") for line in lines.values()]
        power = min((p for p in powers if p is not None), default=None)
        counted = {arm: estimate(line) for arm, line in lines.items()}
        groups.append(Group(g["name"], g["n"], g["share"], counted, power))
    return {"groups": groups}


def estimate(line: dict[str, Any]) -> Estimate:
    low, high = (line["value"] if line.get(k) is None else line[k] for k in ("low", "high"))
    return Estimate(line["value"], low, high, line.get("n_fake"), "metrics.jsonl")


def log_tail(c: Contents) -> dict[str, float]:
    """D's mean output over the last tenth of the log of the GAN without Dia-GAN."""
    lines = [line for line in c.log if "d_real" in line and line.get("stage") != "weighted"]
    tail = lines[-max(1, round(TAIL * len(lines))) :]
    return {key: float(np.mean([line[key] for line in tail]))
            for key in ("d_real", "d_fake") if tail}  # fmt: skip


def junk(c: Contents) -> dict[str, Estimate]:
    """What share of the samples at both ends is junk."""
    rows, n = junk_rows(c)
    return {"junk": counted(len(rows), n, "samples.parquet and thumbnails.npz")} if n else {}


def junk_rows(c: Contents) -> tuple[np.ndarray, int]:
    """Junk among the highest scored, by their flags, and the lowest LDRs; how many were looked at.

    The flags know the high scores alone; the low end is judged here, by the pictures at hand.
    """
    s = c.samples
    if s is None or s.flag is None:
        return np.zeros(0, dtype=np.int64), 0
    high = s.by_score[s.flag[s.by_score] != ""]
    found, n = high[np.isin(s.flag[high].astype(str), JUNK)], len(high)
    index, images = c.thumbnails
    if len(index):
        lowest = find_junk(-s.ldrm[index], images.transpose(0, 3, 1, 2))
        is_new = s.flag[index[lowest.index]] == ""  # a few may be at both ends
        low = index[lowest.index[is_new & np.isin(lowest.flag, JUNK)]]
        found, n = np.concatenate([found, low]), n + int(is_new.sum())
    return found, n


def calibration(c: Contents) -> dict[str, Estimate]:
    """How much D favours what it was trained on."""
    if not c.run.calibration.exists():
        return {}
    _, about = read_calibration(c.run.calibration)
    if about["gap"] is None:
        return {}
    gap = Estimate(about["gap"], about["gap_low"], about["gap_high"], about["n_heldout"],
                   c.run.calibration.with_suffix(".json").name)  # fmt: skip
    return {"ldr_gap": gap}


def missed(c: Contents) -> dict[str, Any]:
    """Reals of a low density among the fakes, as scored by a probe that never saw them."""
    probe = (c.diagnosis or {}).get("probe", {})
    if c.samples is None or "n_missed" not in probe:
        return {}
    found: dict[str, Any] = {
        "missed": counted(probe["n_missed"], len(c.samples.ldrm), "diagnosis.json")
    }
    if tail := probe.get("tail"):
        found |= {"tail": counted(tail["real"], tail["n"], "diagnosis.json"),
                  "tail_chance": tail["chance"]}  # fmt: skip
    return found


def counted(n_yes: int, n: int, source: str) -> Estimate:
    return Estimate(n_yes / n, *wilson(n_yes / n, n), n, source)


def pictures(c: Contents, arm: str | None) -> dict[str, Any]:
    """Do the fakes repeat themselves, and are there large kinds of reals without fakes?"""
    s, fakes = c.samples, c.fakes.get(arm or "")
    index, images = c.thumbnails
    if s is None or fakes is None or len(index) == 0 or images.shape[1:] != fakes.shape[1:]:
        return {}
    rows = representative(s.score, index)
    n = min(len(rows), len(fakes))
    if n < N_LEAST:
        return {}
    real, fake = closeness.image_features(images[rows]), closeness.image_features(fakes)
    source = f"thumbnails.npz and generated/{c.generated('.npz')[str(arm)].name}"
    repeats = closeness.repetition(real=real[:n], fake=fake[:n])
    n_real, n_fake = closeness.kinds(real=real, fake=fake)
    kinds = [
        Group(f"kind {i + 1}", int(a), float(a / len(real)),
              {str(arm): counted(int(b), len(fake), source)})
        for i, (a, b) in enumerate(zip(n_real, n_fake))
    ]  # fmt: skip
    return {"repetition": Estimate(*repeats, n, source), "kinds": kinds}


def representative(score: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Places in `index` of samples that are like a random draw from all, in random order.

    High scores are over-represented among thumbnails: equally many are taken of every twentieth
    of the scores.
    """
    edges = np.nanquantile(score, np.linspace(0, 1, N_BINS + 1)[1:-1])
    bins = np.searchsorted(edges, score[index])
    order = numpy_generator(0, "verdict").permutation(np.flatnonzero(np.isfinite(score[index])))
    members = [order[bins[order] == number] for number in range(N_BINS)]
    n = min(len(m) for m in members)
    return numpy_generator(1, "verdict").permutation(np.concatenate([m[:n] for m in members]))
