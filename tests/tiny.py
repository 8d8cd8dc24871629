"""The smallest things that train: what the tests of the game and of the loop play with."""

from dataclasses import replace
from pathlib import Path

import torch
from lightning_fabric import Fabric

from diagan.config import DCGAN, MLP, Config, DemoDigits, Optim, Record, Rejection, SingleGaussian
from diagan.data import Dataset, load_dataset
from diagan.engine import launch
from diagan.progress import Display
from diagan.rundir import RunDir
from diagan.stages import World

POINTS = Config(
    data=SingleGaussian(n=48),
    network=MLP(width=8),
    steps=12,
    phase1_share=0.5,
    batch_size=8,
    optim=Optim(lr=1e-3),
    record=Record(every=2, window=3),
    rejection=Rejection(burn_in=64, batch_size=32),
    n_evaluate=64,
    log_every=3,
    grid_every=3,
    checkpoint_every=2,
    device="cpu",
    precision="float32",
)
DIGITS = replace(POINTS, data=DemoDigits(n=48), network=DCGAN(width=0.125, latent=8))


class Overheard(Display):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def data_of(config: Config, n_heldout: int = 12) -> Dataset:
    """A fresh copy, with fewer held-out samples than a run has."""
    data = load_dataset(config.data, seed=config.seed)
    groups = data.heldout_groups[:n_heldout]
    return replace(data, heldout=data.heldout[:n_heldout], heldout_groups=groups)


def world_of(config: Config, path: Path, fabric: Fabric | None = None) -> World:
    """A run folder that has begun, and all that its stages share."""
    return World(config, data_of(config), fabric or launch(config), RunDir(path), Overheard())


def same(mine: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return mine.keys() == other.keys() and all(torch.equal(mine[k], other[k]) for k in mine)
