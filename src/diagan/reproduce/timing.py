"""How long a unit takes, from a short timing on this machine."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch

from diagan.config import ColoredMnist, Config, MnistFmnist, Rejection, Score
from diagan.data import Dataset, load_dataset
from diagan.engine import launch, resolve
from diagan.estimate import Estimate, estimate, stopwatch
from diagan.experiments.variants import arm_stage
from diagan.features import by_name
from diagan.kept import needed_records
from diagan.networks.classifier import SIZE
from diagan.protocols import Protocol, parse
from diagan.reconstruct import train_autoencoder
from diagan.reproduce.plan import Unit, split_subset
from diagan.weights import find_weights

N_LOOKED = 128  # images that an extractor and the autoencoder are timed with
PER_PROTOCOL = {"pr": 10.0, "dc": 10.0, "partial_recall": 10.0, "shares": 5.0, "fid": 2.0,
                "partial_fid": 20.0}  # seconds for 10,000 x 10,000 on a slow core  # fmt: skip
OVERHEAD = 3.0  # seconds: loading, writing, the diagnosis


@dataclass
class Clock:
    """Times each kind of run once; keeps the dataset that was loaded last."""

    _training: dict[Config, Estimate] = field(default_factory=dict)
    _looking: dict[str, float] = field(default_factory=dict)
    _epoch: dict[str, float] = field(default_factory=dict)
    _kept: tuple[object, Dataset] | None = None

    def dataset(self, c: Config) -> Dataset:
        key = (c.data, c.seed, c.data_root)
        if self._kept is None or self._kept[0] != key:
            self._kept = (key, load_dataset(c.data, seed=c.seed, root=c.data_root))
        return self._kept[1]

    def training(self, c: Config) -> Estimate:
        """Seconds of a step, a record and a fake, and bytes; what does not matter is left out."""
        c = resolve(c)
        one = 1.0 if c.phase1_share == 1 else 0.5
        key = replace(c, seed=0, score=Score(), rejection=Rejection(), phase1_share=one)
        if key not in self._training:
            self._training[key] = estimate(c, self.dataset(c), launch(c))[1]
        return self._training[key]

    def look(self, c: Config) -> float:
        """Seconds to look at an image for metrics."""
        data = self.dataset(c)
        if not data.is_image:
            return 0.0
        if c.data.kind not in self._looking:
            images = torch.from_numpy(np.array(data.values[:N_LOOKED]))
            extractor = by_name(features_of(c), data)
            extractor(images[:2])  # the first look takes longer
            self._looking[c.data.kind] = stopwatch(lambda: extractor(images), 1) / len(images)
        return self._looking[c.data.kind]

    def epoch(self, c: Config) -> float:
        """Seconds for an image in an epoch of an autoencoder."""
        if c.data.kind not in self._epoch:
            images = np.array(self.dataset(c).values[:N_LOOKED])
            # Less what comes before the first epoch.
            few, more = (stopwatch(partial(train_autoencoder, images, seed=0, epochs=epochs), 1)
                         for epochs in (1, 4))  # fmt: skip
            self._epoch[c.data.kind] = max(more - few, 0.0) / 3 / len(images)
        return self._epoch[c.data.kind]

    def seconds(
        self, unit: Unit, settings: Config, start: int = 0, recorded: Collection[int] = (),
        new_data: bool = False,
    ) -> float:  # fmt: skip
        """Of what is left of a unit; `new_data`: the real images were not looked at before."""
        if unit.measures:
            return self._measuring(unit, settings, new_data)
        c, e = settings, self.training(settings)
        if unit.what == "phase1":
            n_records = len(set(needed_records(c, c.phase1_steps)) - set(recorded))
            n_steps = c.phase1_steps - start
            return n_steps * e.seconds_per_step + n_records * e.seconds_per_record + OVERHEAD
        slow = unit.what == "weighted"
        each = e.seconds_per_step_phase2 if slow else e.seconds_per_step
        return (c.steps - max(start, c.phase1_steps)) * each + OVERHEAD

    def _measuring(self, unit: Unit, c: Config, new_data: bool) -> float:
        names, subsets = zip(*map(split_subset, unit.protocols))
        wanted, n_draws = [parse(name) for name in names], len(set(subsets))  # of each anew
        n = max(protocol.n for protocol in wanted)
        # A fifth of the proposals is kept at the 80th percentile, after the burn-in.
        rejects = unit.what != arm_stage(unit.what)
        n_drawn = n_draws * (c.rejection.burn_in + 5 * n if rejects else n)
        n_looked = n_draws * max((p.n for p in wanted if p.family != "re"), default=0)
        n_looked += self.dataset(c).n if new_data and n_looked else 0
        look = n_looked * self.look(c) if n_looked else 0.0
        fixed = sum(self._fixed(protocol, c) for protocol in wanted)
        return n_drawn * self.training(c).seconds_per_fake + look + fixed + OVERHEAD

    def _fixed(self, p: Protocol, c: Config) -> float:
        """Of a metric once its images have been looked at."""
        if p.family == "re":
            return p.n * p.epochs * self.epoch(c)
        power = 2 if p.family in ("pr", "dc") else 1
        return PER_PROTOCOL.get(p.family, 0.0) * (p.n / 10_000) ** power


def features_of(c: Config) -> str:
    """In which runs of the same data are measured, the same for all of them: the digit sets' by the
    paper's classifier, also where Inception is at hand."""
    if isinstance(c.data, ColoredMnist | MnistFmnist) and c.data.size == SIZE:
        return f"classifier-{c.data.kind}"
    return "inception" if find_weights("inception") else "patches"
