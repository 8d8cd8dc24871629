from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import close, game_of, gradient, nets, turn_of
from tiny import DIGITS, POINTS, same, world_of
from torch import nn

from diagan import checkpoint
from diagan import config as configs
from diagan.config import Inclusive as Settings
from diagan.config import Methods
from diagan.errors import UserError
from diagan.game import Parts, Turn, g_loss
from diagan.losses import non_saturating
from diagan.methods import inclusive
from diagan.methods.inclusive import Inclusive, Pairing
from diagan.random import generator
from diagan.stages import player_methods, stages, train_stage
from diagan.train import train


def with_inclusive(config, weight=10.0, interpolation=4.0, **also):
    how = Settings(weight, interpolation, **also)
    return replace(config, methods=Methods(inclusive=how))


class Draws:
    """No noise on latents; everything else as a run has it."""

    def latents(self, purpose, position, n=None):
        return torch.zeros(2, 1)

    def generator(self, purpose, position):
        return generator(0, purpose, position)

    def uniforms(self, purpose, position, rows, n):
        return torch.rand(rows, n, generator=self.generator(purpose, position))


def method(values, reals=None, n_candidates=64, n_latent=1) -> Inclusive:
    return Inclusive(1.0, 1.0, n_candidates, 1, 3, values, lambda x: x, reals, n_latent)


def turn_with(g: nn.Module) -> Turn:
    latents = torch.zeros(2, 1)
    return Turn(0, 0, "G", g, None, latents, latents, Draws())


def test_by_hand_on_a_batch_of_four():
    """G(z) = (2 z, 0) for reals (3, 4), (0, 0) and (0, 1), (-1, 0), whose latents are 1, 0, 2, -1;
    a distance is divided by sqrt(2), the root of the number of values."""

    class G(nn.Module):
        def forward(self, z):
            return torch.cat([2 * z, 0 * z], dim=1)

    values = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    batches = [torch.tensor([0, 1]), torch.tensor([2, 3])]
    how = method(values, reals=lambda position: (batches[position], values[batches[position]]))
    pairing = Pairing(how, torch.tensor([[1.0], [0.0], [2.0], [-1.0]]))
    turn = turn_with(G())
    # fakes (2, 0), (0, 0), (4, 0), (-2, 0) are sqrt(17), 0, sqrt(17), 1 away
    expected = (2 * 17**0.5 + 1) / 4 / 2**0.5
    assert pairing.reconstruction(turn).item() == pytest.approx(expected, abs=1e-4)
    a, b = torch.rand(2, generator=generator(0, "inclusive/shares", 0)).tolist()
    # between 1 and 2: z = 2 - a, so (4 - 2a, 0); between 0 and -1: z = b - 1, so (2b - 2, 0)
    first = a * ((1 - 2 * a) ** 2 + 16) ** 0.5 + (1 - a) * ((4 - 2 * a) ** 2 + 1) ** 0.5
    second = b * abs(2 * b - 2) + (1 - b) * abs(2 * b - 1)
    expected = (first + second) / 2 / 2**0.5
    assert pairing.between(turn).item() == pytest.approx(expected, abs=1e-4)


