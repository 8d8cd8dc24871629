"""What a generator makes, in numbers: how often each group occurs among its samples."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from diagan.data import Dataset
from diagan.groups import GroupProbe
from diagan.rundir import RunDir, append_line, cut_lines, replacing
from diagan.sample import TrainedGenerator, as_stored, image_grid

GRID = 64


@dataclass(frozen=True)
class Arm:
    """A generator of a run, drawn from with or without rejection."""

    name: str
    drs: bool

    @property
    def file(self) -> str:
        return f"{self.name}_drs" if self.drs else self.name


def evaluate(run: RunDir, generator: TrainedGenerator, drs: bool, probe: GroupProbe,
             dataset: Dataset, n: int, seed: int) -> None:  # fmt: skip
    """Draw n samples of an arm once, keep a grid of them, count the groups among them."""
    arm = Arm(generator.arm, drs)
    about = {"arm": arm.name, "drs": drs, "n_fake": n, "seed": seed,
             "checkpoint": f"{arm.name}-{generator.step:06d}"}  # fmt: skip
    cut_lines(run.metrics, lambda line: (line["arm"], line["drs"]) != (arm.name, drs))
    if drs:
        sampler = generator.rejection_sampler(seed)
        fake = as_stored(sampler.sample(n))
        rate = {"metric": "acceptance_rate", "value": sampler.acceptance_rate}
        append_line(run.metrics, rate | about | {"rejects_by": generator.rejects_by})
    else:
        fake = generator.sample(n, seed=seed, drs=False)
    keep_pictures(run, arm.file, fake)
    count_groups(run, probe.predict(fake), dataset, about | {
        "probe": f"pixels, {probe.k} nearest" if dataset.is_image else f"{probe.k} nearest",
        "probe_accuracy": probe.accuracy, "probe_balanced_accuracy": probe.balanced_accuracy,
    })  # fmt: skip


def count_groups(
    run: RunDir, groups: np.ndarray, dataset: Dataset, about: dict[str, object]
) -> None:
    for number, name in enumerate(dataset.group_names):
        share = float(np.mean(groups == number))
        low, high = wilson(share, len(groups))
        line = {"metric": "group_share", "group": name, "value": share, "low": low, "high": high}
        append_line(run.metrics, line | about)


def keep_pictures(run: RunDir, name: str, samples: np.ndarray) -> None:
    """A grid of images, or the points themselves."""
    run.generated.mkdir(exist_ok=True)
    if samples.ndim == 2:
        with replacing(run.generated / f"{name}.npy") as temporary, temporary.open("wb") as file:
            np.save(file, samples)
    else:
        with replacing(run.generated / f"{name}.png") as temporary:
            image_grid(samples[:GRID], scale=2).save(temporary, format="PNG")


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share out of n draws; sensible at 0 and 1 too."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)
