"""What the tests of methods share: a game, its turns, and gradients."""

import numpy as np
import torch
from tiny import data_of
from torch import Tensor, nn

from diagan.config import Config
from diagan.engine import launch
from diagan.game import Turn
from diagan.networks import Scores
from diagan.stages import Stage, new_game
from diagan.train import Game

PHASE1 = Stage("phase1", 0, 6)
PLAIN = Stage("plain", 6, 12)
WEIGHTED = Stage("weighted", 6, 12, weighted=True)


def game_of(config: Config, stage: Stage = PHASE1) -> Game:
    """The players of a stage as a run has them, with uniform weights."""
    data = data_of(config)
    return new_game(config, data, launch(config), stage, np.ones(data.n))


class Itself(nn.Module):
    """A discriminator whose logit is the sample: losses can be worked by hand."""

    def forward(self, x: Tensor) -> Scores:
        return Scores(x.flatten(), x, {})


def turn_of(game: Game, player: str, position: int = 0) -> Turn:
    """A turn of D or G as the loop makes it; only G's fakes have a graph."""
    latents = game.draws.latents(player, position)
    with torch.set_grad_enabled(player == "G"):
        fake = game.g.net(latents)
    turn = Turn(position, position, player, game.g.net, game.d.net, fake, latents, game.draws,
                game.parts.views)  # fmt: skip
    if player != "G":
        turn.indices, turn.real = game.draws.reals(game.d.stream, position)
    return turn


def gradient(net: nn.Module, loss: Tensor) -> Tensor:
    """Of a loss in all parameters of a network, zero where it does not reach."""
    grads = torch.autograd.grad(loss, list(net.parameters()), retain_graph=True, allow_unused=True,
                                materialize_grads=True)  # fmt: skip
    return torch.cat([g.flatten() for g in grads])


def close(mine: Tensor, other: Tensor) -> bool:
    return torch.allclose(mine, other, rtol=1e-4, atol=1e-6)


def nets(game: Game) -> dict[str, Tensor]:
    """All tensors of all players."""
    return {f"{p.name}.{k}": v for p in game.players for k, v in p.net.state_dict().items()}
