"""What was measured of a GAN, and its groups as they are counted among what it generates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

from diagan.metrics import MIN_GROUP
from diagan.metrics.shares import wilson

PROBE = 0.7  # of what counts a group, under which its share says too little


@dataclass(frozen=True)
class Estimate:
    """A measured number with its 95 % interval, how many draws it is out of, and its file."""

    value: float
    low: float
    high: float
    n: int | None = None
    source: str = ""


@dataclass(frozen=True)
class Group:
    """A group of the data, and its measured share of what each arm generates."""

    name: str
    n: int
    share: float
    generated: Mapping[str, Estimate] = field(default_factory=dict)
    # How well it is counted, 0 to 1: the balanced accuracy of a probe, or how much of the group's
    # absence one would notice. None: not known.
    power: float | None = None


@dataclass(frozen=True)
class Evidence:
    """What is known of a run; whatever is not known is None or empty."""

    groups: Sequence[Group] = ()
    judged: str | None = None  # the arm that the verdict is about: without Dia-GAN
    repaired: str | None = None  # the arm that Dia-GAN ends with
    n_records: int | None = None
    is_ldr: bool | None = None  # None: there are no scores
    d_real: float | None = None  # D's mean output on reals at the end of the log
    d_fake: float | None = None
    repetition: Estimate | None = None  # closeness.py
    kinds: Sequence[Group] = ()  # where groups are not known: parts of the data, found by k-means
    # Share of the reals that a probe, which never saw them, finds made less than DROPPED as often.
    missed: Estimate | None = None
    tail: Estimate | None = None  # share of reals in the highest scored part of reals and fakes
    tail_chance: float | None = None  # how likely so many were if nothing was missing
    junk: Estimate | None = None  # share of junk among the samples at both ends of D's opinion
    ldr_gap: Estimate | None = None  # mean LDR of training reals less that of held-out ones


@dataclass(frozen=True)
class Count:
    """A group as the probe counts it among the generated, and as it would in the data."""

    group: Group
    generated: Estimate
    expected: float  # what the probe would count if G made the group as often as the data have it

    @property
    def ratio(self) -> float:
        return self.generated.value / self.expected


def counts(e: Evidence, arm: str | None) -> list[Count]:
    return counted(e.groups, arm)


def counted(groups: Sequence[Group], arm: str | None) -> list[Count]:
    """The groups that can be judged: enough samples, a probe that knows them, a measured share.

    A probe that misses some of a group would miss them among the reals too, so that much less is
    expected. The intervals hold for all groups at once (Bonferroni).
    """
    known = [g for g in groups if g.n >= MIN_GROUP and arm in g.generated and not is_weak(g)]
    z = NormalDist().inv_cdf(1 - 0.025 / max(len(known), 1))
    return [Count(g, widened(g.generated[str(arm)], z),
                  g.share if g.power is None else g.power * g.share) for g in known]  # fmt: skip


def is_weak(group: Group) -> bool:
    return group.power is not None and group.power < PROBE


def widened(share: Estimate, z: float) -> Estimate:
    if share.n is None:
        return share
    return Estimate(share.value, *wilson(share.value, share.n, z), share.n, share.source)


def kind_counts(e: Evidence) -> list[Count]:
    return counted(e.kinds, e.judged) if len(counts(e, e.judged)) < 2 else []


def has_evidence(e: Evidence) -> bool:
    """Whether something was measured that could show whether anything is missing."""
    return len(counts(e, e.judged)) > 1 or bool(kind_counts(e))


def together(found: Sequence[Count]) -> Estimate:
    """The share of several groups together."""
    first = found[0].generated
    value = sum(c.generated.value for c in found)
    if first.n is None:
        low, high = (sum(getattr(c.generated, end) for c in found) for end in ("low", "high"))
        return Estimate(value, low, high, None, first.source)
    return Estimate(value, *wilson(value, first.n), first.n, first.source)
