"""A discriminator trained between two sets of images, where there is none at hand.

Features are learnt from the images without saying of which set they are (patches.py), and a
logistic layer between the sets by stochastic gradient descent. It is cross-fitted in two folds:
every image is scored by a layer that never saw it, nor a copy of it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from diagan.errors import UserError
from diagan.features.patches import PatchFeatures, learn_features
from diagan.findings.calibration import Line, fit_line
from diagan.fitting import Images, check_images
from diagan.foreign.copies import families
from diagan.random import derive_seed, numpy_generator
from diagan.sampling import UniformStream

N_MIN = 20  # images of each set: ten to learn from
N_TRAIN_SCORED = 500  # training reals a fold, for the gap between training and held-out LDR
# Shrinkage of the weights at each step, that is weight decay; one layer each, the best is taken.
DECAYS = tuple(10 ** (-i / 2) for i in range(3, 11))  # 0.03 to 0.00001
MIN_STEPS = 500  # few images are shown more often; against learning them by heart there is decay
CHUNK = 2_000  # images whose features are made at once
OnRecord = Callable[[int, int], None]  # records done, of how many


@dataclass(frozen=True)
class ProbeSettings:
    """How the probe is trained; as measured in results/folders.md."""

    n_filters: int = 160  # at each level of the pyramid
    epochs: float = 10.0
    batch_size: int = 128  # half real, half fake
    lr: float = 2.0  # over the mean squared length of the features: the same for any of them
    n_records: int = 20
    window: int = 10  # records, the last ones, from which scores are made


@dataclass(frozen=True, eq=False)
class Probed:
    """What two layers say of the half of each set that they never saw: raw logits."""

    steps: NDArray[np.int64]  # [T], training steps of the records
    real: NDArray[np.float32]  # [T, N]
    fake: NDArray[np.float32]  # [T, M]
    real_fold: NDArray[np.int64]  # [N], 0 or 1
    fake_fold: NDArray[np.int64]  # [M]
    train_real: NDArray[np.float32]  # [T, S], of some reals by the layer that learnt from them
    window: slice  # records from which scores are made
    decay: float

    def centred(self) -> NDArray[np.float32]:
        """Records [T, N], each less the mean of the held-out fakes of its fold.

        So the folds can be compared; 0 is what the probe says of a typical fake.
        """
        found = self.real.copy()
        for fold in (0, 1):
            typical = self.fake[:, self.fake_fold == fold].mean(axis=1, keepdims=True)
            found[:, self.real_fold == fold] -= typical
        return found

    @property
    def looks(self) -> dict[str, NDArray[np.float64]]:
        """Mean logit over the window of `heldout` reals [N], `fake` [M] and `train` reals [S]."""
        parts = {"heldout": self.real, "fake": self.fake, "train": self.train_real}
        return {name: part[self.window].mean(axis=0, dtype=np.float64)
                for name, part in parts.items()}  # fmt: skip

    @property
    def loss(self) -> float:
        """Held-out logistic loss: 0 or more; ln 2 = 0.693 or more says that nothing was learnt."""
        return logistic_loss(real=self.looks["heldout"], fake=self.looks["fake"])


@dataclass(frozen=True, eq=False)
class Ratio:
    """Calibrated log-density ratios, real over fake, of images that the probe never saw."""

    real: NDArray[np.float64]  # [N]
    fake: NDArray[np.float64]  # [M]; e^fake averages 1 in each fold
    line: Line

    def n_under(self, part: float) -> int:
        """How many of the reals are made less than this part as often as they should be."""
        return int(np.sum(self.real > -np.log(part)))


def density_ratio(found: Probed) -> Ratio:
    """Mean logits over the window by the temperature that fits them, then normalised in each fold.

    Where the probe learnt nothing, or the contrary of what is true, all ratios are 1.
    """
    looks = found.looks
    line = fit_line(real=looks["heldout"], fake=looks["fake"])
    real, fake = looks["heldout"] / line.temperature, looks["fake"] / line.temperature
    for fold in (0, 1):
        own = found.fake_fold == fold
        mass = np.logaddexp.reduce(fake[own]) - np.log(own.sum())  # log E_fake[p / q], 0 if right
        fake[own] -= mass
        real[found.real_fold == fold] -= mass
    return Ratio(real, fake, line)


@dataclass(frozen=True)
class Tail:
    """The highest logits of reals and fakes together: of `n`, so many are `real`."""

    n: int
    real: int
    chance: float  # how likely so many were if nothing was missing, 0 to 1: for all tails tried


def tail(found: Probed) -> Tail:
    """The tail that holds the most reals for its size, of 10, 20, 40 and so on to a tenth.

    A few per cent that are missing hardly move the AUC; they fill the tail. No image was learnt
    from by the layer that scores it, so without a difference any order is as likely.
    """
    logits, folds = found.looks, (found.real_fold, found.fake_fold)
    typical = [logits["fake"][found.fake_fold == fold].mean() for fold in (0, 1)]
    real, fake = (logits[name] - np.take(typical, fold)
                  for name, fold in zip(("heldout", "fake"), folds))  # fmt: skip
    order = np.argsort(-np.concatenate([fake, real]), kind="stable")  # of equals the fake first
    n_real = np.cumsum(order >= len(fake))
    sizes = [10 * 2**i for i in range(30) if 10 * 2**i <= len(order) // 10] or [10]
    share = len(real) / len(order)
    tails = [Tail(n, int(n_real[n - 1]), at_least(int(n_real[n - 1]), n, share)) for n in sizes]
    best = min(tails, key=lambda t: t.chance)
    return replace(best, chance=min(1.0, best.chance * len(tails)))


def at_least(k: int, n: int, share: float) -> float:
    """How likely k or more of n draws are hits, each with a chance of `share`."""
    log_p, log_q = math.log(share), math.log1p(-share)
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_p
            + (n - i) * log_q for i in range(k, n + 1)]  # fmt: skip
    return float(np.exp(np.logaddexp.reduce(logs)))


def generated_shares(
    ldr: NDArray[np.float64], groups: NDArray[np.int64], n_groups: int
) -> NDArray[np.float64]:
    """The share of each group among the fakes [G], from the LDR of reals: no fake is classified.

    q(group) = E_p[1_group q / p], the mean of e^-LDR over the reals of the group; self-normalised.
    """
    weights = np.exp(-(ldr - ldr.min()))
    found = np.bincount(groups, weights=weights, minlength=n_groups) / weights.sum()
    return np.asarray(found, dtype=np.float64)


def share_intervals(
    ratio: Ratio, groups: NDArray[np.int64], n_groups: int, *, seed: int, n: int = 400
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The generated share of each group and its 95 % interval, [G] each.

    The spread of resampled reals, and that of counting a share among so many fakes, added up. What
    the probe did not learn is not in it: shares are then too close to those of the data.
    """
    values = generated_shares(ratio.real, groups, n_groups)
    rng, n_real = numpy_generator(seed, "probe/shares"), len(groups)
    drawn = [rng.integers(n_real, size=n_real) for _ in range(n)]
    spread = np.std([generated_shares(ratio.real[i], groups[i], n_groups) for i in drawn], axis=0)
    # As if one more had been counted: a share of 0 is not known for sure.
    smoothed = (values * len(ratio.fake) + 1) / (len(ratio.fake) + 2)
    counted = smoothed * (1 - smoothed) / len(ratio.fake)
    half = 1.96 * np.sqrt(spread**2 + counted)
    return values, np.clip(values - half, 0, 1), np.clip(values + half, 0, 1)


