"""The loop. It plays the game that `game.Parts` describes, and names no method."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from diagan.engine import across
from diagan.errors import Diverged
from diagan.game import Fakes, Moment, Parts, Term, Turn, d_loss, g_loss
from diagan.losses import Loss
from diagan.random import generator, seed_torch


class Stream(Protocol):
    """Dataset indices by position."""

    def take(self, start: int, count: int) -> np.ndarray: ...


@dataclass
class Player:
    """A network with its optimiser; a discriminator also has its stream of reals."""

    name: str
    net: nn.Module
    optimiser: torch.optim.Optimizer
    loss: Loss
    stream: Stream | None = None
    fakes: Fakes = "shared"
    joint: bool = False
    rate: float = 1.0  # times the game's learning rate


@dataclass(frozen=True)
class Draws:
    """Randomness as a function: the same on every process, of which each takes its slice."""

    seed: int
    fabric: Fabric
    values: Tensor  # the dataset, as it is stored
    as_input: Callable[[Tensor], Tensor]
    batch_size: int
    n_latent: int

    def generator(self, purpose: str, position: int) -> torch.Generator:
        return generator(self.seed, purpose, position)

    def latents(self, purpose: str, position: int, n: int | None = None) -> Tensor:
        shape = (n or self.batch_size, self.n_latent)
        z = torch.randn(shape, generator=self.generator(f"latents/{purpose}", position))
        return self._slice(z).to(self.fabric.device)

    def uniforms(self, purpose: str, position: int, rows: int, n: int) -> Tensor:
        """In [0, 1), [rows, n]: a column for each of this process's n samples of a batch."""
        shape = (rows, n * self.fabric.world_size)
        u = torch.rand(shape, generator=self.generator(purpose, position))
        return self._slice(u.T).T.to(self.fabric.device)

    def reals(self, stream: Stream, position: int) -> tuple[Tensor, Tensor]:
        """Indices and samples of the batch at a position of a stream."""
        taken = stream.take(position * self.batch_size, self.batch_size)
        indices = self._slice(torch.from_numpy(taken))
        return indices, self.as_input(self.values[indices].to(self.fabric.device))

    def noise(self, purpose: str, position: int) -> None:
        """Seed what networks draw inside their forward (dropout): no draw shifts another."""
        rank = self.fabric.global_rank
        seed_torch(self.seed, f"noise/{purpose}", position, rank)

    def _slice(self, batch: Tensor) -> Tensor:
        return batch[self.fabric.global_rank :: self.fabric.world_size]


@dataclass
class Game:
    """The state of training: who plays, how, and how far it has come."""

    g: Player
    d: Player
    critics: list[Player]
    parts: Parts
    draws: Draws
    n_dis: int
    learning_rate: Callable[[int], float]
    step: int = 0

    @property
    def players(self) -> list[Player]:
        return [self.g, self.d, *self.critics]


def train(game: Game, until: int, should_stop: Callable[[], bool] = lambda: False) -> bool:
    """Play until `until` generator steps are done; False where it was asked to stop before."""
    fabric = game.draws.fabric
    for player in game.players:
        player.net.train()
    while game.step < until:
        if agreed(fabric, should_stop()):
            return False
        losses, turns = play_step(game)
        if bad := [name for name, value in losses.items() if not np.isfinite(value)]:
            raise Diverged(bad[0], "loss", game.step + 1)
        game.step += 1
        moment = Moment(game.step, turns, losses, is_last=game.step == until)
        for observer in game.parts.observers:
            if observer.due(moment):
                observer.look(moment)
    return True


