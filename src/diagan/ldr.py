"""From records of the log-density ratio to sampling weights: Eq. 2, Eq. 7 and P_s of the paper.

A record is the discriminator's logit on every training sample at one step. Arrays are over the
dataset, [N], and indexed by dataset index.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diagan.errors import UserError

Floats = NDArray[np.float64]

FREE_MIN_COUNT = 4  # below this many logits a variance says next to nothing


@dataclass(frozen=True)
class Moments:
    """Mean and variance over time of each sample's log-density ratio (Eq. 2)."""

    count: int  # records read
    ldrm: Floats  # [N] any real number; higher: the generator puts too little density here
    ldrv: Floats  # [N] zero or more; higher: less settled, typical of minor groups


def centre(record: ArrayLike, how: Literal["none", "mean", "median"]) -> Floats:
    """The record less its own mean or median: D's offset drifts, and is common to all samples."""
    values = np.array(record, dtype=np.float64)
    if how == "none":
        return values
    if how in ("mean", "median"):
        return values - (values.mean() if how == "mean" else np.median(values))
    raise UserError(f"centre {how!r}: expected none, mean or median")


def moments(records: Iterable[ArrayLike]) -> Moments:
    """LDRM and LDRV of each sample over the records, which are read one at a time.

    Welford's update in float64; the variance has ddof 1, as in Eq. 2.
    """
    count = 0
    mean = m2 = np.zeros(0)
    for record in records:
        values = np.asarray(record, dtype=np.float64)
        if count == 0:
            mean, m2 = np.zeros(values.shape), np.zeros(values.shape)
        _check_record(values, mean, position=count)
        count += 1
        delta = values - mean
        mean += delta / count
        m2 += delta * (values - mean)
    if count < 2:
        raise UserError(
            f"there are {count} records; a variance needs at least 2: record more often"
        )
    return Moments(count=count, ldrm=mean, ldrv=m2 / (count - 1))  # Eq. 2


def _check_record(values: Floats, mean: Floats, position: int) -> None:
    where = f"record {position} (counted from 0)"
    if values.shape != mean.shape:
        raise UserError(
            f"{where} has shape {values.shape}, those before it {mean.shape}; "
            "all records must be of the same samples"
        )
    n_bad = int(np.count_nonzero(~np.isfinite(values)))
    if n_bad:
        raise UserError(
            f"{where} holds {n_bad} values that are NaN or infinite; "
            "the discriminator has diverged there: use the records before it"
        )


def merge_batch(
    count: NDArray[np.int32],
    mean: NDArray[np.float32],
    m2: NDArray[np.float32],
    indices: NDArray[np.int64],
    logits: NDArray[np.float32],
) -> None:
    """Add a training batch's logits to the running moments [N] of its samples, in place.

    An index may occur several times: the batch is grouped by index, and each group merged into
    what is there (Chan et al.), which equals Welford's update over the sequence up to rounding.
    """
    if not np.isfinite(logits).all():
        raise UserError("the discriminator gave NaN or infinite logits: it has diverged")
    found, inverse = np.unique(indices, return_inverse=True)  # [U], [B]
    values = logits.astype(np.float64)
    batch_count = np.bincount(inverse)
    batch_mean = np.bincount(inverse, weights=values) / batch_count
    batch_m2 = np.bincount(inverse, weights=(values - batch_mean[inverse]) ** 2)
    total = count[found] + batch_count
    delta = batch_mean - mean[found]
    mean[found] += delta * batch_count / total
    m2[found] += batch_m2 + delta**2 * count[found] * batch_count / total
    count[found] = total


def free_moments(
    count: NDArray[np.int32], mean: NDArray[np.float32], m2: NDArray[np.float32]
) -> tuple[Floats, Floats]:
    """LDRM and LDRV (Eq. 2) from the running moments of the training logits.

    LDRM is NaN for a sample that was never seen, LDRV for one seen fewer than 4 times.
    """
    ldrm = np.where(count > 0, mean.astype(np.float64), np.nan)
    ldrv = m2.astype(np.float64) / np.maximum(count - 1, 1)
    return ldrm, np.where(count >= FREE_MIN_COUNT, ldrv, np.nan)


def discrepancy_score(ldrm: ArrayLike, ldrv: ArrayLike, k: float) -> Floats:
    """s = LDRM + k sqrt(LDRV): any real number, higher is more under-represented."""
    return np.asarray(ldrm, dtype=np.float64) + k * np.sqrt(np.asarray(ldrv, np.float64))  # Eq. 7


