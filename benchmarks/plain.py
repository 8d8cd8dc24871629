"""The DCGAN step as the published code does it, to compare with.

float32, nn.Dropout, D's gradients also computed in G's step, fakes for D made with a graph.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from diagan.config import Config
from diagan.networks.common import Dropout
from diagan.stages import Stage, new_game
from diagan.train import Game


def swap_dropout(module: nn.Module, p: float) -> None:
    for name, child in module.named_children():
        if isinstance(child, Dropout):
            setattr(module, name, nn.Dropout(p))
        else:
            swap_dropout(child, p)


class PlainStep:
    """The same networks, start, data and latents as a Game; another way to step."""

    def __init__(self, config: Config, dataset, fabric) -> None:
        config = replace(config, precision="float32")
        self.game: Game = new_game(config, dataset, fabric, Stage("plain", 0, config.steps))
        swap_dropout(self.game.d.net, config.network.dropout)
        self.optimisers = {
            player.name: torch.optim.Adam(
                player.net.parameters(), config.optim.lr, config.optim.betas, foreach=False
            )
            for player in self.game.players
        }

    def __call__(self) -> dict[str, float]:
        game, step = self.game, self.game.step
        g, d = game.g.net, game.d.net
        for optimiser in self.optimisers.values():
            for group in optimiser.param_groups:
                group["lr"] = game.learning_rate(step)
        _, real = game.draws.reals(game.d.stream, step)
        game.draws.noise("plain", step)
        fake = g(game.draws.latents("D", step)).detach()
        real_logits, fake_logits = d(real).logits, d(fake).logits
        ones, zeros = torch.ones_like(real_logits), torch.zeros_like(real_logits)
        loss_d = F.binary_cross_entropy_with_logits(real_logits, ones)
        loss_d = loss_d + F.binary_cross_entropy_with_logits(fake_logits, zeros)
        self.optimisers["D"].zero_grad()
        loss_d.backward()
        self.optimisers["D"].step()
        logits = d(g(game.draws.latents("G", step))).logits
        loss_g = F.binary_cross_entropy_with_logits(logits, ones)
        self.optimisers["G"].zero_grad()
        loss_g.backward()
        self.optimisers["G"].step()
        game.step += 1
        return {
            "loss_D": loss_d.item(),
            "loss_G": loss_g.item(),
            "d_real": real_logits.sigmoid().mean().item(),
            "d_fake": fake_logits.sigmoid().mean().item(),
        }
