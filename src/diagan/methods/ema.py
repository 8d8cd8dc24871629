"""An exponential moving average of G's weights, which makes better images than G itself."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from diagan.game import Moment, Observer, Parts

PREFIX = "ema."
N_SETTLING, SETTLING_BATCH = 10, 64
BATCHNORM = (nn.BatchNorm1d, nn.BatchNorm2d)


@dataclass(frozen=True)
class EMA:
    """Kept beside the game, which does not notice; saved with it as `ema.` and the weight's name.

    Of parameters only, as StyleGAN2 does (FACTS 6); `settle` sees to BatchNorm's statistics.
    """

    decay: float
    g: nn.Module

    def parts(self) -> Parts:
        if self.decay == 0:
            return Parts()
        state = {f"{PREFIX}{name}": p.detach().clone() for name, p in self.g.named_parameters()}

        def look(moment: Moment) -> None:
            for average, weight in zip(state.values(), self.g.parameters()):
                average.lerp_(weight.detach(), 1 - self.decay)

        return Parts(state=state, observers=(Observer("ema", look),))


def averages(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The averages among the tensors that methods keep, by the names of the weights."""
    kept = (name for name in state if name.startswith(PREFIX))
    return {name.removeprefix(PREFIX): state[name] for name in kept}


@torch.no_grad()
def settle(g: nn.Module, n_latent: int) -> None:
    """Take BatchNorm's statistics anew: those that G kept are not those of averaged weights."""
    norms = [module for module in g.modules() if isinstance(module, BATCHNORM)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean of all batches
    source = torch.Generator().manual_seed(0)
    device = next(g.parameters()).device
    for _ in range(N_SETTLING if norms else 0):
        g.train()(torch.randn(SETTLING_BATCH, n_latent, generator=source).to(device))
    g.eval()
