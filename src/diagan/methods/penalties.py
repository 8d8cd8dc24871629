"""Penalties on gradients: of D at the reals, which keeps its logit smooth between the samples, and
of G in its styles, which lets an image change evenly with them."""

from dataclasses import dataclass
from math import prod
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from diagan.game import Parts, Term, Turn


@dataclass(frozen=True)
class R1:
    """gamma / 2 times the mean squared norm of D's gradient at the reals (Mescheder et al. 2018).

    With an interval it is `lazy`: a step of its own now and then, and stronger by as much.
    """

    gamma: float
    interval: int = 1

    def parts(self) -> Parts:
        weight = self.gamma / 2 * self.interval
        return Parts(d_terms=(Term("r1", squared_gradient, weight, self.interval),))


def squared_gradient(turn: Turn) -> Tensor:
    """E |grad_x D(x)|^2 over the reals, in float32: its own gradient needs the digits."""
    assert turn.real is not None
    real = turn.real.detach().requires_grad_()
    with torch.autocast(real.device.type, enabled=False):
        logits = turn.score(real).logits
        (gradient,) = torch.autograd.grad(logits.sum(), real, create_graph=True)
    return gradient.square().flatten(1).sum(dim=1).mean()


PATH_DECAY = 0.01  # what the running mean takes of a new one (FACTS 6)


@dataclass(frozen=True)
class PathLength:
    """Draws the length of G's gradient in its styles to its running mean (Karras et al. 2020).

    On latents of its own, fewer than a batch of the game has; lazy, as R1 is.
    """

    weight: float
    interval: int
    n_latents: int

    def parts(self) -> Parts:
        if self.weight == 0:
            return Parts()
        mean = torch.zeros(())  # the running mean, of all updates so far

        def value(turn: Turn) -> Tensor:
            latents = turn.draws.latents("path", turn.position, self.n_latents)
            directions = turn.draws.generator("path", turn.position)
            lengths = path_lengths(turn.g, latents, directions)
            new = mean + PATH_DECAY * (lengths.mean() - mean)
            mean.copy_(new.detach())
            return (lengths - new).square().mean()

        term = Term("path length", value, self.weight * self.interval, self.interval)
        return Parts(g_terms=(term,), state={"path_length.mean": mean})


@runtime_checkable
class Styled(Protocol):
    """A generator that makes an image of styles [B, L, F], one a layer, and these of latents."""

    def styles(self, latents: Tensor) -> Tensor: ...
    def synthesise(self, styles: Tensor) -> Tensor: ...


def path_lengths(g: nn.Module, latents: Tensor, directions: torch.Generator) -> Tensor:
    """|J^T y| of each image [B], y a random image of about unit length; in float32, as for R1.

    J is the derivative in the styles, over whose layers is averaged; in a generator that has none,
    in the latents.
    """
    with torch.autocast(latents.device.type, enabled=False):
        if isinstance(g, Styled):
            styles = g.styles(latents)
            images = g.synthesise(styles)
        else:
            styles = latents.clone().requires_grad_()
            images = g(styles)
        y = torch.randn(images.shape, generator=directions, dtype=images.dtype).to(images.device)
        y = y / prod(images.shape[2:]) ** 0.5
        (gradient,) = torch.autograd.grad((images * y).sum(), styles, create_graph=True)
    squared = gradient.square().sum(dim=-1).view(len(latents), -1).mean(dim=1)
    return (squared + 1e-8).sqrt()  # the root has no slope at zero
