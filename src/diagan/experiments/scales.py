"""The same experiment on a smaller machine: one function on the config."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from diagan.config import (
    FFHQ,
    CelebA,
    Cifar10,
    ColoredMnist,
    Config,
    DrawnFaces,
    Gaussians25,
    MnistFmnist,
    Rejection,
)


def paper(config: Config) -> Config:
    """As it is."""
    return config


def cpu(config: Config) -> Config:
    """The digits and drawn faces in minutes on a core, photos in an hour or two, by a narrow
    network; the Gaussians are quick enough as they are."""
    digits, photos = ColoredMnist | MnistFmnist, Cifar10 | CelebA | FFHQ
    if not isinstance(config.data, digits | photos | DrawnFaces):
        return config
    network: Any = config.network
    optim = config.optim
    if isinstance(config.data, photos):
        network = replace(network, width=0.25)
    if isinstance(config.data, digits):
        # A sum over half as many channels moves as fast at twice the rate, and has as much noise
        # at p / (1 - p) of dropout half as large; with the paper's dropout D finds no green.
        network = replace(network, width=0.5, dropout=1 / 3)
        optim = replace(optim, lr=2 * optim.lr)
    return replace(
        config,
        data=replace(config.data, n=10_000),
        network=network,
        steps=4_000,
        optim=optim,
        phase1_share=1.0 if config.phase1_share == 1 else 0.75,
        record=replace(config.record, every=20, window=50),
    )


def smoke(config: Config) -> Config:
    """Seconds: whether it works, not how well."""
    data: Any = config.data
    if hasattr(data, "n"):
        data = replace(data, n=250 if isinstance(data, Gaussians25) else 240)
    if isinstance(data, FFHQ):
        data = replace(data, size=32)
    network: Any = config.network
    share = 1.0 if config.phase1_share == 1 else 0.5
    return replace(
        config,
        data=data,
        network=replace(network, width=type(network.width)(max(network.width / 4, 0.25))),
        steps=24,
        phase1_share=share,
        batch_size=16,
        record=replace(config.record, every=2, window=4, start=None),
        rejection=Rejection(burn_in=128, batch_size=64),
        n_evaluate=128,
        log_every=4,
        grid_every=12,
        checkpoint_every=6,
    )


SCALES: dict[str, Callable[[Config], Config]] = {"paper": paper, "cpu": cpu, "smoke": smoke}


def at_scale(config: Config, scale: str) -> Config:
    return SCALES[scale](config)
