"""The metric families: what was drawn, beside the real data -> numbers with their intervals."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from diagan import metrics, reconstruct
from diagan.data import Dataset
from diagan.device import best_device, best_precision
from diagan.errors import UserError
from diagan.features import Extractor, Features, cached_features, extract
from diagan.groups import GroupProbe
from diagan.metrics import (
    MIN_GROUP,
    MissingMode,
    RunningInceptionScore,
    RunningStatistics,
    Statistics,
)
from diagan.metrics.ranks import ascending
from diagan.metrics.shares import wilson
from diagan.protocols import Protocol
from diagan.random import numpy_generator

N_PICTURES = 1_000  # fakes that are kept to be looked at
N_RESAMPLED_FID = 20  # an FID takes long: its interval comes from the spread of this few
STREAMED = {"fid", "partial_fid", "group_fid"}  # what needs a covariance of the fakes only
Line = dict[str, Any]


@dataclass(frozen=True)
class Subset:
    """Some training samples under a name: a group, a quarter of the scores, a saved list."""

    name: str
    indices: np.ndarray


@dataclass(frozen=True, eq=False)
class Reals:
    """The real side of an evaluation; its features are computed once and kept in the cache.

    Without an extractor the samples are points, which are their own features.
    """

    data: Dataset
    extractor: Extractor | None
    seed: int
    subsets: Sequence[Subset] = ()
    scores: np.ndarray | None = None  # of the training samples, where they were diagnosed
    counting: Callable[[int], Callable[[int], None]] | None = None  # n -> hears of each batch

    @cached_property
    def train(self) -> np.ndarray:
        return self._features(self.data.values, self.data.fingerprint)

    @cached_property
    def heldout(self) -> np.ndarray:
        if len(self.data.heldout) == 0:
            raise UserError("there are no held-out samples here: measure against train instead")
        return self._features(self.data.heldout, f"{self.data.fingerprint}-heldout")

    def _features(self, values: np.ndarray, fingerprint: str) -> np.ndarray:
        if self.extractor is None:
            return values
        on_batch = self.counting(len(values)) if self.counting else None
        return cached_features(self.extractor, values, fingerprint, on_batch=on_batch)

    def of(self, split: str) -> np.ndarray:
        return self.train if split == "train" else self.heldout

    def some(self, n: int, among: np.ndarray | None = None) -> np.ndarray:
        """n training samples at random, or all where there are fewer: rising indices."""
        indices = np.arange(self.data.n) if among is None else among
        return np.sort(numpy_generator(self.seed, "evaluate/reals").permutation(indices)[:n])

    @cached_property
    def probe(self) -> GroupProbe:
        names = self.data.group_names
        return GroupProbe.fit(self.train, self.data.groups, len(names), seed=self.seed)


class Fakes:
    """Generated samples as they stream by: what the protocols need of them, and no more."""

    def __init__(self, protocols: Sequence[Protocol]) -> None:
        self.running = {p.n: RunningStatistics() for p in protocols if p.family in STREAMED}
        self.scores = {p.n: RunningInceptionScore(p.n) for p in protocols if p.family == "is"}
        kept = [p.n for p in protocols if p.family not in STREAMED | {"is", "re"}]
        self._n_features = max(kept, default=N_PICTURES)
        self.n_looked = max([self._n_features, *self.running, *self.scores])  # beyond: pixels only
        self._n_samples = max([p.n for p in protocols if p.family == "re"], default=N_PICTURES)
        self._features: list[np.ndarray] = []
        self._samples: list[np.ndarray] = []
        self.n = 0

    def add(self, samples: np.ndarray, found: Features | None) -> None:
        if found is not None:
            self._add_features(found)
        self._samples.append(samples[: max(self._n_samples - self.n, 0)])
        self.n += len(samples)

    def _add_features(self, found: Features) -> None:
        features = found.features.numpy()
        for n, running in self.running.items():
            running.add(features[: max(n - self.n, 0)])
        for n, score in self.scores.items():
            if found.logits is None:
                raise UserError("is: this extractor has no classes; use inception or a classifier")
            score.add(found.logits.numpy()[: max(n - self.n, 0)])
        self._features.append(features[: max(self._n_features - self.n, 0)])

    @cached_property
    def features(self) -> np.ndarray:
        return np.concatenate(self._features)

    @cached_property
    def samples(self) -> np.ndarray:
        return np.concatenate(self._samples)

    def statistics(self, n: int) -> Statistics:
        return self.running[n].statistics()


def watch(
    batches: Iterable[np.ndarray], extractor: Extractor | None, protocols: Sequence[Protocol],
    on_batch: Callable[[int], None] | None = None,
) -> Fakes:  # fmt: skip
    """Look at every batch of generated samples once, for all metrics."""
    fakes = Fakes(protocols)
    for batch in batches:
        if extractor is None:
            fakes.add(batch, Features(torch.from_numpy(batch)))
            continue
        at = 0
        for found in extract(extractor, batch[: max(fakes.n_looked - fakes.n, 0)]):
            fakes.add(batch[at : at + len(found.features)], found)
            at += len(found.features)
            if on_batch:
                on_batch(len(found.features))
        fakes.add(batch[at:], None)
    return fakes


def measure(protocol: Protocol, *, real: Reals, fake: Fakes) -> Iterator[Line]:
    """The lines of one metric: value, n_real, and where they make sense an interval and a group."""
    return MEASURES[protocol.family](protocol, real, fake)


def _fid(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    features = real.of(p.split)
    value = metrics.statistics_to_fid(real=_statistics(features), fake=fake.statistics(p.n))
    yield {"metric": "fid", "value": value, "n_real": len(features), "split": p.split}


def _statistics(features: np.ndarray) -> Statistics:
    return metrics.features_to_statistics(
        features[i : i + 1024] for i in range(0, len(features), 1024)
    )


def _kid(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    features = real.of(p.split)
    found = metrics.kid(real=features, fake=fake.features[: p.n], seed=real.seed)
    half = 1.96 * found.standard_error
    yield {"metric": "kid", "value": found.value, "low": found.value - half,
           "high": found.value + half, "standard_error": found.standard_error,
           "n_real": len(features), "split": p.split, "subset_size": found.subset_size}  # fmt: skip


def _inception_score(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    found = fake.scores[p.n].score()
    yield {"metric": "is", "value": found.mean, "std": found.std, "n_real": 0}


def _manifold(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    reals = real.train[real.some(p.n)]
    found = metrics.manifold_metrics(real=reals, fake=fake.features[: p.n], k=p.k)
    for name in ("precision", "recall") if p.family == "pr" else ("density", "coverage"):
        yield {"metric": name, "value": getattr(found, name), "n_real": len(reals)}


def _partial_recall(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    for subset in real.subsets:
        reals = real.train[real.some(p.n, among=subset.indices)]
        found = metrics.recalled(real=reals, fake=fake.features[: p.n], k=p.k)
        yield {"metric": "partial_recall", **_mean_of(subset.name, found, real.seed)}


def _mean_of(group: str, values: np.ndarray, seed: int) -> Line:
    """A group's mean and its interval; under 10 samples, the mean alone."""
    line = {"group": group, "value": float(values.mean()), "n_real": len(values)}
    if len(values) < MIN_GROUP:
        return line
    low, high = metrics.bootstrap_interval(values, seed=seed)
    return line | {"low": low, "high": high}


