from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import PHASE1, PLAIN, WEIGHTED, Itself, close, game_of, gradient, nets, turn_of
from tiny import DIGITS, POINTS, same
from torch import nn

from diagan.config import Methods
from diagan.game import Parts, Turn, d_loss
from diagan.losses import hinge, non_saturating
from diagan.methods.gold import Gold, normalised
from diagan.train import train

REAL = torch.tensor([[2.0], [0.0], [-1.0], [1.0]])
FAKE = torch.tensor([[0.0], [1.0], [-0.5], [3.0]])


def with_gold(config, weights):
    return replace(config, methods=Methods(gold=weights))


def test_by_hand_on_a_batch_of_four():
    turn = Turn(0, 0, "D", nn.Identity(), Itself(), FAKE, FAKE, draws=None, real=REAL)
    # hinge: reals cost 0, 1, 2, 0; fakes 1, 2, 0.5, 4 with weights 0, 1, -0.5, 3
    published = d_loss(turn, Gold("published").parts(), hinge)
    assert published.item() == pytest.approx((3 + 2 - 0.25 + 12) / 4)
    # weights 0, 1, 0, 3 have mean 1 as they are
    assert d_loss(turn, Gold("normalised").parts(), hinge).item() == (3 + 2 + 12) / 4
    turn.player = "critic"
    assert d_loss(turn, Gold("published").parts(), hinge).item() == (3 + 7.5) / 4


@settings(max_examples=30)
@given(st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=16))
def test_normalised_weights_are_not_negative_and_have_mean_one(values):
    weights = normalised(torch.tensor(values))
    assert weights.min() >= 0
    assert weights.mean().item() == pytest.approx(1, rel=1e-4)


def test_where_no_fake_looks_real_all_count_alike():
    assert normalised(torch.tensor([-1.0, -3.0, 0.0])).tolist() == [1, 1, 1]


@pytest.mark.parametrize("weights", ["published", "normalised"])
def test_ds_gradient_is_that_of_the_weighted_fake_terms(weights):
    game = game_of(POINTS)
    turn = turn_of(game, "D")
    both = gradient(game.d.net, d_loss(turn, Gold(weights).parts(), non_saturating))
    w = Gold(weights).weigh(turn.fake_logits.detach(), turn)
    plain = gradient(game.d.net, d_loss(turn, Parts(), non_saturating))
    fakes = non_saturating.d_fake(turn.fake_logits)
    own = gradient(game.d.net, ((w - 1) * fakes).mean())
    assert own.abs().max() > 0
    assert close(both, plain + own)


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_off_and_in_phase_1_it_is_the_plain_gan(config):
    assert game_of(config, PLAIN).parts.d_fake_weights == ()
    assert game_of(with_gold(config, "published"), PHASE1).parts.d_fake_weights == ()


@pytest.mark.parametrize("stage", [PLAIN, WEIGHTED], ids=lambda stage: stage.name)
@pytest.mark.parametrize("weights", ["published", "normalised"])
def test_in_phase_2_it_changes_d_and_leaves_the_critic_alone(stage, weights):
    plain, other = game_of(POINTS, stage), game_of(with_gold(POINTS, weights), stage)
    for game in (plain, other):
        assert train(game, until=7)
    for mine, its in zip(plain.critics, other.critics):
        assert same(mine.net.state_dict(), its.net.state_dict())
    for game in (plain, other):
        assert train(game, until=8)  # Adam's first step is but the sign of the gradient
    assert not same(plain.d.net.state_dict(), other.d.net.state_dict())
    assert not same(nets(plain), nets(other))
