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
    _looking: dict[str, tuple[float, float]] = field(default_factory=dict)
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

    def looking(self, c: Config) -> tuple[float, float]:
        """Seconds to look at an image for metrics, and for one in an epoch of an autoencoder."""
        if c.data.kind not in self._looking:
            self._looking[c.data.kind] = self._time_looking(c)
        return self._looking[c.data.kind]

    def _time_looking(self, c: Config) -> tuple[float, float]:
        data = self.dataset(c)
        if not data.is_image:
            return 0.0, 0.0
        images = np.array(data.values[:N_LOOKED])
        # Less what comes before the first epoch.
        few, more = (stopwatch(partial(train_autoencoder, images, seed=0, epochs=epochs), 1)
                     for epochs in (1, 4))  # fmt: skip
        epoch = max(more - few, 0.0) / 3
        extractor = by_name(features_of(c), data)
        extractor(torch.from_numpy(images[:2]))  # the first look takes longer
        look = stopwatch(lambda: extractor(torch.from_numpy(images)), 1)
        return look / len(images), epoch / len(images)

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
        wanted = [parse(split_subset(name)[0]) for name in unit.protocols]
        n = max(protocol.n for protocol in wanted)
        # A fifth of the proposals is kept at the 80th percentile, after the burn-in.
        rejects = unit.what != arm_stage(unit.what)
        n_drawn = c.rejection.burn_in + 5 * n if rejects else n
        look, epoch = self.looking(c)
        n_looked = max((p.n for p in wanted if p.family != "re"), default=0)
        n_looked += self.dataset(c).n if new_data and n_looked else 0
        fixed = sum(_seconds_of(protocol, epoch) for protocol in wanted)
        return n_drawn * self.training(c).seconds_per_fake + n_looked * look + fixed + OVERHEAD


def features_of(c: Config) -> str:
    """In which runs of the same data are measured, the same for all of them: the digit sets' by the
    paper's classifier, also where Inception is at hand."""
    if isinstance(c.data, ColoredMnist | MnistFmnist) and c.data.size == SIZE:
        return f"classifier-{c.data.kind}"
    return "inception" if find_weights("inception") else "patches"


def _seconds_of(p: Protocol, epoch: float) -> float:
    """Of a metric once its images have been looked at."""
    if p.family == "re":
        return p.n * p.epochs * epoch
    return PER_PROTOCOL.get(p.family, 0.0) * (p.n / 10_000) ** (
        2 if p.family in ("pr", "dc") else 1
    )
