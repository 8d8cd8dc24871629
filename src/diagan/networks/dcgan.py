"""The DCGAN of the paper (Tables A2, A3), at any power-of-two side from 16.

PyTorch's default initialisation: the published code calls its own initialiser on the whole
module, where it does nothing (FACTS 0.9).
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from diagan.config import DCGAN
from diagan.networks.common import Discriminator, Dropout


class ScaledTanh(nn.Module):
    """tanh with room beyond [-1, 1]: black and white pixels keep a gradient."""

    def __init__(self, headroom: float) -> None:
        super().__init__()
        self.scale = 1 + headroom

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * torch.tanh(x)


class FirstUp(nn.ConvTranspose2d):
    """A transposed convolution of a single pixel [B, C, 1, 1] as the matrix product that it is.

    oneDNN's own takes five times as long, forward and back.
    """

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        flat: Tensor = x.flatten(1) @ self.weight.flatten(1)
        return flat.view(-1, self.out_channels, *self.kernel_size)


def generator(config: DCGAN, channels: int, size: int) -> nn.Sequential:
    def width(side: int) -> int:  # 192 at 4x4, halved at each doubling of the side
        return max(round(config.width * 768 / side), 1)

    def up(n_in: int, n_out: int) -> nn.ConvTranspose2d:
        return nn.ConvTranspose2d(n_in, n_out, 4, stride=2, padding=1, bias=False)

    first = 2 * width(4)
    layers: list[nn.Module] = [nn.Linear(config.latent, first), nn.Unflatten(1, (first, 1, 1))]
    layers += [FirstUp(first, width(4), 4, bias=False), nn.BatchNorm2d(width(4)), nn.ReLU()]
    side = 4
    while side * 2 < size:
        layers += [up(width(side), width(side * 2)), nn.BatchNorm2d(width(side * 2))]
        layers += [nn.ReLU()]
        side *= 2
    return nn.Sequential(*layers, up(width(side), channels), ScaledTanh(config.headroom))


def discriminator(
    config: DCGAN, channels: int, size: int, heads: Mapping[str, int]
) -> Discriminator:
    layers: list[nn.Module] = []
    n_in, n_out, side = channels, round(16 * config.width), size
    while side > 4:
        for stride in (2, 1):
            layers += convolution(config, n_in, n_out, stride, is_first=not layers)
            layers += [nn.LeakyReLU(0.2), Dropout(config.dropout)]
            n_in, n_out = n_out, n_out * 2
        side //= 2
    d = Discriminator(nn.Sequential(*layers, nn.Flatten()), n_in * side * side, heads)
    if config.d_norm == "spectral":
        spectral_norm(d.logit)
    return d


def convolution(
    config: DCGAN, n_in: int, n_out: int, stride: int, is_first: bool
) -> list[nn.Module]:
    """A 3x3 convolution with its norm; the first layer has no BatchNorm."""
    if config.d_norm == "spectral":
        return [spectral_norm(nn.Conv2d(n_in, n_out, 3, stride, 1))]
    conv = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
    return [conv] if is_first else [conv, nn.BatchNorm2d(n_out)]


def build(
    config: DCGAN, shape: tuple[int, ...], heads: Mapping[str, int]
) -> tuple[nn.Module, Discriminator]:
    channels, size, _ = shape
    return generator(config, channels, size), discriminator(config, channels, size, heads)
