"""Is a logit a log-density ratio? Judged on reals that D never saw, and on fakes.

If it is, sigmoid(logit) is the share of reals among reals and fakes of that logit, mixed half and
half; the fitted temperature is 1, and e^logit averages 1 over the fakes. Logits are float [n].
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diagan import ldr
from diagan.errors import UserError
from diagan.metrics.shares import wilson
from diagan.rundir import read_json, replacing, write_json

FORMAT = 1
REJECTION = "calibration_rejection.npz"  # of the D that rejects, beside calibration.npz
N_BINS = 10
MIN_SAMPLES = 20  # of each kind; fewer say next to nothing
MIN_SURE = 100  # fewer held-out reals: said
GAP_LIMIT = 0.25  # in LDR: densities of training samples overstated by 28 %
TEMPERATURE_LIMIT = 1.25
SEPARATED = 0.999  # AUC from which on a density ratio has no finite value to speak of
Z95 = 1.96
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bin:
    """Samples of nearly the same logit: what D says of them, and what they are."""

    said: float  # mean sigmoid(logit), 0 to 1
    real: float  # share of reals, 0 to 1, as if there were as many fakes as reals
    low: float  # its 95 % interval
    high: float
    n: int
    mass: float  # share of that half-and-half mixture which lies in it


@dataclass(frozen=True)
class Line:
    """The best logit that D's logit can be turned into: logit / temperature + offset."""

    temperature: float  # 1: right as it is; over 1: over-confident; infinite: says nothing
    low: float  # 95 % interval of the temperature
    high: float
    offset: float  # 0: right as it is; D's offset is common to all samples (FACTS 12)


@dataclass(frozen=True)
class Calibration:
    """How far a logit can be trusted; every warning is a plain sentence."""

    n_heldout: int
    n_fake: int
    auc: float  # 0 to 1: of held-out reals over fakes; 0.5: D cannot tell them apart
    line: Line
    error: float  # 0 to 1, expected calibration error: mean |said - real| over the bins
    mass: float  # mean of e^logit over the fakes; 1 for a log-density ratio
    bins: tuple[Bin, ...]
    gap: float | None  # mean logit of training reals less that of held-out ones; 0: none
    gap_low: float | None
    gap_high: float | None
    warnings: tuple[str, ...] = ()


def calibrate(
    *, heldout: ArrayLike, fake: ArrayLike, train: ArrayLike | None = None
) -> Calibration:
    """Judge logits of held-out reals and of fakes; with those of training reals, the gap too."""
    real, fakes = _checked(heldout, "held-out reals"), _checked(fake, "fakes")
    bins = reliability(real=real, fake=fakes)
    gap_low = gap = gap_high = None
    if train is not None:
        gap_low, gap, gap_high = train_gap(train=train, heldout=real)
    found = Calibration(
        n_heldout=len(real),
        n_fake=len(fakes),
        auc=ldr.auc(np.concatenate([real, fakes]), np.arange(len(real) + len(fakes)) < len(real)),
        line=fit_line(real=real, fake=fakes),
        error=sum(b.mass * abs(b.said - b.real) for b in bins),
        mass=float(np.exp(np.minimum(fakes, 700)).mean()),  # beyond, float64 ends
        bins=bins,
        gap=gap,
        gap_low=gap_low,
        gap_high=gap_high,
    )
    return replace(found, warnings=tuple(doubts(found)))


def fit_line(*, real: ArrayLike, fake: ArrayLike) -> Line:
    """Newton on the logistic loss of slope * logit + offset, reals and fakes counting alike.

    Targets are a little short of 1 and 0, as in Platt's scaling: where D separates the two, the
    loss would else have no minimum. The interval is the sandwich estimate, at 95 %.
    """
    x = np.concatenate([_checked(real, "reals"), _checked(fake, "fakes")])
    n_real, n_fake = len(np.ravel(real)), len(np.ravel(fake))
    target = np.repeat([(n_real + 1) / (n_real + 2), 1 / (n_fake + 2)], [n_real, n_fake])
    weight = np.repeat([0.5 / n_real, 0.5 / n_fake], [n_real, n_fake])
    design = np.stack([x, np.ones_like(x)], axis=1)  # [n, 2]
    ridge = 1e-9 * np.eye(2)  # logits that are all the same have no slope

    def loss(beta: Floats) -> float:
        z = design @ beta
        return float(weight @ (np.logaddexp(0, z) - target * z))

    beta = np.array([1.0, 0.0])
    for _ in range(100):
        p = _sigmoid(design @ beta)
        gradient = design.T @ (weight * (p - target))
        hessian = (design * (weight * p * (1 - p))[:, None]).T @ design + ridge
        step = np.linalg.solve(hessian, gradient)
        while loss(beta - step) > loss(beta) and np.abs(step).max() > 1e-12:
            step /= 2
        beta = beta - step
        if np.abs(step).max() < 1e-10:
            break
    pull = design * (weight * (_sigmoid(design @ beta) - target))[:, None]
    inverse = np.linalg.inv(hessian)
    deviation = float(np.sqrt((inverse @ (pull.T @ pull) @ inverse)[0, 0]))
    slope = float(beta[0])
    high, low = (_inverse(slope + sign * Z95 * deviation) for sign in (-1, 1))
    return Line(_inverse(slope), low, high, float(beta[1]))


