from dataclasses import replace

import pytest
import torch
from playing import PHASE1, PLAIN, Itself, game_of, gradient, nets, turn_of
from tiny import DIGITS, POINTS, same
from torch import nn

from diagan import config as configs
from diagan import pipeline
from diagan.config import Methods, Record
from diagan.errors import UserError
from diagan.game import Turn, d_loss, g_loss
from diagan.losses import hinge, non_saturating
from diagan.methods.packing import Packing
from diagan.sample import load_generator
from diagan.train import train


def with_packing(config, images=2):
    none = Record(mode="none")
    return replace(config, methods=Methods(packing=images), record=none, phase1_share=1.0)


def test_by_hand_on_a_batch_of_four():
    class Difference(nn.Module):
        def forward(self, x):
            return Itself()(x[:, 0] - x[:, 1])

    images = torch.tensor([[5.0], [1.0], [2.0], [1.5]])  # packs (5, 2) and (1, 1.5)
    parts = Packing(2).parts()
    turn = Turn(0, 0, "G", nn.Identity(), Difference(), images, images, None, parts.views)
    assert g_loss(turn, parts, hinge).item() == -(3 - 0.5) / 2
    assert turn.fake_logits.tolist() == [3, -0.5]


def test_channels_of_one_image_stay_together():
    images = torch.arange(4 * 3 * 2 * 2).view(4, 3, 2, 2)
    packed = Packing(2).pack(images, Turn(0, 0, "D", None, None, images, images, None))
    assert packed.shape == (2, 6, 2, 2)
    assert torch.equal(packed[1, :3], images[1]) and torch.equal(packed[1, 3:], images[3])


@pytest.mark.parametrize("joint", [True, False])
def test_what_cannot_be_packed_is_refused(joint):
    images = torch.zeros(4 if joint else 5, 1)
    turn = Turn(0, 0, "D", None, None, images, images, None, joint=joint)
    with pytest.raises(UserError, match="cannot be packed by 2 without mixing"):
        Packing(2).pack(images, turn)


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_of_one_image_it_is_the_plain_gan_bit_for_bit(config):
    plain, other = game_of(config), game_of(with_packing(config, images=1))
    assert other.parts.views == () and other.parts.images_per_score == 1
    for game in (plain, other):
        assert train(game, until=2)
    assert same(nets(plain), nets(other))


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_d_has_half_as_many_scores_and_g_the_same_latents(config):
    game, plain = game_of(with_packing(config)), game_of(config)
    assert same(game.g.net.state_dict(), plain.g.net.state_dict())
    turn = turn_of(game, "G")
    assert torch.equal(turn.latents, turn_of(plain, "G").latents)
    loss = g_loss(turn, game.parts, non_saturating)
    assert turn.fake_logits.shape == (config.batch_size // 2,)
    assert gradient(game.g.net, loss).abs().max() > 0
    turn = turn_of(game, "D")
    loss = d_loss(turn, game.parts, non_saturating)
    assert turn.real_logits.shape == (config.batch_size // 2,)
    assert gradient(game.d.net, loss).abs().max() > 0
    assert train(game, until=2)


def test_a_critic_and_packing_are_refused():
    config = with_packing(POINTS)
    assert game_of(config, PLAIN).parts.images_per_score == 2
    with pytest.raises(UserError, match=r"rejection sampling needs one score per image"):
        game_of(config, replace(PHASE1, weighted=True))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch_size": 9}, "--methods.packing 2: expected a divisor of --batch-size 9"),
        ({"record": Record()}, "--methods.packing 2 leaves no score of a single image to record"),
        ({"methods": Methods(packing=0)}, "--methods.packing 0: expected at least 1"),
    ],
)
def test_settings_that_cannot_be(change, told):
    with pytest.raises(UserError) as error:
        configs.check(replace(with_packing(POINTS), **change))
    assert str(error.value).startswith(told)


@pytest.mark.slow
def test_a_whole_run_ends_and_is_drawn_from_without_rejection(tmp_path):
    run = pipeline.run(with_packing(DIGITS), tmp_path / "run")
    trained = load_generator(run.path)
    assert trained.sample(3, drs=False).shape == (3, 3, 16, 16)
    with pytest.raises(UserError, match="scores 2 at once; sample with --no-drs"):
        trained.sample(3)
