from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import game_of, gradient, nets, turn_of
from tiny import DIGITS, POINTS, same, world_of

from diagan import config as configs
from diagan.config import MLP, Methods
from diagan.config import Augment as Settings
from diagan.errors import UserError
from diagan.game import Turn, d_loss, g_loss
from diagan.losses import non_saturating
from diagan.methods.augment import Augment, cut_out, integers, recolour, shift
from diagan.random import generator
from diagan.record import LdrRecord
from diagan.stages import new_game, restore, stages, train_stage
from diagan.train import train

SMOOTH = replace(DIGITS, network=MLP(width=8))  # its D has neither BatchNorm nor dropout
ALL = Augment(colour=True, translation=0.125, cutout=0.5)


def with_augment(config, colour=True, translation=0.125, cutout=0.5):
    return replace(config, methods=Methods(augment=Settings(colour, translation, cutout)))


class Draws:
    def uniforms(self, purpose, position, rows, n):
        return torch.rand(rows, n, generator=generator(0, purpose, position))


def turn_at(player="D", position=0, n_scored=0):
    return Turn(0, position, player, None, None, None, None, Draws(), n_scored=n_scored)


def test_colours_by_hand_on_a_batch_of_four():
    # two channels, two pixels: (1, 3) and (0, 2)
    image = torch.tensor([[[1.0, 3.0]], [[0.0, 2.0]]])
    brightness = torch.tensor([0.5, 0.0, 0.0, 0.5])
    saturation = torch.tensor([1.0, 2.0, 1.0, 0.0])
    contrast = torch.tensor([1.0, 1.0, 0.5, 2.0])
    found = recolour(image.expand(4, 2, 1, 2), brightness, saturation, contrast)
    assert found[0].flatten().tolist() == [1.5, 3.5, 0.5, 2.5]
    assert found[1].flatten().tolist() == [1.5, 3.5, -0.5, 1.5]  # pixels' means are 0.5, 2.5
    assert found[2].flatten().tolist() == [1.25, 2.25, 0.75, 1.75]  # the image's mean is 1.5
    # 0.5 brighter, grey (1, 3), and twice as far from its mean 2
    assert found[3].flatten().tolist() == [0.0, 4.0, 0.0, 4.0]


def test_shifts_by_hand_on_a_batch_of_four():
    image = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    down, right = torch.tensor([0, 1, -1, 0]), torch.tensor([0, 0, 0, 1])
    found = shift(image.expand(4, 1, 2, 2), down, right).flatten(1).tolist()
    assert found == [[1, 2, 3, 4], [0, 0, 1, 2], [3, 4, 0, 0], [0, 1, 0, 3]]


