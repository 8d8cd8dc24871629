"""The verdict on a GAN: pure rules, each of which makes one claim out of what was measured.

A rule says nothing where the evidence is missing or too weak for its claim. The thresholds were
fixed on runs of seeds 0 to 9 and tried on seeds 100 to 119 (results/verdict.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from diagan.findings.calibration import GAP_LIMIT
from diagan.findings.evidence import (
    PROBE,
    Count,
    Estimate,
    Evidence,
    counts,
    has_evidence,
    is_weak,
    kind_counts,
    together,
)
from diagan.findings.words import is_are, listed, names, per_cent
from diagan.metrics import MIN_GROUP

DROPPED = 0.1  # generated less than this part as often as in the data: hardly ever
UNDER = 0.6  # less than this part: under-represented
COLLAPSED = 10.0  # two fakes are this much likelier near copies than two reals are
COLLAPSED_MASS = 0.5  # or groups with this share of the data are dropped
JUNK = 0.015  # of the samples at both ends of D's opinion
CHANCE = 1e-3  # that the highest scored are real by accident
D_WON = 0.99  # D's mean output on reals, and 1 less that on fakes
TOO_MANY = 1.5  # times what the data have

Kind = Literal[
    "collapsed", "dropped", "under_represented", "junk", "not_repaired", "improved", "repaired",
    "not_sure", "fine",
]  # fmt: skip
Confidence = Literal["sure", "likely", "unsure"]
SEVERITY: tuple[Kind, ...] = (
    "collapsed", "dropped", "under_represented", "junk", "fine", "not_repaired", "improved",
    "repaired", "not_sure",
)  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """A claim, the number behind it, and what to try."""

    kind: Kind
    claim: str
    advice: str = ""
    what: str = ""  # what the number is
    number: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    source: str = ""
    confidence: Confidence = "unsure"
    groups: tuple[str, ...] = ()


Rule = Callable[[Evidence], Finding | None]


def verdict(e: Evidence) -> list[Finding]:
    """Everything that can be said, the most severe first."""
    found = [finding for rule in RULES if (finding := rule(e)) is not None]
    return sorted(found, key=lambda finding: SEVERITY.index(finding.kind))


# --- what is generated too rarely ----------------------------------------------------------------


def dropped_counts(e: Evidence) -> list[Count]:
    return [c for c in counts(e, e.judged) if c.generated.high < DROPPED * c.expected]


def under_counts(e: Evidence) -> list[Count]:
    found = [c for c in counts(e, e.judged) if c.generated.high < UNDER * c.expected]
    return [c for c in found if c not in dropped_counts(e)]


def dropped(e: Evidence) -> Finding | None:
    found = dropped_counts(e)
    if not found:
        return None
    return about_groups(
        "dropped", found, DROPPED,
        f"{names(found)} {is_are(found)} hardly ever generated{by_whom(e)}",
        "" if repair(e) else "Train on with Dia-GAN's weights (`diagan run` does), or give D a "
        "gradient penalty (--penalty.r1): G then hears of what is far from all that it makes.",
    )  # fmt: skip


def under_represented(e: Evidence) -> Finding | None:
    found = under_counts(e)
    if not found:
        return None
    return about_groups(
        "under_represented", found, UNDER,
        f"{names(found)} {is_are(found)} generated more rarely{by_whom(e)} than the data "
        f"have {'it' if len(found) == 1 else 'them'}",
        "" if repair(e) else "Train on with Dia-GAN's weights (`diagan run` does); more samples "
        "of it help too.",
    )  # fmt: skip


def by_whom(e: Evidence) -> str:
    """Said where there is another to compare with."""
    return f" by the {e.judged}" if e.repaired not in (None, e.judged) else ""


def about_groups(
    kind: Kind, found: Sequence[Count], part: float, claim: str, advice: str
) -> Finding:
    share, expected = together(found), sum(c.expected for c in found)
    claim += f": {per_cent(share.value)} of what is generated, " + (
        f"{per_cent(sum(c.group.share for c in found))} of the data."
    )
    return measured(
        kind, claim, advice, "share of the generated", share, part * expected,
        groups=tuple(c.group.name for c in found),
    )  # fmt: skip


def missing_kinds(e: Evidence) -> Finding | None:
    """Without groups: a large kind of samples that is hardly ever generated."""
    found = [c for c in kind_counts(e) if c.generated.high < DROPPED * c.expected]
    if not found:
        return None
    share, of_data = together(found), sum(c.expected for c in found)
    return measured(
        "dropped",
        f"{kinds_of(found, per_cent(of_data))} {is_are(found)} hardly ever generated: "
        f"{per_cent(share.value)} of what is generated.",
        "Look at the highest scored samples for what it is; Dia-GAN's weights (`diagan run`) bring "
        "it back.",
        "share of the generated", share, DROPPED * of_data,
    )  # fmt: skip


def kinds_of(found: Sequence[Count], of_data: str) -> str:
    """Kinds have no names."""
    if len(found) == 1:
        return f"A kind of image that is {of_data} of the data"
    return f"{len(found)} kinds of images, together {of_data} of the data,"


def missed_samples(e: Evidence) -> Finding | None:
    """By the density ratio of single samples, where it was not read off what had learnt them."""
    m = e.missed
    if m is None or m.n is None or m.value * m.n < MIN_GROUP or dropped(e) or missing_kinds(e):
        return None
    return measured(
        "dropped",
        f"{per_cent(m.value)} of the data are hardly ever generated: less than {per_cent(DROPPED)} "
        "as often as they should be, by the probe's density ratio.",
        "Look at the highest scored samples and the clusters for what they have in common.",
        "share of the data", m, MIN_GROUP / m.n,
    )  # fmt: skip


# --- what else can be wrong ----------------------------------------------------------------------


def collapsed(e: Evidence) -> Finding | None:
    advice = (
        "Give D a gradient penalty (--penalty.r1) or a lower learning rate, pack images "
        "(--methods.packing 2), or go back to a checkpoint from before; weights cannot mend this."
    )
    r = e.repetition
    if r is not None and r.low > COLLAPSED:
        return measured(
            "collapsed",
            "The generator has collapsed: it repeats itself. Two of its samples are "
            f"{r.value:.0f} times as likely to be near copies of each other as two real ones.",
            advice, "near copies, generated over real", r, COLLAPSED,
        )  # fmt: skip
    lost = dropped_counts(e)
    mass = sum(c.group.share for c in lost)
    if len(e.groups) > 2 and mass > COLLAPSED_MASS:
        share = together(lost)
        return measured(
            "collapsed",
            f"The generator has collapsed: {len(lost)} of {len(e.groups)} groups, "
            f"{per_cent(mass)} of the data, are hardly ever generated.",
            advice, "share of these groups in the generated", share,
            DROPPED * sum(c.expected for c in lost),
            groups=tuple(c.group.name for c in lost),
        )  # fmt: skip
    return None


def junk(e: Evidence) -> Finding | None:
    """A smooth D gives junk the lowest LDR, one that knows it by heart the highest."""
    found = e.junk
    if found is None or found.n is None or not found.low > JUNK:
        return None
    return measured(
        "junk",
        f"{round(found.value * found.n):,} training samples look like junk rather than like a rare "
        "group: outliers, copies, or damaged.",
        "Look at them and take them out; weights would repeat those that score high.",
        "share of junk among the highest scores and the lowest LDRs", found, JUNK,
    )  # fmt: skip


# --- what Dia-GAN made of it ---------------------------------------------------------------------


def repair(e: Evidence) -> Finding | None:
    """Whether the groups that were missing are back in the arm that Dia-GAN ends with."""
    missing = {c.group.name: c for c in [*dropped_counts(e), *under_counts(e)]}
    after = {c.group.name: c for c in counts(e, e.repaired) if c.group.name in missing}
    if not missing or e.repaired == e.judged or after.keys() != missing.keys():
        return None
    before, now = together(list(missing.values())), together(list(after.values()))
    expected = sum(c.expected for c in after.values())
    kind: Kind = "repaired"
    how, advice = "brings back", "Draw from Dia-GAN (`diagan sample`)."
    if any(c.generated.high < UNDER * c.expected for c in after.values()):
        kind, how = "improved", "brings back a part of"
        advice = "Train phase 2 for longer, or raise the weights (--ratio, --exponent)."
    if not now.low > before.high:
        kind, how = "not_repaired", "does not bring back"
        advice = "Train phase 2 for longer, or raise the weights (--ratio, --exponent)."
    elif now.low > TOO_MANY * expected:
        advice = "It makes too many of them: use rejection, or lower the weights (--ratio)."
    claim = (
        f"Dia-GAN {how} {names(list(missing.values()))}: {per_cent(now.value)} of what it "
        f"generates, {per_cent(before.value)} without it."
    )
    return measured(kind, claim, advice, "share of the generated", now, UNDER * expected,
                    groups=tuple(missing))  # fmt: skip


# --- what cannot be said -------------------------------------------------------------------------


def undecided_kinds(e: Evidence) -> Finding | None:
    """As `undecided`, without groups."""
    found = [c for c in kind_counts(e)
             if c.ratio < DROPPED and c.generated.high >= DROPPED * c.expected]  # fmt: skip
    if not found or missed_samples(e):
        return None
    of_data = sum(c.expected for c in found)
    return measured(
        "not_sure",
        f"{kinds_of(found, per_cent(of_data))} may hardly ever be generated, which too few samples "
        "were looked at to tell.",
        "Look at the highest scored samples.",
        "share of the generated", together(found), DROPPED * of_data,
    )  # fmt: skip


def pure_tail(e: Evidence) -> Finding | None:
    """Something is missing that is too small for the other rules."""
    t = e.tail
    if t is None or t.n is None or e.tail_chance is None or e.tail_chance > CHANCE:
        return None
    if any(rule(e) for rule in (dropped, under_represented, missing_kinds, missed_samples)):
        return None
    return measured(
        "not_sure",
        f"Something small may be missing: of the {t.n:,} images that the probe finds the least "
        f"like fakes, {round(t.value * t.n):,} are real, by chance once in "
        f"{1 / max(e.tail_chance, 1e-9):,.0f} times.",
        "Look at the highest scored samples and the clusters for what they have in common.",
        "share of real images among them", t, 0.5,
    )  # fmt: skip


def small_groups(e: Evidence) -> Finding | None:
    small = [g for g in e.groups if g.n < MIN_GROUP]
    if not small:
        return None
    return Finding(
        "not_sure",
        f"No verdict on {listed([g.name for g in small])}: under {MIN_GROUP} samples.",
        "Join small groups, or collect more of them.",
        "groups", len(small), threshold=MIN_GROUP, source="diagnosis.json",
        groups=tuple(g.name for g in small),
    )  # fmt: skip


def weak_probe(e: Evidence) -> Finding | None:
    weak = [g for g in e.groups if is_weak(g)]
    if not weak:
        return None
    best = max(g.power or 0.0 for g in weak)
    whom = "groups" if len(weak) == len(e.groups) else listed([g.name for g in weak])
    return Finding(
        "not_sure",
        f"No verdict on {whom}: what counts them among the generated samples is right for at most "
        f"{per_cent(best)} of real ones when every group counts the same.",
        "Measure with better features (`diagan evaluate --features`).",
        "balanced accuracy of the probe", best, threshold=PROBE, source="metrics.jsonl",
        groups=() if whom == "groups" else tuple(g.name for g in weak),
    )  # fmt: skip


def undecided(e: Evidence) -> Finding | None:
    """Groups that look under-represented, but by too few generated samples."""
    found = [c for c in counts(e, e.judged)
             if c.ratio < UNDER and c.generated.high >= UNDER * c.expected]  # fmt: skip
    if not found:
        return None
    return about_groups(
        "not_sure", found, UNDER, f"{names(found)} may be generated too rarely, which too few "
        "samples were drawn to tell", "Draw more samples (`diagan evaluate RUN --n 50000`).",
    )  # fmt: skip


def no_ratio(e: Evidence) -> Finding | None:
    if e.is_ldr is not False:
        return None
    return Finding(
        "not_sure",
        "The scores rank samples and say no more: with this loss the output of D is no "
        "density ratio.",
        "Record the logistic head (--methods.logistic-head) to have one.",
        source="diagnosis.json",
    )  # fmt: skip


def one_record(e: Evidence) -> Finding | None:
    if e.n_records is None or e.n_records > 1:
        return None
    return Finding(
        "not_sure",
        "The scores come from one look of D at the samples: how it changed its mind is not known.",
        "Record while training (at least 20 records), or compare several runs.",
        "records", e.n_records, threshold=2, source="diagnosis.json",
    )  # fmt: skip


def d_has_won(e: Evidence) -> Finding | None:
    if e.d_real is None or e.d_fake is None or min(e.d_real, 1 - e.d_fake) < D_WON:
        return None
    return Finding(
        "not_sure",
        f"D tells all generated samples from real ones ({e.d_real:.3f} and {e.d_fake:.3f} where "
        "0.5 is a draw): the generator learns nothing from it, and its scores tell little.",
        "Give D a gradient penalty (--penalty.r1) or a lower learning rate (--optim.d-lr).",
        "D's output on fakes", e.d_fake, threshold=1 - D_WON, source="log.jsonl",
    )  # fmt: skip


def overfitted(e: Evidence) -> Finding | None:
    gap = e.ldr_gap
    if gap is None or not gap.low > GAP_LIMIT:
        return None
    return measured(
        "not_sure",
        f"D knows its training samples by heart: it gives them {gap.value:.2g} more than samples "
        "that it never saw, and the scores contain that.",
        "Give D a gradient penalty (--penalty.r1) or augmentation, or more data.",
        "mean LDR of training samples less that of held-out ones", gap, GAP_LIMIT,
    )  # fmt: skip


def not_measured(e: Evidence) -> Finding | None:
    if has_evidence(e) or any(rule(e) for rule in (weak_probe, missed_samples, pure_tail)):
        return None
    return Finding(
        "not_sure",
        "Too little was measured to say what the generator misses, or that it misses nothing.",
        "`diagan evaluate` counts the groups among generated samples.",
    )  # fmt: skip


# --- nothing wrong -------------------------------------------------------------------------------


def fine(e: Evidence) -> Finding | None:
    """Claimed only where something was measured that could have shown the contrary."""
    unsure = (d_has_won, undecided, undecided_kinds, pure_tail, weak_probe)
    if any(rule(e) for rule in (*unsure, *FAULTS)):
        return None
    found = counts(e, e.judged)
    if len(found) > 1:
        least = min(found, key=lambda c: c.ratio)
        return measured(
            "fine",
            f"No group is under-represented: even {least.group.name} makes up "
            f"{per_cent(least.generated.value)} of what is generated, and "
            f"{per_cent(least.group.share)} of the data.",
            "", "share of the generated", least.generated, UNDER * least.expected,
            groups=(least.group.name,),
        )  # fmt: skip
    if by_kind := kind_counts(e):
        least = min(by_kind, key=lambda c: c.ratio)
        return measured(
            "fine",
            "No large part of the data is missing; of small ones nothing is known without groups. "
            f"The least made of {len(by_kind)} kinds makes up "
            f"{per_cent(least.generated.value)} of what is generated, and "
            f"{per_cent(least.group.share)} of the data.",
            "Name the groups, where the data have any.",
            "share of the generated", least.generated, DROPPED * least.expected,
        )  # fmt: skip
    return None


FAULTS: tuple[Rule, ...] = (
    collapsed, dropped, under_represented, missing_kinds, missed_samples, junk,
)  # fmt: skip
RULES: tuple[Rule, ...] = (
    *FAULTS, repair, fine, not_measured, weak_probe, undecided, undecided_kinds,
    pure_tail, small_groups, d_has_won, no_ratio, one_record, overfitted,
)  # fmt: skip


# --- findings with a number ----------------------------------------------------------------------


def measured(
    kind: Kind, claim: str, advice: str, what: str, number: Estimate, threshold: float,
    groups: tuple[str, ...] = (),
) -> Finding:  # fmt: skip
    return Finding(kind, claim, advice, what, number.value, number.low, number.high, threshold,
                   number.source, confidence(number, threshold), groups)  # fmt: skip


def confidence(number: Estimate, threshold: float) -> Confidence:
    """Likely: the interval does not hold the threshold; sure: nor would one twice as wide."""
    reach = number.high - number.value if number.value < threshold else number.value - number.low
    margin = abs(number.value - threshold)
    return "sure" if margin > 2 * reach else "likely" if margin > reach else "unsure"
