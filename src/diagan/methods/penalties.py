"""Penalties on D's gradient, which keep its logit smooth between the samples."""

from dataclasses import dataclass

import torch
from torch import Tensor

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