def _partial_fid(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    if real.scores is None:
        raise UserError(f"{p.name} needs scores: diagnose the run first, or measure group_fid")
    order = ascending(real.scores)
    n = min(p.ends, len(order))
    for name, indices in (
        ("highest scored", order[len(order) - n :]),
        ("lowest scored", order[:n]),
    ):
        yield _fid_of(Subset(name, indices), real, fake.statistics(p.n))


def _group_fid(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    for subset in real.subsets:
        if len(subset.indices) >= MIN_GROUP:
            yield _fid_of(subset, real, fake.statistics(p.n))


def _fid_of(subset: Subset, real: Reals, fake: Statistics) -> Line:
    """FID of a subset, with an interval from the spread under resampling of its reals.

    The interval is centred on the value: resampled sets repeat samples, which shifts FID upwards.
    """
    features = real.train[np.sort(subset.indices)]
    rng = numpy_generator(real.seed, "evaluate/group_fid")
    value = metrics.statistics_to_fid(real=_statistics(features), fake=fake)
    draws = (rng.integers(len(features), size=len(features)) for _ in range(N_RESAMPLED_FID))
    again = [metrics.statistics_to_fid(real=_statistics(features[d]), fake=fake) for d in draws]
    half = 1.96 * float(np.std(again, ddof=1))
    return {"metric": "partial_fid", "group": subset.name, "value": value, "n_real": len(features),
            "low": max(value - half, 0.0), "high": value + half}  # fmt: skip


def _reconstruction(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    """Also as published: by the statistics that the autoencoder's BatchNorm kept in training."""
    images, precision = fake.samples[: p.n], best_precision(best_device())
    net = reconstruct.train_autoencoder(images, seed=real.seed, epochs=p.epochs)

    def by_subset(metric: str) -> Iterator[Line]:
        for subset in real.subsets:
            errors = reconstruct.errors(net, real.data.values[subset.indices])
            line = _mean_of(subset.name, errors, real.seed)
            yield {"metric": metric, **line, "precision": precision}

    yield from by_subset("reconstruction_error_as_published")
    reconstruct.settle_on(net, images)
    yield from by_subset("reconstruction_error")


def _shares(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    probe, groups = real.probe, real.probe.predict(fake.features[: p.n])
    for number, name in enumerate(real.data.group_names):
        share = float(np.mean(groups == number))
        low, high = wilson(share, p.n)
        yield {"metric": "group_share", "group": name, "value": share, "low": low, "high": high,
               "n_real": real.data.n, "probe": f"{probe.k} nearest",
               "probe_accuracy": probe.accuracy,
               "probe_balanced_accuracy": probe.balanced_accuracy}  # fmt: skip


def _missing(p: Protocol, real: Reals, fake: Fakes) -> Iterator[Line]:
    rows = real.some(p.n)
    found = metrics.missing_modes(real=real.train[rows], fake=fake.features[: p.n], seed=real.seed)
    yield missing_line(found, rows)


def missing_line(found: Sequence[MissingMode], rows: np.ndarray) -> Line:
    """Missing modes among training samples whose indices are `rows`."""
    modes = [mode._asdict() | {"examples": rows[mode.examples].tolist()} for mode in found]
    return {"metric": "missing_modes", "value": len(modes), "n_real": len(rows), "modes": modes}


MEASURES: dict[str, Callable[[Protocol, Reals, Fakes], Iterator[Line]]] = {
    "fid": _fid,
    "kid": _kid,
    "is": _inception_score,
    "pr": _manifold,
    "dc": _manifold,
    "partial_recall": _partial_recall,
    "partial_fid": _partial_fid,
    "group_fid": _group_fid,
    "re": _reconstruction,
    "shares": _shares,
    "missing": _missing,
}