def logistic_loss(*, real: NDArray[np.float64], fake: NDArray[np.float64]) -> float:
    """Of logits [N] and [M], both sets counting alike."""
    return float(np.logaddexp(0, -real).mean() + np.logaddexp(0, fake).mean()) / 2


# --- training ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prepared:
    """Two sets as the probe sees them, reals first."""

    x: Tensor  # features [N + M, F]
    real_fold: NDArray[np.int64]  # [N], 0 or 1
    fake_fold: NDArray[np.int64]  # [M]


def prepare(*, real: Images, fake: Images, settings: ProbeSettings, seed: int) -> Prepared:
    """Features, and folds that copies share, of uint8 images [N, C, H, W] and [M, C, H, W]."""
    check(real=real, fake=fake)
    folds = split(real=real, fake=fake, seed=seed)
    features = learn_features(real, fake, n_filters=settings.n_filters, seed=seed)
    return Prepared(standardised(features, real, fake), *folds)


def cross_fit(
    between: Prepared, settings: ProbeSettings, seed: int, on_record: OnRecord | None = None
) -> Probed:
    """Train on either half of both sets, and record what is said of the other half.

    Of several weight decays that is kept whose held-out loss is the lowest, over both folds
    together.
    """
    x, n_real = between.x, len(between.real_fold)
    folds = np.concatenate([between.real_fold, between.fake_fold])
    steps = record_steps(settings, n_learnt=len(x) // 2)
    logits = np.empty((len(steps), len(DECAYS), len(x)), np.float32)
    again = []
    for fold in (0, 1):
        learnt, other = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        seen = learnt[learnt < n_real][:: max(1, n_real // 2 // N_TRAIN_SCORED)]
        layer = Layer(x, learnt, n_real, settings, derive_seed(seed, "probe", fold))
        kept = np.empty((len(steps), len(DECAYS), len(seen)), np.float32)
        for t, step in enumerate(steps.tolist()):
            layer.go_on(step)
            logits[t][:, other], kept[t] = layer.score(other), layer.score(seen)
            if on_record:
                on_record(fold * len(steps) + t + 1, 2 * len(steps))
        again.append(kept)
    window = slice(max(0, len(steps) - settings.window), len(steps))
    means = logits[window].mean(axis=0, dtype=np.float64)  # [decays, N + M]
    losses = [logistic_loss(real=of[:n_real], fake=of[n_real:]) for of in means]
    best = int(np.argmin(losses))
    ours, theirs = logits[:, best, :n_real], logits[:, best, n_real:]
    return Probed(steps, ours, theirs, between.real_fold, between.fake_fold,
                  np.concatenate(again, axis=2)[:, best], window, DECAYS[best])  # fmt: skip


def power(
    between: Prepared, groups: NDArray[np.int64], group: int, settings: ProbeSettings, seed: int
) -> float | None:
    """How much of a missing group the probe would notice, 0 to 1, tried on the reals themselves.

    One half of them plays the real images, the other the fakes, without the group; found is by how
    much its estimated share then falls. None where too few are left. It errs on the low side: the
    probe learns from half as many images here.
    """
    order = numpy_generator(seed, "probe/power").permutation(len(groups))
    ours, theirs = np.array_split(order, 2)
    theirs = theirs[groups[theirs] != group]
    folds = between.real_fold[ours], between.real_fold[theirs]
    share = float(np.mean(groups[ours] == group))
    if share == 0 or min(np.bincount(fold, minlength=2).min() for fold in folds) < N_MIN // 2:
        return None
    rows = np.concatenate([ours, theirs])
    found = cross_fit(Prepared(between.x[rows], *folds), settings, seed)
    n_groups = int(groups.max()) + 1
    estimate = generated_shares(density_ratio(found).real, groups[ours], n_groups)[group]
    return float(np.clip(1 - estimate / share, 0, 1))


def standardised(features: PatchFeatures, *sets: Images) -> Tensor:
    """Features of all images in a row, each of mean 0 and deviation 1: float16 [N + M, F].

    Half the memory of float32: 5 kB an image of 32 pixels.
    """
    parts = [images[i : i + CHUNK] for images in sets for i in range(0, len(images), CHUNK)]
    raw = torch.cat([features(part).half() for part in parts])
    chunks = [raw[i : i + CHUNK] for i in range(0, len(raw), CHUNK)]
    mean, deviation = raw.mean(dim=0, dtype=torch.float32), torch.zeros(raw.shape[1])
    for rows in chunks:
        deviation += ((rows.float() - mean) ** 2).sum(dim=0)
    deviation = (deviation / len(raw)).sqrt() + 1e-3  # a feature that never changes stays 0
    for rows in chunks:
        rows.copy_((rows.float() - mean) / deviation)
    return raw


class Layer:
    """A logistic layer for each weight decay, trained on the same batches from zero on."""

    def __init__(
        self, x: Tensor, learnt: NDArray[np.int64], n_real: int, s: ProbeSettings, seed: int
    ) -> None:
        self.x, self.half, self.step = x, s.batch_size // 2, 0
        self.sets = learnt[learnt < n_real], learnt[learnt >= n_real]
        self.streams = [UniformStream(len(part), seed, f"probe/{name}")
                        for name, part in zip(("real", "fake"), self.sets)]  # fmt: skip
        some = x[learnt[:: max(1, len(learnt) // CHUNK)]].float()
        self.rate = s.lr / float((some**2).sum(dim=1).mean())
        self.weights = torch.zeros(x.shape[1], len(DECAYS))
        self.bias = torch.zeros(len(DECAYS))
        self.keep = 1 - torch.tensor(DECAYS)

    def go_on(self, until: int) -> None:
        """Stochastic gradient descent up to a step, on batches half real and half fake."""
        target = (torch.arange(2 * self.half) < self.half).float()[:, None]
        for step in range(self.step, until):
            drawn = [part[stream.take(step * self.half, self.half)]
                     for part, stream in zip(self.sets, self.streams)]  # fmt: skip
            batch = self.x[np.concatenate(drawn)].float()
            slope = (torch.sigmoid(batch @ self.weights + self.bias) - target) / len(batch)
            self.weights.mul_(self.keep).sub_(self.rate * (batch.T @ slope))
            self.bias.sub_(self.rate * slope.sum(dim=0))
        self.step = until

    def score(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of some images under every weight decay, [decays, n]."""
        found = [self.x[rows[i : i + CHUNK]].float() @ self.weights + self.bias
                 for i in range(0, len(rows), CHUNK)]  # fmt: skip
        return np.asarray(torch.cat(found).T.numpy())


def split(*, real: Images, fake: Images, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A fold, 0 or 1, for each real and each fake; copies share one, across the two sets too.

    Families of copies are dealt out at random, each to the fold that has fewer of its kind.
    """
    kin = families(real, fake)
    is_fake = np.arange(len(kin)) >= len(real)
    folds = np.empty(len(kin), dtype=np.int64)
    n_dealt = np.zeros((2, 2), dtype=np.int64)  # [fold, real or fake]
    order = numpy_generator(seed, "probe/folds").permutation(len(kin))
    by_family = order[np.argsort(kin[order], kind="stable")]
    members = np.split(by_family, np.flatnonzero(np.diff(kin[by_family])) + 1)
    shuffled = numpy_generator(seed, "probe/families").permutation(len(members))
    for number in sorted(shuffled, key=lambda number: -len(members[number])):  # large ones first
        own = members[number]
        n_own = np.bincount(is_fake[own], minlength=2)
        fold = int(np.argmin(n_dealt[:, int(n_own.argmax())]))
        folds[own] = fold
        n_dealt[fold] += n_own
    if n_dealt.min() < N_MIN // 2:
        raise UserError(
            "nearly all images of a folder are copies of one image: the probe has nothing to "
            "learn from; give images that differ"
        )
    return folds[: len(real)], folds[len(real) :]


def record_steps(s: ProbeSettings, n_learnt: int) -> NDArray[np.int64]:
    """The steps after which is recorded, evenly over the training, [T]."""
    n_steps = max(int(s.epochs * n_learnt) // s.batch_size, MIN_STEPS)
    return np.linspace(0, n_steps, s.n_records + 1).round().astype(np.int64)[1:]


def check(*, real: Images, fake: Images) -> None:
    for images in (real, fake):
        check_images(images)
    if real.shape[1:] != fake.shape[1:]:
        raise UserError(
            f"real images are {list(real.shape[1:])}, fakes {list(fake.shape[1:])}: bring them to "
            "the same size and channels"
        )
    if min(len(real), len(fake)) < N_MIN:
        raise UserError(
            f"there are {len(real):,} real and {len(fake):,} fake images; the probe needs at "
            f"least {N_MIN} of each, and thousands to say much"
        )
