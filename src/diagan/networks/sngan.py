"""The SNGAN ResNets of the paper's CIFAR-10 and CelebA runs, for 32 and 64 pixels (FACTS 1.8).

SSGAN is the same pair with a rotation head on D.
"""

from collections.abc import Mapping
from itertools import pairwise
from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from diagan.config import SNGAN
from diagan.errors import UserError
from diagan.networks.common import Discriminator

# Widths along the blocks of G, and of D whose first two or all blocks halve the side.
G_WIDTHS = {32: (256, 256, 256, 256), 64: (1024, 512, 256, 128, 64)}
D_WIDTHS = {32: (128, 128, 128, 128), 64: (64, 128, 256, 512, 1024)}
D_HALVINGS = {32: 2, 64: 5}


def conv(n_in: int, n_out: int, kernel: int, gain: float = 1.0) -> nn.Conv2d:
    """A convolution that keeps the side; the bias keeps PyTorch's initialisation."""
    layer = nn.Conv2d(n_in, n_out, kernel, padding=kernel // 2)
    nn.init.xavier_uniform_(layer.weight, gain)
    return layer


def linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.xavier_uniform_(layer.weight)
    return layer


def normed_conv(n_in: int, n_out: int, kernel: int, gain: float = 1.0) -> nn.Module:
    """With spectral norm: one power iteration a forward in train mode, none in eval mode."""
    return spectral_norm(conv(n_in, n_out, kernel, gain))


def normed_linear(n_in: int, n_out: int) -> nn.Module:
    return spectral_norm(linear(n_in, n_out))


def double(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


class UpBlock(nn.Module):
    """Doubles the side; its hidden width is that of its output."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(n_in), nn.BatchNorm2d(n_out)
        self.conv1 = conv(n_in, n_out, 3, sqrt(2))
        self.conv2 = conv(n_out, n_out, 3, sqrt(2))
        self.shortcut = conv(n_in, n_out, 1)

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.conv1(double(F.relu(self.norm1(x))))
        h = self.conv2(F.relu(self.norm2(h)))
        # A 1x1 convolution and an interpolation commute; in this order it costs a quarter.
        return h + double(self.shortcut(x))


class FirstBlock(nn.Module):
    """D's first block, which halves the side; it sees the image itself, so no ReLU comes first."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.conv1 = normed_conv(n_in, n_out, 3, sqrt(2))
        self.conv2 = normed_conv(n_out, n_out, 3, sqrt(2))
        self.shortcut = normed_conv(n_in, n_out, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv2(F.relu(self.conv1(x)))
        shortcut: Tensor = self.shortcut(F.avg_pool2d(x, 2))
        return F.avg_pool2d(h, 2) + shortcut


class Block(nn.Module):
    """A further block of D; its hidden width is that of its input."""

    def __init__(self, n_in: int, n_out: int, halves: bool) -> None:
        super().__init__()
        self.halves = halves
        self.conv1 = normed_conv(n_in, n_in, 3, sqrt(2))
        self.conv2 = normed_conv(n_in, n_out, 3, sqrt(2))
        changes = halves or n_in != n_out
        self.shortcut = normed_conv(n_in, n_out, 1) if changes else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        # The shortcut sees the ReLU too: in the published code it works in place (FACTS 0.10).
        x = F.relu(x)
        h: Tensor = self.conv2(F.relu(self.conv1(x)))
        if self.halves:  # a 1x1 convolution and a mean commute
            h, x = F.avg_pool2d(h, 2), F.avg_pool2d(x, 2)
        shortcut: Tensor = self.shortcut(x)
        return h + shortcut


class SumPool(nn.Module):
    """Maps [B, C, H, W] to their sums [B, C], in float32 whatever the autocast."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum(dim=(2, 3), dtype=torch.float32)


def generator(config: SNGAN, channels: int, size: int) -> nn.Sequential:
    widths = [round(config.width * n) for n in G_WIDTHS[size]]
    first, last = widths[0], widths[-1]
    return nn.Sequential(
        linear(config.latent, 16 * first),
        nn.Unflatten(1, (first, 4, 4)),
        *(UpBlock(a, b) for a, b in pairwise(widths)),
        nn.BatchNorm2d(last),
        nn.ReLU(),
        conv(last, channels, 3),
        nn.Tanh(),
    )


def discriminator(
    config: SNGAN, channels: int, size: int, heads: Mapping[str, int]
) -> Discriminator:
    widths = [round(config.width * n) for n in D_WIDTHS[size]]
    blocks: list[nn.Module] = [FirstBlock(channels, widths[0])]
    for a, b in pairwise(widths):
        blocks += [Block(a, b, halves=len(blocks) < D_HALVINGS[size])]
    trunk = nn.Sequential(*blocks, nn.ReLU(), SumPool())
    return Discriminator(trunk, widths[-1], heads, normed_linear)


def build(
    config: SNGAN, shape: tuple[int, ...], heads: Mapping[str, int]
) -> tuple[nn.Module, Discriminator]:
    if shape[1:] not in [(size, size) for size in config.sizes]:
        raise UserError(
            f"the SNGAN is for images of 32x32 or 64x64, not for samples of shape {shape}; give "
            "--data.size 32 or 64, or take another network"
        )
    channels, size, _ = shape
    g, d = generator(config, channels, size), discriminator(config, channels, size, heads)
    # Narrow convolutions and bilinear doubling are faster so: a step took 2.0 s instead of 2.9.
    for net in (g, d):
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in its stubs
    return g, d
