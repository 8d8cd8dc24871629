"""Sources -> one array of samples with their groups: toy points, digit sets, a person's folder."""

from collections.abc import Callable
from typing import Any

import torch

from diagan.config import (
    ColoredMnist,
    DataConfig,
    DemoDigits,
    Gaussians25,
    ImageFolder,
    MnistFmnist,
    SingleGaussian,
)
from diagan.data.dataset import Dataset
from diagan.data.folder import image_folder
from diagan.data.imbalanced import colored_mnist, demo_digits, mnist_fmnist
from diagan.data.toy import gaussians25, single_gaussian

__all__ = ["Dataset", "as_input", "load_dataset"]

_LOADERS: dict[type, Callable[[Any, int, str | None], Dataset]] = {
    SingleGaussian: single_gaussian,
    Gaussians25: gaussians25,
    ColoredMnist: colored_mnist,
    MnistFmnist: mnist_fmnist,
    DemoDigits: demo_digits,
    ImageFolder: image_folder,
}


def load_dataset(config: DataConfig, *, seed: int, root: str | None = None) -> Dataset:
    """The data of a run, held in memory.

    `root` is a folder with <name>/<split>.parquet; without it the Hugging Face hub is asked for
    MNIST and Fashion-MNIST. Splits into groups and held-out samples depend on `seed`.
    """
    return _LOADERS[type(config)](config, seed, root)


def as_input(values: torch.Tensor) -> torch.Tensor:
    """What a network sees: uint8 images as float32 in [-1, 1]; points as they are."""
    return (values.float() / 255 - 0.5) / 0.5 if values.dtype == torch.uint8 else values
