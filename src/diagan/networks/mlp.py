"""The 2-D networks of the paper (Table A1): three hidden ReLU layers in G and in D."""

from collections.abc import Mapping
from itertools import pairwise

from torch import nn

from diagan.config import MLP
from diagan.networks.common import Discriminator


def hidden(n_in: int, width: int) -> nn.Sequential:
    widths = [n_in, width, width, width]
    pairs = pairwise(widths)
    return nn.Sequential(*(layer for a, b in pairs for layer in (nn.Linear(a, b), nn.ReLU())))


def build(
    config: MLP, shape: tuple[int, ...], heads: Mapping[str, int]
) -> tuple[nn.Module, Discriminator]:
    (n_dims,) = shape
    g = nn.Sequential(hidden(config.latent, config.width), nn.Linear(config.width, n_dims))
    d = Discriminator(hidden(n_dims, config.width), config.width, heads)
    if config.init_std is not None:
        for layer in (m for net in (g, d) for m in net.modules() if isinstance(m, nn.Linear)):
            nn.init.normal_(layer.weight, std=config.init_std)
            nn.init.zeros_(layer.bias)
    return g, d
