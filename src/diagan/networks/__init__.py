"""Generators and discriminators. A generator maps latents [B, nz] to samples; a discriminator
maps samples to Scores. Which pair to build follows from the type of the network's config."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from diagan.config import DCGAN, MLP, SNGAN, NetworkConfig, StyleGAN2
from diagan.networks import dcgan, mlp, sngan, stylegan2
from diagan.networks.common import N_REFERENCES, Discriminator, Scores

__all__ = ["N_REFERENCES", "Discriminator", "Pair", "Scores", "build", "count_parameters"]

Shape = tuple[int, ...]
Pair = tuple[nn.Module, Discriminator]

_BUILDERS: dict[type, Callable[[Any, Shape, Mapping[str, int]], Pair]] = {
    MLP: mlp.build,
    DCGAN: dcgan.build,
    SNGAN: sngan.build,
    StyleGAN2: stylegan2.build,
}


def build(
    config: NetworkConfig,
    shape: Shape,
    heads: Mapping[str, int] | None = None,
    images_per_score: int = 1,
) -> Pair:
    """G and D for samples of `shape`; D grows an extra linear head for each entry of `heads`.

    A D that scores several images at once sees them as channels of one.
    """
    g, d = _BUILDERS[type(config)](config, shape, heads or {})
    if images_per_score > 1:
        packed = (shape[0] * images_per_score, *shape[1:])
        _, d = _BUILDERS[type(config)](config, packed, heads or {})
    return g, d


def count_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())
