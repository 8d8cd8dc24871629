"""The rotation task of SSGAN (Chen et al. 2019): D also tells by how much an image was turned."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from diagan.game import Parts, Term, Turn


@dataclass(frozen=True)
class Rotation:
    """Cross-entropy of D's rotation head: on turned reals for D, on turned fakes for G.

    A forward of its own, whose GAN logit nobody looks at (FACTS 5).
    """

    d: float
    g: float

    def parts(self) -> Parts:
        if self.d == 0:
            return Parts()
        return Parts(
            d_terms=(Term("rotation", on_reals, self.d),),
            g_terms=(Term("rotation", on_fakes, self.g),),
            heads={"rotation": 4},
            needs_one_score_per_image="the rotation task",
        )


def on_reals(turn: Turn) -> Tensor:
    assert turn.real is not None
    return task(turn, turn.real)


def on_fakes(turn: Turn) -> Tensor:
    return task(turn, turn.fake)


def task(turn: Turn, images: Tensor) -> Tensor:
    turned, quarters = turn_round(images)
    return F.cross_entropy(turn.score(turned).heads["rotation"], quarters)


def turn_round(images: Tensor) -> tuple[Tensor, Tensor]:
    """Images [B, C, S, S], of which the i-th is turned by floor(4 i / B) quarters against the
    clock, and these quarters [B]: as many images as before, not four times as many."""
    quarters = torch.arange(len(images), device=images.device) * 4 // len(images)
    parts = [images[quarters == k].rot90(k, dims=(2, 3)) for k in range(4)]
    return torch.cat(parts), quarters
