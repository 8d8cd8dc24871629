"""Sources -> one array of samples with their groups: points, the paper's sets, anyone's own."""

from collections.abc import Callable
from typing import Any

import torch

from diagan.config import (
    FFHQ,
    CelebA,
    Cifar10,
    ColoredMnist,
    DataConfig,
    DemoDigits,
    DrawnFaces,
    Gaussians25,
    ImageFolder,
    MnistFmnist,
    SingleGaussian,
)
from diagan.data.celeba import celeba
from diagan.data.cifar10 import cifar10
from diagan.data.dataset import Dataset
from diagan.data.faces import drawn_faces
from diagan.data.ffhq import ffhq
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
    Cifar10: cifar10,
    CelebA: celeba,
    FFHQ: ffhq,
    DrawnFaces: drawn_faces,
    ImageFolder: image_folder,
}


def load_dataset(config: DataConfig, *, seed: int, root: str | None = None) -> Dataset:
    """The data of a run, held in memory.

    `root` is a folder with <name>/<split>.parquet; without it the Hugging Face hub is asked for
    the paper's sets. What they draw (points, groups, held-out samples) depends on `seed`; what is
    held out of anyone's folder does not.
    """
    return _LOADERS[type(config)](config, seed, root)


def as_input(values: torch.Tensor) -> torch.Tensor:
    """What a network sees: uint8 images as float32 in [-1, 1]; points as they are."""
    return (values.float() / 255 - 0.5) / 0.5 if values.dtype == torch.uint8 else values
