"""What a run is: frozen dataclasses <-> config.json."""

from diagan.config.checks import check, check_sightings
from diagan.config.datasets import (
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
from diagan.config.files import flat, from_json, loads, to_json
from diagan.config.methods import Augment, Inclusive, Methods, Rotation, TopK
from diagan.config.networks import DCGAN, MLP, SNGAN, NetworkConfig, StyleGAN2
from diagan.config.settings import (
    PROBE_SCORE,
    ROBUST_SCORE,
    Config,
    Critic,
    Optim,
    Penalty,
    Record,
    Rejection,
    Score,
)

__all__ = [
    "DCGAN",
    "FFHQ",
    "MLP",
    "PROBE_SCORE",
    "ROBUST_SCORE",
    "SNGAN",
    "Augment",
    "CelebA",
    "Cifar10",
    "ColoredMnist",
    "Config",
    "Critic",
    "DataConfig",
    "DemoDigits",
    "DrawnFaces",
    "Gaussians25",
    "ImageFolder",
    "Inclusive",
    "Methods",
    "MnistFmnist",
    "NetworkConfig",
    "Optim",
    "Penalty",
    "Record",
    "Rejection",
    "Rotation",
    "Score",
    "SingleGaussian",
    "StyleGAN2",
    "TopK",
    "check",
    "check_sightings",
    "flat",
    "from_json",
    "loads",
    "to_json",
]
