"""The 2-D networks of the paper (Table A1): three hidden ReLU layers in G and in D.

For small images, which the paper does not give them, they have leaky ReLUs, BatchNorm in G (without
it G collapses), and a tanh.
"""

from collections.abc import Mapping
from itertools import pairwise
from math import prod

from torch import nn

from diagan.config import MLP
from diagan.networks.common import Discriminator


def hidden(n_in: int, width: int) -> nn.Sequential:
    widths = [n_in, width, width, width]
    pairs = pairwise(widths)
    return nn.Sequential(*(layer for a, b in pairs for layer in (nn.Linear(a, b), nn.ReLU())))


def for_points(
    config: MLP, n_dims: int, heads: Mapping[str, int]
) -> tuple[nn.Module, Discriminator]:
    g = nn.Sequential(hidden(config.latent, config.width), nn.Linear(config.width, n_dims))
    return g, Discriminator(hidden(n_dims, config.width), config.width, heads)


def for_images(
    config: MLP, shape: tuple[int, ...], heads: Mapping[str, int]
) -> tuple[nn.Module, Discriminator]:
    """Twice as wide beside the image as elsewhere."""
    w, n_pixels = config.width, prod(shape)
    layers: list[nn.Module] = []
    for a, b in pairwise([config.latent, w, w, 2 * w]):
        layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.LeakyReLU(0.2)]
    g = nn.Sequential(*layers, nn.Linear(2 * w, n_pixels), nn.Tanh(), nn.Unflatten(1, shape))
    trunk: list[nn.Module] = [nn.Flatten()]
    for a, b in pairwise([n_pixels, 2 * w, w, w]):
        trunk += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return g, Discriminator(nn.Sequential(*trunk), w, heads)


def build(
    config: MLP, shape: tuple[int, ...], heads: Mapping[str, int]
) -> tuple[nn.Module, Discriminator]:
    of = for_points(config, *shape, heads) if len(shape) == 1 else for_images(config, shape, heads)
    if config.init_std is not None:
        for layer in (m for net in of for m in net.modules() if isinstance(m, nn.Linear)):
            nn.init.normal_(layer.weight, std=config.init_std)
            nn.init.zeros_(layer.bias)
    return of