@settings(max_examples=15)
@given(n=st.integers(1, 40), n_candidates=st.integers(1, 40), seed=st.integers(0, 99))
def test_the_search_in_chunks_finds_the_nearest_of_all(n, n_candidates, seed):
    torch.manual_seed(seed)
    values, g = torch.randn(n, 3), nn.Linear(2, 3)
    how = method(values, n_candidates=n_candidates, n_latent=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            inclusive, "CHUNK", 3 * 3 * 2
        )  # 2 batches of 3 candidates and 5 rows at a time
        patch.setattr(inclusive, "ROWS", 5)
        found = how.search(turn_with(g), step=4)
    draws = generator(0, "inclusive/candidates", 4)
    n = -(-n_candidates // 3)
    chunks = [torch.randn(min(2, n - start), 3, 2, generator=draws) for start in range(0, n, 2)]
    latents = torch.cat(chunks).flatten(0, 1)
    nearest = torch.cdist(values, g(latents).detach()).argmin(dim=1)
    assert torch.equal(found, latents[nearest])


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_the_search_leaves_no_trace(config):
    game = game_of(with_inclusive(config))
    how = player_methods(with_inclusive(config), game)[1]
    assert isinstance(how, Inclusive) and how.n_candidates == 96
    turn = turn_of(game, "G")
    before = {name: value.clone() for name, value in nets(game).items()}
    found = how.search(turn, step=1)
    assert found.shape == (48, config.network.latent) and found.abs().sum(dim=1).min() > 0
    assert same(before, nets(game))
    assert all(p.requires_grad and p.grad is None for p in game.g.net.parameters())


@pytest.mark.parametrize("w", [0.5, 3.0])
def test_it_adds_its_gradient_to_that_of_the_plain_gan(w):
    config = with_inclusive(POINTS, weight=w, interpolation=2 * w)
    game = game_of(config)
    game.parts.state["inclusive.latents"].normal_(generator=torch.Generator().manual_seed(0))
    game.parts.state["inclusive.n_searches"].fill_(1)
    turn = turn_of(game, "G")
    first, second = (gradient(game.g.net, t.value(turn)) for t in game.parts.g_terms)
    plain = gradient(game.g.net, g_loss(turn, Parts(), non_saturating))
    both = gradient(game.g.net, g_loss(turn, game.parts, non_saturating))
    assert first.abs().max() > 0 and second.abs().max() > 0
    assert close(both, plain + w * first + 2 * w * second)


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_of_weight_zero_it_is_the_plain_gan_bit_for_bit(config):
    game, plain = game_of(with_inclusive(config, 0.0, 0.0)), game_of(config)
    assert game.parts.g_terms == () and game.parts.state == {} and game.parts.observers == ()
    for each in (game, plain):
        assert train(each, until=1)
    assert same(nets(game), nets(plain))


def test_it_begins_after_the_first_search():
    game, plain = game_of(with_inclusive(POINTS)), game_of(POINTS)
    for each in (game, plain):
        assert train(each, until=1)
    assert same(nets(game), nets(plain))
    assert game.parts.state["inclusive.n_searches"] == 1
    for each in (game, plain):
        assert train(each, until=2)
    assert not same(game.g.net.state_dict(), plain.g.net.state_dict())


def test_the_search_is_repeated_by_the_schedule():
    # half a pass of 48 in batches of 8: every 3 steps
    game = game_of(with_inclusive(POINTS, passes=0.5))
    seen = []
    for step in range(1, 8):
        assert train(game, until=step)
        seen.append(int(game.parts.state["inclusive.n_searches"]))
    assert seen == [1, 1, 2, 2, 2, 3, 3]


def test_reals_come_nearer():
    def distance_after(weight: float) -> float:
        game = game_of(with_inclusive(replace(POINTS, batch_size=16), weight, interpolation=0.0))
        game.learning_rate = lambda step: 3e-3
        assert train(game, until=60)
        return game.parts.g_terms[0].value(turn_of(game, "G")).item()

    assert distance_after(weight=30.0) < 0.8 * distance_after(weight=1e-9)


def test_an_interrupted_run_ends_the_same(tmp_path):
    config = with_inclusive(POINTS, passes=0.5)
    phase1, plain, _ = stages(config)
    whole, again = world_of(config, tmp_path / "a"), world_of(config, tmp_path / "b")
    answers = iter([False] * 4 + [True])
    assert not train_stage(again, phase1, None, lambda: next(answers))
    for world in (whole, again):
        for stage in (phase1, plain):
            assert train_stage(world, stage, None, lambda: False)
    name = checkpoint.folder_name("plain", 12)
    mine, other = (checkpoint.load(world.run.checkpoints / name) for world in (whole, again))
    assert same(mine["G"], other["G"]) and same(mine["state"], other["state"])
    assert mine["state"]["inclusive.n_searches"] == 5  # after steps 1, 3, 6, 9, 12


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"weight": -1.0}, "--methods.inclusive.weight -1.0: expected 0 or more"),
        ({"candidates": 0}, "--methods.inclusive.candidates 0: expected at least 1"),
        ({"passes": 0.0}, "--methods.inclusive.passes 0.0: expected a positive number"),
    ],
)
def test_settings_that_cannot_be(how, told):
    with pytest.raises(UserError) as error:
        configs.check(with_inclusive(POINTS, **how))
    assert str(error.value).startswith(told)
