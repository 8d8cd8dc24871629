"""An exponential moving average of G's weights, which makes better images than G itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from diagan.game import Moment, Observer, Parts

PREFIX = "ema."


@dataclass(frozen=True)
class EMA:
    """Kept beside the game, which does not notice; saved with it as `ema.` and the weight's name.

    Of parameters only; buffers, such as BatchNorm's statistics, are G's own (FACTS 6).
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


def averaged(g: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a G, with the average of its weights where one was kept."""
    return {name: state.get(f"{PREFIX}{name}", tensor) for name, tensor in g.items()}
