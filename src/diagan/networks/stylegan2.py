"""StyleGAN2 (Karras et al. 2020) with a skip generator and a residual discriminator, for images of
a power-of-two side from 32 to 1024, in plain PyTorch (FACTS 6)."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import sqrt

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from diagan.config import StyleGAN2
from diagan.errors import UserError
from diagan.networks.common import N_REFERENCES, Discriminator

N_MAPPING = 8
MAPPING_RATE = 0.01  # the mapping network learns at a hundredth of the rate
GROUP = N_REFERENCES + 1  # images that share a standard deviation
EPSILON = 1e-8

Noise = Callable[[int], Tensor]  # side -> [B, 1, side, side]


def width(config: StyleGAN2, side: int) -> int:
    """Channels at a side: 512 up to 64 pixels and half as many at each doubling from there on."""
    return round(config.width * min(512, 2**15 // side))


def sides(size: int) -> list[int]:
    """4, 8, ... up to the size."""
    return [2**i for i in range(2, size.bit_length())]


# --- layers ---------------------------------------------------------------------------------------


def activate(x: Tensor) -> Tensor:
    """A leaky ReLU that keeps the variance."""
    return F.leaky_relu(x, 0.2) * sqrt(2)


class EqualLinear(nn.Linear):
    """Weights of unit variance, scaled when used, so that Adam moves all layers alike."""

    def __init__(self, n_in: int, n_out: int, rate: float = 1.0, bias: float = 0.0) -> None:
        super().__init__(n_in, n_out)
        self.rate, self.gain = rate, rate / sqrt(n_in)
        nn.init.normal_(self.weight, std=1 / rate)
        nn.init.constant_(self.bias, bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight * self.gain, self.bias * self.rate)


class EqualConv(nn.Conv2d):
    """The same for a convolution."""

    def __init__(
        self, n_in: int, n_out: int, kernel: int, stride: int = 1, padding: int = 0,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(n_in, n_out, kernel, stride, padding, bias=bias)
        self.gain = 1 / sqrt(n_in * kernel**2)
        nn.init.normal_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight * self.gain, self.bias, self.stride, self.padding)


class Filter(nn.Module):
    """The low-pass filter [1, 3, 3, 1] along both axes, scaled to a sum of `gain`."""

    kernel: Tensor

    def __init__(self, padding: int, stride: int = 1, gain: float = 1.0) -> None:
        super().__init__()
        self.padding, self.stride = padding, stride
        line = torch.tensor([1.0, 3.0, 3.0, 1.0])
        kernel = line.outer(line) * (gain / line.sum() ** 2)
        self.register_buffer("kernel", kernel, persistent=False)

    def kernels(self, x: Tensor) -> Tensor:
        """One for each channel of x."""
        return self.kernel.to(x.dtype).expand(x.shape[1], 1, 4, 4)


class Blur(Filter):
    """The filter on every channel; with a stride of 2 it halves the side."""

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.kernels(x), None, self.stride, self.padding, groups=x.shape[1])


class Upsample(Filter):
    """Zeros between the pixels, then the filter, at a gain of 4 for the zeros."""

    def __init__(self) -> None:
        super().__init__(padding=1, stride=2, gain=4.0)

    def forward(self, x: Tensor) -> Tensor:
        kernels, n = self.kernels(x), x.shape[1]
        return F.conv_transpose2d(x, kernels, None, self.stride, self.padding, groups=n)


# --- the generator --------------------------------------------------------------------------------


class ModulatedConv(nn.Module):
    """A convolution whose input channels are scaled by an image's style.

    Demodulation divides by what the scales make of the weights' norm. Scales of input and output
    are the image's own and the weights everyone's, so that one convolution serves the batch.
    """

    def __init__(
        self, n_in: int, n_out: int, kernel: int, n_style: int, demodulate: bool = True,
        up: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.padding, self.demodulate = kernel // 2, demodulate
        self.gain = 1 / sqrt(n_in * kernel**2)
        self.weight = nn.Parameter(torch.randn(n_out, n_in, kernel, kernel))
        self.style = EqualLinear(n_style, n_in, bias=1.0)
        self.blur = Blur(padding=1, gain=4.0) if up else None

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        weight = self.weight * self.gain
        before, after = self.scales(weight, w)
        x = x * before.to(x.dtype)
        if self.blur:  # [B, C, H, W] -> [B, C, 2H + 1, 2W + 1] -> [B, C, 2H, 2W]
            x = self.blur(F.conv_transpose2d(x, weight.transpose(0, 1), stride=2))
        else:
            x = F.conv2d(x, weight, padding=self.padding)
        return x * after.to(x.dtype) if self.demodulate else x

    def scales(self, weight: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """Of the input [B, in, 1, 1] and of the output [B, out, 1, 1], in float32."""
        with torch.autocast(w.device.type, enabled=False):
            style = self.style(w)  # [B, in]
            squares = style.square() @ weight.square().sum(dim=(2, 3)).T  # [B, out]
            return style[..., None, None], (squares + EPSILON).rsqrt()[..., None, None]


class StyledConv(nn.Module):
    """A modulated 3x3 convolution, noise of a learned strength, a bias, a leaky ReLU."""

    def __init__(self, n_in: int, n_out: int, n_style: int, up: bool = False) -> None:
        super().__init__()
        self.conv = ModulatedConv(n_in, n_out, 3, n_style, up=up)
        self.strength = nn.Parameter(torch.zeros(1))
        self.bias = nn.Parameter(torch.zeros(n_out, 1, 1))

    def forward(self, x: Tensor, w: Tensor, noise: Noise) -> Tensor:
        x = self.conv(x, w)
        x = x + (self.strength * noise(x.shape[2])).to(x.dtype)
        return activate(x + self.bias.to(x.dtype))


class ToImage(nn.Module):
    """The image that features stand for. The bias is float32, and so is the sum of images."""

    def __init__(self, n_in: int, channels: int, n_style: int) -> None:
        super().__init__()
        self.conv = ModulatedConv(n_in, channels, 1, n_style, demodulate=False)
        self.bias = nn.Parameter(torch.zeros(channels, 1, 1))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        image: Tensor = self.conv(x, w) + self.bias
        return image


class UpBlock(nn.Module):
    """Features of twice the side, and the image so far with what they add to it."""

    def __init__(self, n_in: int, n_out: int, channels: int, n_style: int) -> None:
        super().__init__()
        self.conv1 = StyledConv(n_in, n_out, n_style, up=True)
        self.conv2 = StyledConv(n_out, n_out, n_style)
        self.to_image = ToImage(n_out, channels, n_style)
        self.upsample = Upsample()

    def forward(
        self, x: Tensor, image: Tensor, styles: Tensor, noise: Noise
    ) -> tuple[Tensor, Tensor]:
        """`styles` [B, 3, n_style]: one for each convolution and one for the image."""
        x = self.conv1(x, styles[:, 0], noise)
        x = self.conv2(x, styles[:, 1], noise)
        with torch.autocast(x.device.type, enabled=False):
            image = self.upsample(image)
        return x, image + self.to_image(x, styles[:, 2])


class Generator(nn.Module):
    """latents -> styles, one a layer -> image, not bounded to [-1, 1].

    In train mode noise and mixed styles come from torch's global generator. In eval mode styles are
    not mixed, and the noise is a function of the latent: the same latent gives the same image.
    """

    def __init__(self, config: StyleGAN2, channels: int, size: int) -> None:
        super().__init__()
        n, widths = config.latent, [width(config, side) for side in sides(size)]
        self.mixing, self.n_layers = config.mixing, 2 * len(widths)
        layers = [EqualLinear(n, n, MAPPING_RATE) for _ in range(N_MAPPING)]
        self.mapping = nn.ModuleList(layers)
        self.constant = nn.Parameter(torch.randn(1, widths[0], 4, 4))
        self.conv = StyledConv(widths[0], widths[0], n)
        self.to_image = ToImage(widths[0], channels, n)
        self.blocks = nn.ModuleList(UpBlock(a, b, channels, n) for a, b in pairwise(widths))

    def forward(self, latents: Tensor) -> Tensor:
        noise = fresh_noise(latents) if self.training else noise_of(latents)
        return self.synthesise(self.styles(latents), noise)

    def style(self, latents: Tensor) -> Tensor:
        """w [B, n_style] of latents, in float32: 8 small layers whose errors every layer sees."""
        with torch.autocast(latents.device.type, enabled=False):
            w = latents * (latents.square().mean(dim=1, keepdim=True) + EPSILON).rsqrt()
            for layer in self.mapping:
                w = activate(layer(w))
            return w

    def styles(self, latents: Tensor) -> Tensor:
        """w of every layer [B, n_layers, n_style]; in train mode now and then those of a second
        latent from some layer on, one place for the batch."""
        w = self.style(latents)[:, None].repeat(1, self.n_layers, 1)
        if not self.training or torch.rand(()) >= self.mixing:
            return w
        at = int(torch.randint(1, self.n_layers, ()))
        other = self.style(torch.randn_like(latents))
        return torch.cat([w[:, :at], other[:, None].expand_as(w)[:, at:]], dim=1)

    def synthesise(self, styles: Tensor, noise: Noise | None = None) -> Tensor:
        """Images [B, C, size, size] of styles [B, n_layers, n_style]."""
        noise = noise or fresh_noise(styles)
        x = self.conv(self.constant.expand(len(styles), -1, -1, -1), styles[:, 0], noise)
        image: Tensor = self.to_image(x, styles[:, 1])
        for number, block in enumerate(self.blocks):
            at = 2 * number + 1  # an image shares its style with the next block's first convolution
            x, image = block(x, image, styles[:, at : at + 3], noise)
        return image


def fresh_noise(like: Tensor) -> Noise:
    """For each of the images that belong to `like`, from the global generator of its device."""
    return lambda side: torch.randn(len(like), 1, side, side, device=like.device, dtype=like.dtype)


def noise_of(latents: Tensor) -> Noise:
    """Noise that is a function of each latent by itself, whatever else is in the batch."""
    seeds = latents.detach().float().cpu().view(torch.int32).long().sum(dim=1)
    sources = [torch.Generator().manual_seed(seed & 0xFFFFFFFF) for seed in seeds.tolist()]

    def draw(side: int) -> Tensor:
        noise = torch.stack([torch.randn(1, side, side, generator=source) for source in sources])
        return noise.to(latents)

    return draw


# --- the discriminator ----------------------------------------------------------------------------


class DownBlock(nn.Module):
    """Halves the side, with a shortcut; the sum is scaled back to the variance of its parts."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.conv1 = EqualConv(n_in, n_in, 3, padding=1)
        self.blur = Blur(padding=2)
        self.conv2 = EqualConv(n_in, n_out, 3, stride=2)
        self.halve = Blur(padding=1, stride=2)
        self.shortcut = EqualConv(n_in, n_out, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        shortcut: Tensor = self.shortcut(self.halve(x))
        return (activate(self.conv2(self.blur(activate(self.conv1(x))))) + shortcut) / sqrt(2)


class Trunk(nn.Module):
    """Images [B, C, size, size] -> features [B, F], with the minibatch's standard deviation.

    In eval mode an image's mates are always the references, so that what D says of an image
    depends on nothing else (DESIGN 4).
    """

    references: Tensor

    def __init__(self, config: StyleGAN2, channels: int, size: int) -> None:
        super().__init__()
        widths = [width(config, side) for side in reversed(sides(size))]
        self.n_features = n = widths[-1]
        self.from_image = EqualConv(channels, widths[0], 1)
        self.blocks = nn.Sequential(*(DownBlock(a, b) for a, b in pairwise(widths)))
        self.conv = EqualConv(n + 1, n, 3, padding=1)
        self.linear = EqualLinear(16 * n, n)
        self.register_buffer("references", torch.zeros(N_REFERENCES, channels, size, size))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            x = self.maps(x)
            n_group = next(n for n in range(GROUP, 0, -1) if len(x) % n == 0)
            spread = deviation(x.unflatten(0, (n_group, -1))).repeat(n_group)
        else:
            x, mates = self.maps(torch.cat([x, self.references])).tensor_split([len(x)])
            mates = mates[:, None].expand(-1, len(x), -1, -1, -1)
            spread = deviation(torch.cat([x[None], mates]))
        spread = spread.to(x.dtype).view(-1, 1, 1, 1).expand(-1, 1, 4, 4)
        x = activate(self.conv(torch.cat([x, spread], dim=1)))
        return activate(self.linear(x.flatten(1)))

    def maps(self, x: Tensor) -> Tensor:
        """[B, F, 4, 4]."""
        maps: Tensor = self.blocks(activate(self.from_image(x)))
        return maps


def deviation(groups: Tensor) -> Tensor:
    """The mean standard deviation within each of M groups of G images, [G, M, F, 4, 4] -> [M]."""
    variance = groups.float().var(dim=0, correction=0)
    return (variance + EPSILON).sqrt().mean(dim=(1, 2, 3))


class StyleDiscriminator(Discriminator):
    """A D that sees each image beside others."""

    trunk: Trunk

    def set_references(self, images: Tensor) -> None:
        self.trunk.references.copy_(images.reshape_as(self.trunk.references))


# --- both -----------------------------------------------------------------------------------------


def discriminator(
    config: StyleGAN2, channels: int, size: int, heads: Mapping[str, int]
) -> StyleDiscriminator:
    trunk = Trunk(config, channels, size)
    return StyleDiscriminator(trunk, trunk.n_features, heads, EqualLinear)


def build(
    config: StyleGAN2, shape: tuple[int, ...], heads: Mapping[str, int]
) -> tuple[nn.Module, Discriminator]:
    if shape[1:] not in [(size, size) for size in config.sizes]:
        raise UserError(
            "StyleGAN2 is for square images of a power-of-two side from 32 to 1024, not for "
            f"samples of shape {shape}; give such a --data.size, or take another network"
        )
    channels, size, _ = shape
    return Generator(config, channels, size), discriminator(config, channels, size, heads)