def reliability(*, real: ArrayLike, fake: ArrayLike, n_bins: int = N_BINS) -> tuple[Bin, ...]:
    """Bins by logit, each as much of the mixture of reals and fakes, half and half; equal logits
    are never parted."""
    x = np.concatenate([_checked(real, "reals"), _checked(fake, "fakes")])
    n_real, n_fake = len(np.ravel(real)), len(np.ravel(fake))
    is_real = np.arange(len(x)) < n_real
    mass = np.where(is_real, 0.5 / n_real, 0.5 / n_fake)
    cuts = np.arange(1, n_bins) / n_bins
    inner = np.unique(np.quantile(x, cuts, weights=mass, method="inverted_cdf"))
    members = np.searchsorted(inner, x)

    def balanced(share: float) -> float:
        """The share of reals of a bin, were there as many fakes as reals in all."""
        return share * n_fake / (share * n_fake + (1 - share) * n_real)

    bins = []
    for number in np.unique(members):
        inside = members == number
        n, share = int(inside.sum()), float(is_real[inside].mean())
        said = float(np.average(_sigmoid(x[inside]), weights=mass[inside]))
        low, high = (balanced(end) for end in wilson(share, n))
        bins.append(Bin(said, balanced(share), low, high, n, float(mass[inside].sum())))
    return tuple(bins)


def train_gap(*, train: ArrayLike, heldout: ArrayLike) -> tuple[float, float, float]:
    """Mean logit of training reals less that of held-out ones: low, value, high (95 %, Welch)."""
    ours, theirs = _checked(train, "training reals"), _checked(heldout, "held-out reals")
    gap = float(ours.mean() - theirs.mean())
    half = Z95 * float(np.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs)))
    return gap - half, gap, gap + half


def effective_share(logits: ArrayLike) -> float:
    """Effective sample size of fakes weighted by e^logit, as a share of them: 1/n to 1.

    1: all weigh the same, nothing to correct; near 0: a few fakes would stand for all the data.
    """
    values = _checked(logits, "fakes", least=1)
    weights = np.exp(values - values.max())
    return float(weights.sum() ** 2 / (weights**2).sum() / len(values))


def doubts(found: Calibration) -> list[str]:
    """What is wrong, in plain words; empty if nothing is, or if nothing can be told."""
    said = []
    if found.gap is not None and found.gap_low is not None and found.gap_low > GAP_LIMIT:
        said.append(
            f"D puts the LDR of training samples {found.gap:.2g} higher than that of held-out ones "
            f"({np.exp(min(found.gap, 20)):,.2g} times the density): it knows part of the training "
            "data by heart, and high LDRs may tell of that instead of what G misses."
        )
    line = found.line
    if found.auc >= SEPARATED:
        said.append(
            "D tells held-out reals from fakes without a mistake: the density ratio has no finite "
            "value to compare with, and LDRs say no more than an order."
        )
    elif line.low > TEMPERATURE_LIMIT:
        said.append(
            f"D is over-confident: its logits are {_times(line)} too large to be log-density "
            "ratios. Ranks hold, sizes do not, and rejection keeps too few."
        )
    elif line.high < 1 / TEMPERATURE_LIMIT:
        said.append(
            f"D is too timid: its logits are {_times(line)} the size of log-density ratios. "
            "Ranks hold, sizes do not, and rejection corrects too little."
        )
    if found.n_heldout < MIN_SURE:
        said.append(
            f"There are only {found.n_heldout} held-out reals: calibration is a rough guess."
        )
    return said


def _times(line: Line) -> str:
    return f"{line.temperature:.2g} times" if np.isfinite(line.temperature) else "infinitely"


def _inverse(slope: float) -> float:
    return 1 / slope if slope > 0 else float("inf")


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))


def _checked(logits: ArrayLike, what: str, least: int = MIN_SAMPLES) -> Floats:
    values = np.asarray(logits, dtype=np.float64).ravel()
    if len(values) < least:
        raise UserError(f"there are {len(values)} {what}; calibration needs at least {least}")
    if not np.isfinite(values).all():
        raise UserError(f"logits of {what} are NaN or infinite: D has diverged there")
    return values


# --- the two files ------------------------------------------------------------------------------


def write(
    path: Path, *, heldout: ArrayLike, fake: ArrayLike, train: ArrayLike | None = None,
    about: Mapping[str, Any],
) -> Calibration:  # fmt: skip
    """The logits as `path` (.npz), and what they tell as .json beside it.

    `about` says who is judged: `judge` in words, and what else is known (`is_ldr`, `step`, `arm`).
    """
    found = calibrate(heldout=heldout, fake=fake, train=train)
    given = {"heldout": heldout, "fake": fake} | ({} if train is None else {"train": train})
    arrays = {name: np.asarray(values, np.float32).ravel() for name, values in given.items()}
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    write_json(path.with_suffix(".json"), {"format": FORMAT, **about, **_finite(asdict(found))})
    return found


def read(path: Path) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    """Logits by `heldout`, `fake` and, where they were kept, `train`; and the .json beside them."""
    about = read_json(path.with_suffix(".json"))
    if about.get("format") != FORMAT:
        raise UserError(f"{path} has format {about.get('format')}; this diagan reads {FORMAT}")
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}, about
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise UserError(f"{path} cannot be read: {error}; evaluate the run again") from None


def _finite(value: Any) -> Any:
    """JSON knows no infinity: null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
