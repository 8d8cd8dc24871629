"""PacGAN (Lin et al. 2018): D scores several images at once, and so sees how much they vary."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diagan.errors import UserError
from diagan.game import Parts, Turn, View


@dataclass(frozen=True)
class Packing:
    """The batch is cut into `images` parts, which lie one above the other as D's channels."""

    images: int

    def parts(self) -> Parts:
        if self.images == 1:
            return Parts()
        return Parts(views=(View(1, self.pack),), images_per_score=self.images)

    def pack(self, images: Tensor, turn: Turn) -> Tensor:
        """[B, C, ...] -> [B / images, C * images, ...]; of 64 images 0 and 32 are a pack of two."""
        if turn.joint or len(images) % self.images:
            raise UserError(
                f"{len(images)} images cannot be packed by {self.images} without mixing real and "
                "fake or leaving some out; change the batch size, or leave --methods.packing out"
            )
        return torch.cat(images.chunk(self.images), dim=1)
