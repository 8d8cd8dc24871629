"""Differentiable augmentation (Zhao et al. 2020): D sees altered reals and fakes, G learns through
the alteration, and D cannot learn few images by heart."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diagan.game import Parts, Turn, View


@dataclass(frozen=True)
class Augment:
    """The same policy for real and fake, a draw of its own for every image that D is shown.

    `translation` and `cutout` are shares of the side. Recording goes past the views, un-augmented.
    """

    colour: bool
    translation: float
    cutout: float

    def parts(self) -> Parts:
        is_on = self.colour or self.translation > 0 or self.cutout > 0
        return Parts(views=(View(0, self.alter),)) if is_on else Parts()

    def alter(self, images: Tensor, turn: Turn) -> Tensor:
        purpose = f"augment/{turn.player}/{turn.n_scored}"
        u = turn.draws.uniforms(purpose, turn.position, rows=7, n=len(images))
        if self.colour:
            images = recolour(images, u[0] - 0.5, 2 * u[1], u[2] + 0.5)
        height, width = images.shape[2:]
        if self.translation > 0:
            reach = (round(height * self.translation), round(width * self.translation))
            images = shift(images, integers(u[3], -reach[0], reach[0]),
                           integers(u[4], -reach[1], reach[1]))  # fmt: skip
        if self.cutout > 0:
            hole = (round(height * self.cutout), round(width * self.cutout))
            images = cut_out(images, integers(u[5], 0, height), integers(u[6], 0, width), hole)
        return images


def integers(u: Tensor, low: int, high: int) -> Tensor:
    """From [0, 1) to the integers from low to high, both included."""
    return (low + (u * (high - low + 1)).floor()).long()


def recolour(images: Tensor, brightness: Tensor, saturation: Tensor, contrast: Tensor) -> Tensor:
    """Brightness is added, saturation is about the mean of each pixel's channels, contrast about
    that of the image; one of each per image [B]."""
    b, s, c = (value.view(-1, 1, 1, 1) for value in (brightness, saturation, contrast))
    images = images + b
    grey = images.mean(dim=1, keepdim=True)
    images = grey + s * (images - grey)
    mean = images.mean(dim=(1, 2, 3), keepdim=True)
    return mean + c * (images - mean)


def shift(images: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Each image moved by pixels [B] of its own; what moves in is 0, a mid grey."""
    batch, _, height, width = images.shape
    y = torch.arange(height, device=images.device) - down[:, None]  # [B, H], where from
    x = torch.arange(width, device=images.device) - right[:, None]
    is_inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None, :]
    image = torch.arange(batch, device=images.device)[:, None, None]
    y, x = y.clamp(0, height - 1)[:, :, None], x.clamp(0, width - 1)[:, None, :]
    moved = images.permute(0, 2, 3, 1)[image, y, x]  # [B, H, W, C]
    return (moved * is_inside[..., None]).permute(0, 3, 1, 2).contiguous()


def cut_out(images: Tensor, y: Tensor, x: Tensor, hole: tuple[int, int]) -> Tensor:
    """A hole of 0 with its centre at rows y [B] and columns x [B]; it may reach over the edge."""
    top, left = y - hole[0] // 2, x - hole[1] // 2
    rows = torch.arange(images.shape[2], device=images.device) - top[:, None]  # [B, H]
    columns = torch.arange(images.shape[3], device=images.device) - left[:, None]
    in_rows, in_columns = (rows >= 0) & (rows < hole[0]), (columns >= 0) & (columns < hole[1])
    return images * ~(in_rows[:, None, :, None] & in_columns[:, None, None, :])
