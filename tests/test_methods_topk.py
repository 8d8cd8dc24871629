from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import Itself, close, game_of, gradient, nets, turn_of
from tiny import DIGITS, POINTS, same
from torch import nn

from diagan.config import Methods
from diagan.config import TopK as Settings
from diagan.game import Parts, Turn, g_loss
from diagan.losses import hinge, non_saturating
from diagan.methods.topk import TopK
from diagan.train import train

FAKE = torch.tensor([[0.0], [1.0], [-2.0], [3.0]])


def with_topk(config, **how):
    return replace(config, methods=Methods(topk=Settings(**how)))


def turn_at(step: int) -> Turn:
    return Turn(step, step, "G", nn.Identity(), Itself(), FAKE, FAKE, draws=None)


@pytest.mark.parametrize(
    ("n", "steps", "rate", "k"),
    [(50_000, 50_000, 0.531, 33), (162_770, 75_000, 0.747, 47), (60_000, 20_000, 0.810, 51)],
)
def test_the_published_schedule_ends_where_facts_4_says(n, steps, rate, k):
    method = TopK(floor=0.5, decay=0.99, steps_per_pass=-(-n // 64))
    assert method.rate(steps) == pytest.approx(rate, abs=5e-4)
    logits = torch.randn(64)
    assert torch.count_nonzero(method.weigh(logits, turn_at(steps))) == k


def test_the_floor_is_reached_at_step_10_833_of_a_set_of_10_000():
    method = TopK(floor=0.5, decay=0.99, steps_per_pass=157)
    assert method.rate(10_832) > 0.5 and method.rate(10_833) == 0.5


def test_by_hand_on_a_batch_of_four():
    method = TopK(floor=0.5, decay=0.5, steps_per_pass=1)
    turn = turn_at(1)
    assert method.weigh(FAKE.flatten(), turn).tolist() == [0, 2, 0, 2]
    # hinge costs G -logit: the mean of -1 and -3
    assert g_loss(turn, method.parts(), hinge).item() == -2
    assert g_loss(turn_at(0), method.parts(), hinge).item() == -0.5  # all four at first


@settings(max_examples=30)
@given(n=st.integers(1, 64), step=st.integers(0, 500), floor=st.floats(0.01, 0.99))
def test_the_best_share_the_weight_of_all(n, step, floor):
    logits = torch.randn(n, generator=torch.Generator().manual_seed(n))
    weights = TopK(floor, 0.9, steps_per_pass=10).weigh(logits, turn_at(step))
    assert weights.sum().item() == pytest.approx(n, rel=1e-5)
    kept, left = logits[weights > 0], logits[weights == 0]
    assert len(left) == 0 or kept.min() >= left.max()


def test_g_gets_the_gradient_of_the_best_fakes():
    game = game_of(POINTS)
    turn = turn_of(game, "G")
    method = TopK(floor=0.5, decay=0.5, steps_per_pass=1)
    turn.step = 1
    whole = gradient(game.g.net, g_loss(turn, method.parts(), non_saturating))
    best = turn.fake_logits.topk(4).indices
    alone = gradient(game.g.net, non_saturating.g(turn.fake_logits[best]).mean())
    plain = gradient(game.g.net, g_loss(turn, Parts(), non_saturating))
    assert close(whole, alone) and alone.abs().max() > 0
    assert not close(whole, plain)


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_off_it_is_the_plain_gan_bit_for_bit(config):
    assert game_of(with_topk(config, floor=1.0)).parts.g_weights == ()
    all_of_them = game_of(with_topk(config, floor=0.5, decay=1.0))
    assert len(all_of_them.parts.g_weights) == 1
    plain = game_of(config)
    for game in (plain, all_of_them):
        assert train(game, until=2)
    assert same(nets(plain), nets(all_of_them))


def test_on_it_changes_what_g_learns():
    # 48 samples are 6 batches of 8: the second pass begins at step 6
    plain, other = game_of(POINTS), game_of(with_topk(POINTS, floor=0.5, decay=0.5))
    for game in (plain, other):
        assert train(game, until=6)
    assert same(nets(plain), nets(other))
    for game in (plain, other):
        assert train(game, until=7)
    assert not same(plain.g.net.state_dict(), other.g.net.state_dict())
    assert same(plain.d.net.state_dict(), other.d.net.state_dict())  # D has had its turn before
