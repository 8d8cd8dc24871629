"""Record + samples -> Diagnosis: a table with a row a sample, a summary by group, warnings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from diagan import ldr
from diagan.config import Score
from diagan.errors import UserError
from diagan.rundir import RunDir, read_json, replacing, write_json

FORMAT = 1


@dataclass(frozen=True)
class GroupSummary:
    """Means over a group; `weight_share` against `share` tells how much phase 2 favours it."""

    name: str
    n: int
    share: float
    ldrm: float
    ldrv: float
    score: float
    weight_share: float


@dataclass(frozen=True)
class Diagnosis:
    """Arrays over the dataset, and what they add up to. Higher scores: more under-represented."""

    ldrm: np.ndarray
    ldrv: np.ndarray
    score: np.ndarray
    weights: np.ndarray  # P_s, sums to 1
    n_records: int
    k: float
    settings: Score
    groups: tuple[GroupSummary, ...] = ()
    rare: str | None = None
    auc: Mapping[str, float] | None = None  # of each statistic for the rare group
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grouping:
    """Which group each sample belongs to, and which group is the rare one."""

    groups: np.ndarray  # int [N]
    names: Sequence[str]
    rare: int | None = None


def diagnose(
    records: Iterable[np.ndarray], settings: Score | None = None, grouping: Grouping | None = None
) -> Diagnosis:
    """Score and weigh every sample from records of its logit, one array [N] a recorded step."""
    settings, ends = settings or Score(), []

    def centred() -> Iterator[np.ndarray]:
        for record in records:
            ends.append((float(record.min()), float(record.max())))
            yield ldr.centre(record, settings.centre)

    m = ldr.moments(centred())
    found = from_moments(m.ldrm, m.ldrv, m.count, settings, grouping)
    return replace(found, warnings=(*no_logits(np.array(ends)), *found.warnings))


def no_logits(ends: np.ndarray) -> Iterator[str]:
    """Whether records may not be logits at all, by the lowest and the highest value of each."""
    if (ends[:, 0] == ends[:, 1]).all():
        yield "every record has the same value for all samples: it tells nothing of them"
    elif ends.min() >= 0 and ends.max() <= 1:
        yield (
            "all recorded values lie between 0 and 1: are they probabilities? Record the logits, "
            "before any sigmoid"
        )


def from_moments(
    ldrm: np.ndarray,
    ldrv: np.ndarray,
    n_records: int,
    settings: Score,
    grouping: Grouping | None = None,
) -> Diagnosis:
    """The same from LDRM and LDRV; where LDRV was refused (NaN), a sample has a middling weight."""
    known = ~np.isnan(ldrv)
    if known.mean() < 0.5:
        raise UserError(
            f"LDRV is refused for {np.mean(~known):.0%} of the samples, which were seen fewer than "
            f"{ldr.FREE_MIN_COUNT} times in the window; use a longer window or record in eval mode"
        )
    k = ldr.auto_k(ldrm[known], ldrv[known]) if settings.k is None else settings.k
    alone = {"ldrm": ldrm, "ldrv": ldrv}
    score = alone.get(settings.terms, ldr.discrepancy_score(ldrm, ldrv, k))
    clipped = np.empty_like(score)
    clipped[known] = ldr.clip_scores(
        score[known],
        floor=settings.floor,
        ratio=settings.ratio,
        rule=settings.clip,
        exponent=settings.exponent,
    )
    clipped[~known] = clipped[known].mean()
    weights = ldr.sampling_weights(clipped)
    warnings = ldr.weight_warnings(weights)
    if not known.all():
        warnings.append(f"{(~known).sum()} samples were seen too rarely for a variance")
    diagnosis = Diagnosis(
        ldrm, ldrv, score, weights, n_records, k, settings, warnings=tuple(warnings)
    )
    return diagnosis if grouping is None else _with_groups(diagnosis, grouping)


def _with_groups(found: Diagnosis, grouping: Grouping) -> Diagnosis:
    members = np.asarray(grouping.groups)
    if members.shape != found.ldrm.shape:
        raise UserError(
            f"the groups have shape {members.shape}, but there are {len(found.ldrm)} samples; "
            "give the group of each sample"
        )

    def summary(number: int, name: str) -> GroupSummary:
        inside = members == number
        return GroupSummary(
            name=name,
            n=int(inside.sum()),
            share=float(inside.mean()),
            ldrm=_mean(found.ldrm[inside]),
            ldrv=_mean(found.ldrv[inside]),
            score=_mean(found.score[inside]),
            weight_share=float(found.weights[inside].sum()),
        )

    groups = tuple(summary(i, name) for i, name in enumerate(grouping.names))
    changed: dict[str, Any] = {"groups": groups}
    if grouping.rare is not None:
        known = ~np.isnan(found.ldrv)
        is_rare = members[known] == grouping.rare
        if is_rare.any() and not is_rare.all():
            statistics = {"ldrm": found.ldrm, "ldrv": found.ldrv, "score": found.score}
            changed["auc"] = {name: ldr.auc(v[known], is_rare) for name, v in statistics.items()}
        changed["rare"] = grouping.names[grouping.rare]
    return replace(found, **changed)


def _mean(values: np.ndarray) -> float:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else 0.0


def write(
    run: RunDir, found: Diagnosis, columns: Mapping[str, Any], about: Mapping[str, Any]
) -> None:
    """samples.parquet and diagnosis.json; `columns` are what else is known of each sample."""
    table = pa.table(
        {
            "index": pa.array(np.arange(len(found.ldrm))),
            **columns,
            "ldrm": pa.array(found.ldrm, mask=np.isnan(found.ldrm)),
            "ldrv": pa.array(found.ldrv, mask=np.isnan(found.ldrv)),
            "score": pa.array(found.score, mask=np.isnan(found.score)),
            "weight": found.weights,
        }
    )
    with replacing(run.samples) as temporary:
        pq.write_table(table, temporary)
    write_json(run.diagnosis, {"format": FORMAT, **summary(found), **about})


def summary(found: Diagnosis) -> dict[str, Any]:
    """What diagnosis.json holds of it."""
    return {
        "n": len(found.ldrm),
        "n_records": found.n_records,
        **asdict(found.settings),
        "k": found.k,
        "k_is_auto": found.settings.k is None,
        "groups": [asdict(group) for group in found.groups],
        "rare": found.rare,
        "auc": dict(found.auc) if found.auc else None,
        "warnings": list(found.warnings),
    }


def read_score(run: RunDir) -> Score:
    """The settings by which a run was diagnosed last."""
    found = read_json(run.diagnosis)
    settings = {field.name: found[field.name] for field in fields(Score)}
    return Score(**settings | ({"k": None} if found["k_is_auto"] else {}))


def read_weights(run: RunDir) -> np.ndarray:
    """P_s of every training sample, from samples.parquet."""
    if not run.samples.exists():
        raise UserError(f"{run.path} has no samples.parquet: it was not diagnosed yet")
    weights: np.ndarray = pq.read_table(run.samples, columns=["weight"])["weight"].to_numpy()
    return weights
