from dataclasses import replace
from math import log

import pytest
import torch
from playing import close, game_of, gradient, nets, turn_of
from tiny import DIGITS, POINTS, same
from torch import nn

from diagan import config as configs
from diagan import pipeline
from diagan.config import MLP, Methods
from diagan.config import Rotation as Settings
from diagan.errors import UserError
from diagan.game import Parts, Turn, compose, d_loss, g_loss
from diagan.losses import non_saturating
from diagan.methods.packing import Packing
from diagan.methods.rotation import Rotation, on_fakes, on_reals, turn_round
from diagan.networks import Scores
from diagan.sample import load_generator
from diagan.train import train

SMOOTH = replace(DIGITS, network=MLP(width=8))  # its D has neither BatchNorm nor dropout


def with_rotation(config, d=1.0, g=0.2):
    return replace(config, methods=Methods(rotation=Settings(d, g)))


def test_each_quarter_of_the_batch_is_turned_against_the_clock():
    image = torch.tensor([[1, 2], [3, 4]])
    turned, quarters = turn_round(image.expand(4, 1, 2, 2))
    expected = [[[1, 2], [3, 4]], [[2, 4], [1, 3]], [[4, 3], [2, 1]], [[3, 1], [4, 2]]]
    assert turned.squeeze(1).tolist() == expected
    assert quarters.tolist() == [0, 1, 2, 3]
    # as the published code does it: transpose, then flip the height (FACTS 5)
    assert torch.equal(turned[1, 0], image.T.flip(0))


@pytest.mark.parametrize("n", [1, 3, 6, 64])
def test_any_number_of_images_is_turned(n):
    images = torch.randn(n, 3, 4, 4)
    turned, quarters = turn_round(images)
    assert quarters.tolist() == [4 * i // n for i in range(n)]
    for image, result, k in zip(images, turned, quarters.tolist()):
        assert torch.equal(result, image.rot90(k, dims=(1, 2)))


def test_by_hand_on_a_batch_of_four():
    class Corner(nn.Module):
        """Of each turned image, its first pixel is the logit of class 1; the others are 0."""

        def forward(self, x):
            heads = torch.zeros(len(x), 4)
            heads[:, 1] = x[:, 0, 0, 0]
            return Scores(x.flatten(1)[:, 0], x, {"rotation": heads})

    one = torch.tensor([[0.0, log(2)], [0.0, 0.0]])  # its first pixel when turned once: log 2
    images = one.expand(4, 1, 2, 2)
    turn = Turn(0, 0, "D", nn.Identity(), Corner(), images, images, None, real=images)
    # turned 0, 1, 2, 3 times the first pixel is 0, log 2, 0, 0: -log of 1/4, 2/5, 1/4, 1/4
    expected = (3 * log(4) + log(2.5)) / 4
    assert on_reals(turn).item() == pytest.approx(expected)
    assert on_fakes(turn).item() == pytest.approx(expected)


@pytest.mark.parametrize("w", [0.5, 3.0])
def test_it_adds_its_gradient_to_that_of_the_plain_gan(w):
    game = game_of(with_rotation(SMOOTH))
    parts = Rotation(d=w, g=w).parts()
    turn = turn_of(game, "D")
    plain = gradient(game.d.net, d_loss(turn, Parts(), non_saturating))
    own = gradient(game.d.net, on_reals(turn))
    assert own.abs().max() > 0
    assert close(gradient(game.d.net, d_loss(turn, parts, non_saturating)), plain + w * own)
    turn = turn_of(game, "G")
    plain = gradient(game.g.net, g_loss(turn, Parts(), non_saturating))
    own = gradient(game.g.net, on_fakes(turn))
    assert own.abs().max() > 0
    assert close(gradient(game.g.net, g_loss(turn, parts, non_saturating)), plain + w * own)


def test_of_weight_zero_it_is_the_plain_gan_bit_for_bit():
    game = game_of(with_rotation(DIGITS, d=0.0, g=0.0))
    assert game.parts.heads == {} and game.parts.d_terms == game.parts.g_terms == ()
    plain = game_of(DIGITS)
    for each in (plain, game):
        assert train(each, until=1)
    assert same(nets(plain), nets(game))


def test_d_learns_the_task():
    game = game_of(with_rotation(SMOOTH, g=0.0))
    game.learning_rate = lambda step: 3e-3
    before = sum(on_reals(turn_of(game, "D", i)).item() for i in range(6))
    assert train(game, until=80)
    after = sum(on_reals(turn_of(game, "D", i)).item() for i in range(6))
    assert after < 0.75 * before


def test_packs_have_no_rotation_and_points_neither():
    with pytest.raises(UserError, match="the rotation task needs one score per image"):
        compose([Rotation(1.0, 0.2).parts(), Packing(2).parts()])
    with pytest.raises(UserError, match="leave them out for points"):
        configs.check(with_rotation(POINTS))
    with pytest.raises(UserError, match=r"give --methods.rotation.d 1 as well"):
        configs.check(with_rotation(DIGITS, d=0.0))


@pytest.mark.slow
def test_a_run_with_a_head_is_drawn_from(tmp_path):
    config = with_rotation(replace(SMOOTH, phase1_share=1.0))
    run = pipeline.run(config, tmp_path / "run")
    trained = load_generator(run.path)
    assert set(trained.d.heads) == {"rotation"}
    assert trained.sample(3).shape == (3, 3, 16, 16)
