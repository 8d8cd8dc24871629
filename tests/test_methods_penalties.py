from dataclasses import replace

import pytest
import torch
from tiny import DIGITS, POINTS, data_of, same
from torch import nn

from diagan.config import Penalty
from diagan.engine import launch
from diagan.game import Parts, Turn, compose, d_loss
from diagan.losses import non_saturating
from diagan.methods.penalties import R1, squared_gradient
from diagan.networks import Scores
from diagan.stages import Stage, new_game, stage_methods
from diagan.train import train

WEIGHTED = Stage("weighted", 0, 6, weighted=True)


def game_of(config, penalty):
    config, data = replace(config, penalty=penalty), data_of(config)
    return new_game(config, data, launch(config), WEIGHTED, torch.ones(data.n).numpy())


def turn_of(d: nn.Module, real: torch.Tensor) -> Turn:
    return Turn(0, 0, "D", nn.Identity(), d, real, real, draws=None, real=real)


class Quadratic(nn.Module):
    """D(x) = a x1^2 + x2: its gradient is (2 a x1, 1)."""

    def __init__(self, a: float) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float64))

    def forward(self, x):
        return Scores(self.a * x[:, 0] ** 2 + x[:, 1], x, {})


def test_by_hand_on_a_batch_of_four():
    real = torch.tensor([[1.0, 5.0], [0.0, 2.0], [-2.0, 0.0], [0.5, 1.0]], dtype=torch.float64)
    # 1 + 4 a^2 x1^2 with a = 0.5: 2, 1, 5, 1.25
    assert squared_gradient(turn_of(Quadratic(0.5), real)).item() == pytest.approx(9.25 / 4)
    (term,) = R1(gamma=3.0, interval=16).parts().d_terms
    assert (term.weight, term.interval) == (24.0, 16)


def test_its_own_gradient_is_right():
    torch.manual_seed(0)
    d = nn.Sequential(nn.Linear(3, 4), nn.Softplus(), nn.Linear(4, 1)).double()
    real = torch.randn(4, 3, dtype=torch.float64)

    def value(*parameters):
        named = dict(zip((name for name, _ in d.named_parameters()), parameters))

        def scores(x):
            return Scores(torch.func.functional_call(d, named, (x,)).squeeze(1), x, {})

        return squared_gradient(turn_of(scores, real))

    parameters = tuple(p.detach().clone().requires_grad_() for p in d.parameters())
    assert torch.autograd.gradcheck(value, parameters)
    assert torch.autograd.gradgradcheck(value, parameters, atol=1e-4)


def test_it_adds_its_gradient_to_that_of_the_plain_gan():
    game = game_of(POINTS, Penalty())
    latents = game.draws.latents("D", 0)
    _, real = game.draws.reals(game.d.stream, 0)
    turn = Turn(0, 0, "D", game.g.net, game.d.net, game.g.net(latents).detach(), latents,
                game.draws, real=real)  # fmt: skip

    def gradient(loss):
        grads = torch.autograd.grad(loss, list(game.d.net.parameters()), allow_unused=True,
                                    materialize_grads=True)  # fmt: skip
        return torch.cat([g.flatten() for g in grads])

    plain = gradient(d_loss(turn, Parts(), non_saturating))
    own = gradient(squared_gradient(turn))
    both = gradient(d_loss(turn, R1(gamma=0.6).parts(), non_saturating))
    assert own.abs().max() > 0
    assert torch.allclose(both, plain + 0.3 * own, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_of_weight_zero_it_is_the_plain_gan_bit_for_bit(config):
    assert game_of(config, Penalty()).parts.d_terms == ()


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
@pytest.mark.parametrize("every", [1, 2])
def test_d_and_the_critic_are_both_penalised(config, every):
    plain, other = game_of(config, Penalty()), game_of(config, Penalty(r1=1.0, every=every))
    for game in (plain, other):
        assert train(game, until=2)
    for mine, its in zip(plain.players[1:], other.players[1:]):
        assert not same(mine.net.state_dict(), its.net.state_dict())


@pytest.mark.parametrize("stage, since, has", [
    (Stage("phase1", 0, 6), "phase1", True), (Stage("phase1", 0, 6), "phase2", False),
    (Stage("plain", 6, 12), "phase2", True),
    (Stage("weighted", 6, 12, weighted=True), "phase2", True),
])  # fmt: skip
def test_it_can_wait_for_phase_2(stage, since, has):
    config = replace(POINTS, penalty=Penalty(r1=1.0, r1_from=since))
    terms = compose([method.parts() for method in stage_methods(config, stage, n=40)]).d_terms
    assert [term.name for term in terms] == ["r1"] * has
