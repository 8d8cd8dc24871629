from dataclasses import replace
from math import sqrt

import pytest
import torch
from playing import close, game_of, gradient, nets, turn_of
from tiny import DIGITS, POINTS, same, world_of
from torch import nn

from diagan import checkpoint
from diagan import config as configs
from diagan.config import Penalty
from diagan.errors import UserError
from diagan.game import Parts, Turn, g_loss
from diagan.losses import non_saturating
from diagan.methods.penalties import PathLength, path_lengths
from diagan.random import generator
from diagan.stages import stages, train_stage
from diagan.train import train


def with_penalty(config, weight=2.0, every=4):
    return replace(config, penalty=Penalty(path_length=weight, path_every=every))


class Diagonal(nn.Module):
    """G(z) = (a z1^2, 3 z2): J^T y is (2 a z1 y1, 3 y2)."""

    def __init__(self, a: float) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float64))

    def forward(self, z):
        return torch.stack([self.a * z[:, 0] ** 2, 3 * z[:, 1]], dim=1)


LATENTS = torch.tensor([[1.0, 5.0], [0.0, 2.0], [-2.0, 0.0], [0.5, 1.0]], dtype=torch.float64)


class Draws:
    """Always the same latents."""

    def latents(self, purpose, position, n=None):
        return LATENTS[:n]

    def generator(self, purpose, position):
        return generator(0, purpose, 0)


def turn_with(g: nn.Module) -> Turn:
    return Turn(0, 0, "G", g, None, LATENTS, LATENTS, Draws())


def lengths_by_hand() -> list[float]:
    y = torch.randn(4, 2, generator=generator(0, "path", 0), dtype=torch.float64).tolist()
    return [sqrt((z1 * y1) ** 2 + 9 * y2**2) for (z1, _), (y1, y2) in zip(LATENTS.tolist(), y)]


def test_by_hand_on_a_batch_of_four():
    found = path_lengths(Diagonal(0.5), LATENTS, generator(0, "path", 0))
    assert found.tolist() == pytest.approx(lengths_by_hand(), abs=1e-6)
    parts = PathLength(2.0, interval=4, n_latents=4).parts()
    (term,) = parts.g_terms
    assert (term.weight, term.interval) == (8.0, 4)
    lengths, mean = lengths_by_hand(), 0.0
    for _ in range(2):  # the running mean moves by a hundredth of the way each time
        mean += 0.01 * (sum(lengths) / 4 - mean)
        penalty = sum((length - mean) ** 2 for length in lengths) / 4
        assert term.value(turn_with(Diagonal(0.5))).item() == pytest.approx(penalty, rel=1e-5)
        assert parts.state["path_length.mean"].item() == pytest.approx(mean, rel=1e-5)


def test_the_direction_has_unit_length_on_average_whatever_the_image():
    """Of G(z) = z as an image, |J^T y| is |y|: about sqrt(channels), at any side."""

    class Image(nn.Module):
        def forward(self, z):
            return z.view(-1, 3, 16, 16)

    found = path_lengths(Image(), torch.randn(32, 3 * 256), generator(0, "y", 0))
    assert found.mean().item() == pytest.approx(sqrt(3), rel=0.03)


def test_with_styles_it_is_the_mean_over_the_layers():
    class Styled(nn.Module):
        def styles(self, latents):
            return torch.stack([latents, 2 * latents], dim=1)  # [B, 2, 2]

        def synthesise(self, styles):
            return styles[:, 0] + 5 * styles[:, 1]

    found = path_lengths(Styled(), LATENTS.clone().requires_grad_(), generator(0, "y", 0))
    y = torch.randn(4, 2, generator=generator(0, "y", 0), dtype=torch.float64)
    assert torch.allclose(found, y.norm(dim=1) * sqrt((1 + 25) / 2), atol=1e-6)


def test_its_own_gradient_is_right():
    torch.manual_seed(0)
    g = nn.Sequential(nn.Linear(2, 4), nn.Softplus(), nn.Linear(4, 3)).double()
    names = [name for name, _ in g.named_parameters()]

    def value(*parameters):
        named = dict(zip(names, parameters))

        def of(z):
            return torch.func.functional_call(g, named, (z,))

        lengths = path_lengths(of, LATENTS, generator(0, "y", 0))
        return (lengths - 0.1).square().mean()

    parameters = tuple(p.detach().clone().requires_grad_() for p in g.parameters())
    assert torch.autograd.gradcheck(value, parameters)
    assert torch.autograd.gradgradcheck(value, parameters, atol=1e-4)


@pytest.mark.parametrize("w", [0.5, 3.0])
def test_it_adds_its_gradient_to_that_of_the_plain_gan(w):
    game = game_of(POINTS)

    def parts() -> Parts:
        return PathLength(w, 1, n_latents=4).parts()  # its running mean begins anew

    turn = turn_of(game, "G")
    plain = gradient(game.g.net, g_loss(turn, Parts(), non_saturating))
    own = gradient(game.g.net, parts().g_terms[0].value(turn))
    both = gradient(game.g.net, g_loss(turn, parts(), non_saturating))
    assert own.abs().max() > 0
    assert close(both, plain + w * own)


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_of_weight_zero_it_is_the_plain_gan_bit_for_bit(config):
    game, plain = game_of(with_penalty(config, weight=0.0)), game_of(config)
    assert game.parts.g_terms == () and game.parts.state == {}
    for each in (game, plain):
        assert train(each, until=1)
    assert same(nets(game), nets(plain))


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
@pytest.mark.parametrize("every", [1, 2])
def test_only_g_is_penalised_and_the_mean_is_kept(config, every):
    game, plain = game_of(with_penalty(config, every=every)), game_of(config)
    for each in (game, plain):
        assert train(each, until=1)
    assert same(game.d.net.state_dict(), plain.d.net.state_dict())
    assert not same(game.g.net.state_dict(), plain.g.net.state_dict())
    assert game.parts.state["path_length.mean"] > 0


def test_the_running_mean_is_taken_into_phase_2(tmp_path):
    config = with_penalty(POINTS, every=2)
    world = world_of(config, tmp_path)
    means = []
    for stage in stages(config)[:2]:
        assert train_stage(world, stage, None, lambda: False)
        name = checkpoint.folder_name(stage.name, stage.end)
        state = checkpoint.load(world.run.checkpoints / name)["state"]
        means.append(state["path_length.mean"].item())
    assert 0 < 1.5 * means[0] < means[1]  # begun anew it would be about the same


def test_settings_that_cannot_be():
    with pytest.raises(UserError, match=r"--penalty.path-length -1.0: expected 0 or more"):
        configs.check(with_penalty(POINTS, weight=-1.0))
    with pytest.raises(UserError, match=r"--penalty.path-every 0: expected at least 1"):
        configs.check(with_penalty(POINTS, every=0))
