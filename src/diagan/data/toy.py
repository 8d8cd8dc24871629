"""Two-dimensional points: one Gaussian, and a grid of 25."""

import numpy as np

from diagan.config import Gaussians25, SingleGaussian
from diagan.data.dataset import Dataset, fingerprint
from diagan.errors import UserError
from diagan.random import numpy_generator

N_HELDOUT = 1_000
SCALE = 2.828  # the published grid is divided by it (FACTS 1.3)


def single_gaussian(config: SingleGaussian, seed: int, root: str | None = None) -> Dataset:
    """N(0, sigma^2 I): minor is the tail beyond radius 7, major the core within 2 (FACTS 1.2)."""
    if not config.sigma > 0:
        raise UserError(f"--data.sigma {config.sigma}: expected a positive number")

    def draw(n: int, purpose: str) -> tuple[np.ndarray, np.ndarray]:
        points = numpy_generator(seed, purpose).normal(0.0, config.sigma, (n, 2))
        points = points.astype(np.float32)
        radius = np.linalg.norm(points, axis=1)
        return points, np.select([radius < 2, radius > 7], [0, 1], 2).astype(np.int64)

    values, groups = draw(config.n, "data/single_gaussian")
    heldout, heldout_groups = draw(N_HELDOUT, "data/single_gaussian/heldout")
    return Dataset(
        values=values,
        groups=groups,
        group_names=("major", "minor", "middle"),
        heldout=heldout,
        heldout_groups=heldout_groups,
        fingerprint=fingerprint(values, groups),
        rare=1,
    )


def gaussians25(config: Gaussians25, seed: int, root: str | None = None) -> Dataset:
    """A 5 x 5 grid with n / 25 points a mode; mode 5 (x + 2) + (y + 2) sits at (2x, 2y) / 2.828.

    The draw depends on the run's seed; the published code fixes it at 1.
    """
    if config.n % 25:
        raise UserError(f"--data.n {config.n}: expected a multiple of 25, one share for each mode")
    grid = np.arange(-2, 3)
    centres = 2.0 * np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(25, 2)

    def draw(n: int, purpose: str) -> tuple[np.ndarray, np.ndarray]:
        random = numpy_generator(seed, purpose)
        modes = random.permutation(np.repeat(np.arange(25, dtype=np.int64), n // 25))
        points = (centres[modes] + random.normal(0.0, 0.05, (n, 2))) / SCALE
        return points.astype(np.float32), modes

    values, groups = draw(config.n, "data/gaussians25")
    heldout, heldout_groups = draw(N_HELDOUT, "data/gaussians25/heldout")
    return Dataset(
        values=values,
        groups=groups,
        group_names=tuple(f"mode {i}" for i in range(25)),
        heldout=heldout,
        heldout_groups=heldout_groups,
        fingerprint=fingerprint(values, groups),
    )
