"""Timing that bears noise: alternate, and compare medians as ratios."""

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from diagan.data import Dataset
from diagan.data.dataset import fingerprint


def alternate(actions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each action, taken in turns in one process, the first round left out."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds + 1):
        for name, action in actions.items():
            began = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - began)
    return {name: median(values[1:]) for name, values in times.items()}


def random_images(n: int = 2_000, channels: int = 3, size: int = 32) -> Dataset:
    """Speed does not depend on what the images show."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, (n, channels, size, size), dtype=np.uint8)
    groups = (np.arange(n) % 100 == 0).astype(np.int64)
    return Dataset(
        values, groups, ("major", "minor"), values[:200], groups[:200], fingerprint(values)
    )
