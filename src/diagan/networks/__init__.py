"""Generators and discriminators. A generator maps latents [B, nz] to samples; a discriminator
maps samples to Scores. Which pair to build follows from the type of the network's config."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from diagan.config import DCGAN, MLP, NetworkConfig
from diagan.networks import dcgan, mlp
from diagan.networks.common import Discriminator, Scores

__all__ = ["Discriminator", "Scores", "build", "count_parameters"]

Shape = tuple[int, ...]
Pair = tuple[nn.Module, Discriminator]

_BUILDERS: dict[type, Callable[[Any, Shape, Mapping[str, int]], Pair]] = {
    MLP: mlp.build,
    DCGAN: dcgan.build,
}


def build(config: NetworkConfig, shape: Shape, heads: Mapping[str, int] | None = None) -> Pair:
    """G and D for samples of `shape`; D grows an extra linear head for each entry of `heads`."""
    return _BUILDERS[type(config)](config, shape, heads or {})


def count_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())
