from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch
from playing import WEIGHTED, close, game_of, gradient, nets, turn_of
from tiny import DIGITS, POINTS, same, world_of
from torch import nn

from diagan import checkpoint, pipeline
from diagan import config as configs
from diagan.config import Methods, Record
from diagan.errors import UserError
from diagan.game import Parts, Term, Turn, d_loss
from diagan.losses import hinge
from diagan.methods.logistic_head import NAME, LogisticHead, logistic_loss
from diagan.networks import Discriminator
from diagan.record import LdrRecord
from diagan.sample import load_generator
from diagan.stages import new_game, restore, stages, train_stage
from diagan.train import train


def with_head(config, on=True):
    return replace(config, loss="hinge", methods=Methods(logistic_head=on))


def test_by_hand_on_a_batch_of_four():
    d = Discriminator(nn.Identity(), 1, {NAME: 1})
    with torch.no_grad():
        d.get_submodule(f"heads.{NAME}").weight.fill_(2.0)
        d.get_submodule(f"heads.{NAME}").bias.fill_(0.0)
    real = torch.tensor([[0.0], [0.0], [log(3) / 2], [-log(3) / 2]])
    fake = torch.zeros(4, 1)
    turn = Turn(0, 0, "D", nn.Identity(), d, fake, fake, None, real=real)
    d_loss(turn, Parts(), hinge)
    # sigmoid of the doubled feature: 1/2, 1/2, 3/4, 1/4 for the reals, 1/2 for the fakes
    expected = (2 * log(2) + log(4 / 3) + log(4)) / 4 + log(2)
    assert logistic_loss(turn).item() == pytest.approx(expected)


@pytest.mark.parametrize("w", [0.5, 3.0])
def test_it_adds_its_gradient_to_the_head_and_to_nothing_else(w):
    game = game_of(with_head(POINTS))
    turn = turn_of(game, "D")
    plain = gradient(game.d.net, d_loss(turn, Parts(), hinge))
    own = gradient(game.d.net, logistic_loss(turn))
    parts = Parts(d_terms=(Term("head", logistic_loss, w),))
    assert close(gradient(game.d.net, d_loss(turn, parts, hinge)), plain + w * own)
    head = game.d.net.get_submodule(f"heads.{NAME}")
    n_head = sum(p.numel() for p in head.parameters())
    assert own[-n_head:].abs().max() > 0  # a module's heads come last
    assert torch.equal(own[:-n_head], torch.zeros_like(own[:-n_head]))
    assert torch.equal(plain[-n_head:], torch.zeros(n_head))


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_with_it_and_without_it_the_game_is_the_same_bit_for_bit(config):
    plain, off, on = (game_of(c) for c in (replace(config, loss="hinge"), with_head(config, False),
                                           with_head(config)))  # fmt: skip
    assert off.parts.heads == {} and off.parts.d_terms == ()
    start = {name: value.clone() for name, value in nets(on).items()}
    for game in (plain, off, on):
        assert train(game, until=3)
    assert same(nets(plain), nets(off))
    trained = nets(on)
    head = {name for name in trained if "heads" in name}
    assert head and not any(torch.equal(trained[name], start[name]) for name in head)
    assert same(nets(plain), {name: v for name, v in trained.items() if name not in head})


def test_the_critic_has_it_too_in_a_joint_forward():
    config = with_head(replace(POINTS, critic=configs.Critic(forward="joint")))
    game = game_of(config, WEIGHTED)
    assert train(game, until=8)
    assert game.critics[0].joint and NAME in game.critics[0].net.heads


def test_it_learns_the_density_ratio_where_hinge_does_not():
    """Reals at N(1, 1), fakes at N(-1, 1): the log-density ratio is 2 x."""
    torch.manual_seed(0)
    d = Discriminator(nn.Identity(), 1, LogisticHead(on=True).parts().heads)
    optimiser = torch.optim.Adam(d.parameters(), 0.05)
    for _ in range(300):
        real, fake = torch.randn(256, 1) + 1, torch.randn(256, 1) - 1
        turn = Turn(0, 0, "D", nn.Identity(), d, fake, fake, None, real=real)
        optimiser.zero_grad()
        d_loss(turn, LogisticHead(on=True).parts(), hinge).backward()
        optimiser.step()
    x = torch.tensor([[-1.0], [0.0], [1.0]])
    scores = d(x)
    assert scores.heads[NAME].flatten().tolist() == pytest.approx([-2, 0, 2], abs=0.4)
    assert scores.logits.abs().max() < 1.5


def test_it_is_what_is_recorded(tmp_path):
    config = with_head(DIGITS)
    world, phase1 = world_of(config, tmp_path), stages(config)[0]
    assert train_stage(world, phase1, None, lambda: False)
    game = new_game(config, world.dataset, world.fabric, phase1)
    restore(world, phase1, game)
    images = torch.from_numpy(world.dataset.values).float() / 127.5 - 1
    with torch.no_grad():
        scores = game.d.net.eval()(images)
    record = LdrRecord(world.run.record, 48)
    found = record.read(6)
    assert np.allclose(found, scores.heads[NAME].squeeze(1), rtol=1e-4, atol=1e-5)
    assert not np.allclose(found, scores.logits, atol=1e-2)
    assert record.about["is_ldr"] is True


@pytest.mark.slow
def test_it_is_what_is_rejected_by(tmp_path):
    config = with_head(replace(DIGITS, phase1_share=1.0))
    run = pipeline.run(config, tmp_path / "run")
    trained = load_generator(run.path)
    assert trained.rejects_by == "logistic head" and trained.is_ldr
    assert trained.sample(3).shape == (3, 3, 16, 16)
    files = checkpoint.load(run.checkpoints / checkpoint.folder_name("phase1", 12))
    images = trained.generate(2, torch.Generator().manual_seed(0))
    with torch.no_grad():
        features = trained.d(images).features
        expected = (
            features @ files["D"][f"heads.{NAME}.weight"].T + files["D"][f"heads.{NAME}.bias"]
        )
    assert torch.allclose(trained.ldr(images), expected.squeeze(1), atol=1e-5)


def test_recording_for_free_is_refused():
    with pytest.raises(
        UserError, match=r"keeps D's own logit, not that of --methods.logistic-head"
    ):
        configs.check(with_head(replace(POINTS, record=Record(mode="free"))))
