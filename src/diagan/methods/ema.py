"""An exponential moving average of G's weights, which makes better images than G itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from diagan.game import Moment, Observer, Parts

PREFIX = "ema."


@dataclass(frozen=True)
class EMA:
    """Kept beside the game, which does not notice; saved with it as `ema.` and the weight's name.

    Of parameters only, as StyleGAN2 does (FACTS 6): who draws with them settles BatchNorm first.
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