def test_holes_by_hand_on_a_batch_of_four():
    y, x = torch.tensor([0, 1, 2, 1]), torch.tensor([0, 1, 2, 3])
    found = cut_out(torch.ones(4, 1, 3, 3), y, x, (2, 2)).squeeze(1).tolist()
    assert found[0] == [[0, 1, 1], [1, 1, 1], [1, 1, 1]]
    assert found[1] == [[0, 0, 1], [0, 0, 1], [1, 1, 1]]
    assert found[2] == [[1, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert found[3] == [[1, 1, 0], [1, 1, 0], [1, 1, 1]]


@settings(max_examples=20)
@given(low=st.integers(-9, 0), high=st.integers(0, 9))
def test_integers_reach_both_ends_and_no_further(low, high):
    u = torch.linspace(0, 1 - 1e-6, 2_000)
    assert integers(u, low, high).unique().tolist() == list(range(low, high + 1))


def test_every_image_and_every_look_has_a_draw_of_its_own():
    images = torch.rand(1, 3, 8, 8).expand(16, 3, 8, 8)
    found = ALL.alter(images, turn_at())
    assert len(found.flatten(1).unique(dim=0)) == 16
    assert torch.equal(found, ALL.alter(images, turn_at()))  # a function of the position
    for other in (turn_at(n_scored=1), turn_at(position=1), turn_at("G")):
        assert not torch.equal(found, ALL.alter(images, other))


def test_real_and_fake_are_altered_by_the_same_policy_with_other_draws():
    game = game_of(with_augment(SMOOTH))
    turn = turn_of(game, "D")
    turn.fake = turn.real
    d_loss(turn, game.parts, non_saturating)
    assert turn.n_scored == 2
    assert not torch.equal(turn.real_logits, turn.fake_logits)


class Process:
    """As much of a process as draws need to know."""

    world_size, device = 2, "cpu"

    def __init__(self, rank: int) -> None:
        self.global_rank = rank


def test_two_processes_alter_their_slices_as_one_alters_the_whole():
    game = game_of(with_augment(SMOOTH))
    turn = turn_of(game, "D")
    whole = ALL.alter(turn.real, turn)
    slices = []
    for rank in (0, 1):
        turn.draws = replace(game.draws, fabric=Process(rank))
        slices += [ALL.alter(turn.real[rank::2], turn)]
    assert torch.equal(torch.stack(slices, dim=1).flatten(0, 1), whole)


@pytest.mark.slow
def test_the_gradient_passes_to_the_images():
    images = torch.rand(4, 3, 8, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: ALL.alter(x, turn_at()), (images,))


def test_both_players_get_the_gradient_of_altered_images():
    game = game_of(with_augment(SMOOTH))
    plain = game_of(SMOOTH)
    for player, loss, of in (("D", d_loss, "d"), ("G", g_loss, "g")):
        grads = []
        for each in (game, plain):
            turn = turn_of(each, player)
            grads += [gradient(getattr(each, of).net, loss(turn, each.parts, non_saturating))]
        assert grads[0].abs().max() > 0
        assert not torch.allclose(*grads)


def test_off_it_is_the_plain_gan_bit_for_bit():
    game, plain = game_of(with_augment(DIGITS, False, 0.0, 0.0)), game_of(DIGITS)
    assert game.parts.views == ()
    for each in (game, plain):
        assert train(each, until=1)
    assert same(nets(game), nets(plain))


def test_a_view_that_alters_nothing_is_the_plain_gan_bit_for_bit():
    """A shift by less than a pixel and a hole of no size: the view is there and does nothing."""
    game, plain = game_of(with_augment(DIGITS, False, 0.01, 0.01)), game_of(DIGITS)
    assert len(game.parts.views) == 1
    for each in (game, plain):
        assert train(each, until=2)
    assert same(nets(game), nets(plain))


@pytest.mark.parametrize("how", [(True, 0.0, 0.0), (False, 0.25, 0.0), (False, 0.0, 0.5)])
def test_each_part_changes_something(how):
    game, plain = game_of(with_augment(DIGITS, *how)), game_of(DIGITS)
    for each in (game, plain):
        assert train(each, until=1)
    assert not same(nets(game), nets(plain))


def test_recording_sees_images_as_they_are(tmp_path):
    config = with_augment(SMOOTH)
    world, phase1 = world_of(config, tmp_path), stages(config)[0]
    assert train_stage(world, phase1, None, lambda: False)
    game = new_game(config, world.dataset, world.fabric, phase1)
    restore(world, phase1, game)
    images = torch.from_numpy(world.dataset.values).float() / 127.5 - 1
    with torch.no_grad():
        logits = game.d.net.eval()(images).logits
    assert np.allclose(LdrRecord(world.run.record, 48).read(6), logits, rtol=1e-4, atol=1e-5)


def test_points_are_refused():
    with pytest.raises(UserError, match="leave them out for points"):
        configs.check(with_augment(POINTS))
    with pytest.raises(UserError, match=r"--methods.augment.cutout 1.5: expected between 0 and 1"):
        configs.check(with_augment(DIGITS, cutout=1.5))