def auto_k(ldrm: ArrayLike, ldrv: ArrayLike) -> float:
    """sd(LDRM) / sd(sqrt(LDRV)), the k at which both terms of the score spread alike.

    Zero or more; zero if sqrt(LDRV) is the same for all samples. Samples with a NaN are left out.
    """
    mean = np.asarray(ldrm, dtype=np.float64)
    root = np.sqrt(np.asarray(ldrv, dtype=np.float64))
    known = np.isfinite(mean) & np.isfinite(root)
    mean, root = mean[known], root[known]
    if len(root) == 0 or np.ptp(root) == 0:  # ptp: the sd of equal numbers need not be 0 exactly
        return 0.0
    return float(mean.std() / root.std())


def clip_scores(
    scores: ArrayLike,
    *,
    floor: float = 0.01,
    ratio: float = 50.0,
    rule: Literal["cap", "floor"] = "cap",
    exponent: float = 1.0,
) -> Floats:
    """Positive scores whose maximum is at most `ratio` times their minimum; order is kept.

    Floor at `floor`; raise to `exponent`; then the rule. cap (the paper's): nothing over ratio x
    the minimum, which is 0.5 as soon as one score is at most 0.01. floor: nothing under the
    maximum / ratio.
    """
    if floor <= 0 or ratio < 1:
        raise UserError(f"floor {floor}, ratio {ratio}: expected over 0, and at least 1")
    raw = np.asarray(scores, dtype=np.float64)
    n_bad = int(np.count_nonzero(~np.isfinite(raw)))
    if n_bad:
        raise UserError(f"{n_bad} of {raw.size} scores are NaN or infinite: leave them out")
    if raw.size == 0:
        raise UserError("there are no scores to clip; give one for each sample")
    values: Floats = np.maximum(raw, floor) ** exponent  # min_clip
    if rule == "cap":
        return np.minimum(values, ratio * float(values.min()))  # max_clip
    if rule == "floor":
        return np.maximum(values, float(values.max()) / ratio)
    raise UserError(f"clip rule {rule!r}: expected cap or floor")


def sampling_weights(clipped: ArrayLike) -> Floats:
    """P_s = s' / sum(s'): in [0, 1], sums to 1; higher is drawn more often."""
    values = np.asarray(clipped, dtype=np.float64)
    total = float(values.sum())
    if not np.isfinite(total) or total <= 0 or values.min() < 0:
        raise UserError(
            f"clipped scores with minimum {values.min() if values.size else None} and sum {total} "
            "make no sampling weights: clip the scores to finite, positive numbers first"
        )
    return values / total  # P_s, Section 4.1


def weight_warnings(weights: ArrayLike) -> list[str]:
    """What is wrong with the weights, in plain words; empty if nothing is.

    Told are weights that hardly differ from uniform ones, and clips at which over half of the
    samples sit, so that the weights do not tell these apart.
    """
    p = sampling_weights(weights)
    warnings = []
    distance = 0.5 * float(np.abs(p - 1 / len(p)).sum())  # total variation, 0 to 1
    if distance < 0.03:
        warnings.append(
            f"The weights are nearly uniform: they move {distance:.1%} of the draws to other "
            "samples, and training with them will hardly differ from training without."
        )
    if p.max() - p.min() <= 1e-9 * p.max():
        return warnings
    at_most, at_least = (p >= p.max() * (1 - 1e-9)).mean(), (p <= p.min() * (1 + 1e-9)).mean()
    if at_most > 0.5:
        warnings.append(
            f"{at_most:.0%} of the samples have the maximum weight: the scores are clipped there, "
            "and the weights do not tell these samples apart."
        )
    if at_least > 0.5:
        warnings.append(
            f"{at_least:.0%} of the samples share the lowest weight; only the other "
            f"{1 - at_least:.0%} are drawn more often, up to {p.max() / p.min():.0f} times."
        )
    return warnings


def auc(scores: ArrayLike, positive: ArrayLike) -> float:
    """Probability that a random positive scores above a random negative, ties counting half.

    0 to 1; 1: every positive is above every negative; 0.5: the score says nothing.
    """
    values, is_positive = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    n_positive, n_negative = int(is_positive.sum()), int((~is_positive).sum())
    if n_positive == 0 or n_negative == 0 or np.isnan(values).any():
        raise UserError("an AUC needs a positive and a negative at least, and no score that is NaN")
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # from 1; equal scores share the mean
    above = ranks[is_positive].sum() - n_positive * (n_positive + 1) / 2  # Mann-Whitney U
    return float(above / (n_positive * n_negative))