def play_step(game: Game) -> tuple[dict[str, float], list[Turn]]:
    """One generator step: n_dis times D and the further critics, then G."""
    for player in game.players:
        for group in player.optimiser.param_groups:
            group["lr"] = player.rate * game.learning_rate(game.step)
    losses: dict[str, Tensor] = {}
    turns: list[Turn] = []
    for position in range(game.step * game.n_dis, (game.step + 1) * game.n_dis):
        shared = fakes(game, "D", position)
        for player in (game.d, *game.critics):
            latents, fake = opposed(game, player, position, shared)
            turn = Turn(game.step, position, player.name, game.g.net, player.net, fake, latents,
                        game.draws, game.parts.views, player.joint)  # fmt: skip
            assert player.stream is not None
            turn.indices, turn.real = game.draws.reals(player.stream, position)
            losses[player.name] = update(game, player, turn, game.parts.d_terms, d_loss)
            turns.append(turn)
    with frozen(game.d.net):
        latents, fake = fakes(game, "G", game.step, with_graph=True)
        turn = Turn(game.step, game.step, "G", game.g.net, game.d.net, fake, latents,
                    game.draws, game.parts.views)  # fmt: skip
        losses["G"] = update(game, game.g, turn, game.parts.g_terms, g_loss)
        turns.append(turn)
    # One synchronisation a step. The mean over the processes: where one has a NaN, all stop.
    values = across(game.draws.fabric, torch.stack(list(losses.values())), "mean")
    return dict(zip(losses, values.tolist())), turns


def opposed(
    game: Game, player: Player, position: int, shared: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Latents, and what a discriminator tells its reals from."""
    if player.fakes == "own":
        return fakes(game, player.name, position)
    if player.fakes == "reals":
        assert game.d.stream is not None
        return shared[0], game.draws.reals(game.d.stream, position)[1]
    return shared


def fakes(game: Game, who: str, position: int, with_graph: bool = False) -> tuple[Tensor, Tensor]:
    """Latents and G's samples of them; a graph only where G learns from it."""
    latents = game.draws.latents(who, position)
    game.draws.noise(f"fake/{who}", position)
    with torch.set_grad_enabled(with_graph), game.draws.fabric.autocast():
        return latents, game.g.net(latents).float()


def update(
    game: Game,
    player: Player,
    turn: Turn,
    terms: Sequence[Term],
    loss_of: Callable[[Turn, Parts, Loss], Tensor],
) -> Tensor:
    """One optimiser step on the loss, and one more for each term whose interval has come."""
    game.draws.noise(player.name, turn.position)
    with game.draws.fabric.autocast():
        loss = loss_of(turn, game.parts, player.loss)
    descend(game.draws.fabric, player, loss)
    for term in terms:
        if term.interval > 1 and turn.position % term.interval == 0:
            with game.draws.fabric.autocast():
                extra = term.weight * term.value(turn)
            descend(game.draws.fabric, player, extra)
    return loss.detach()


def descend(fabric: Fabric, player: Player, loss: Tensor) -> None:
    player.optimiser.zero_grad(set_to_none=True)
    loss.backward()
    average_gradients(fabric, player.net)
    player.optimiser.step()


def average_gradients(fabric: Fabric, net: nn.Module) -> None:
    """One flat all-reduce. D is called several times a step, which DDP's hooks do not bear."""
    if fabric.world_size == 1:
        return
    grads = [p.grad for p in net.parameters() if p.grad is not None]
    flat = across(fabric, torch.cat([g.flatten() for g in grads]), "mean")
    for grad, mean in zip(grads, flat.split([g.numel() for g in grads])):
        grad.copy_(mean.view_as(grad))


def agreed(fabric: Fabric, flag: bool) -> bool:
    """Whether any process says so: all of them must leave the loop at the same step."""
    if fabric.world_size == 1:
        return flag
    return bool(across(fabric, torch.tensor(float(flag)), "sum") > 0)


@contextmanager
def frozen(net: nn.Module) -> Iterator[None]:
    """No gradients for D's weights while G learns through it: half of D's backward is saved."""
    net.requires_grad_(False)
    try:
        yield
    finally:
        net.requires_grad_(True)


def share_buffers(fabric: Fabric, net: nn.Module) -> None:
    """Rank 0's BatchNorm statistics for all, before anything is recorded or saved."""
    if fabric.world_size > 1:
        for buffer in net.buffers():
            buffer.copy_(fabric.broadcast(buffer, src=0))
