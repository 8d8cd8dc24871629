from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import DIGITS, POINTS, data_of, same, world_of

from diagan import checkpoint, config
from diagan.config import Critic, Methods, Optim, SingleGaussian
from diagan.engine import launch
from diagan.errors import UserError
from diagan.stages import new_game, restore, stages, train_stage
from diagan.train import train

LONGER = replace(POINTS, data=SingleGaussian(n=400), steps=600, phase1_share=0.25, batch_size=64,
                 network=replace(POINTS.network, width=32), optim=Optim(lr=5e-3),
                 critic=Critic(fakes="reals", forward="joint"))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [4.0, 0.5])
def test_of_reals_it_learns_what_the_weights_did(heavy):
    """log p_data / p_s is known: one side is drawn `heavy` times as often as the other."""
    data = data_of(LONGER)
    right = data.values[:, 0] > 0
    weights = np.where(right, heavy, 1.0)
    game = new_game(LONGER, data, launch(LONGER), stages(LONGER)[-1], weights)
    assert train(game, until=LONGER.steps)
    expected = -np.log(len(weights) * weights / weights.sum())
    far = np.abs(data.values[:, 0]) > 1  # where a smooth function can know the side
    with torch.no_grad():
        found = game.critics[0].net(torch.from_numpy(data.values)).logits.numpy()
    for side in (right & far, ~right & far):
        assert found[side].mean() == pytest.approx(expected[side].mean(), abs=0.2)


def test_what_makes_no_sense_of_reals_is_refused():
    hinge = replace(POINTS, loss="hinge", critic=Critic(fakes="reals"))
    with pytest.raises(UserError, match=r"no density ratio with --loss hinge; give --methods.logi"):
        config.check(hinge)
    assert config.check(replace(hinge, methods=Methods(logistic_head=True)))
    gold = replace(POINTS, critic=Critic(fakes="reals"), methods=Methods(gold="normalised"))
    with pytest.raises(UserError, match=r"no density ratio with --methods.gold normalised"):
        config.check(gold)
    with pytest.raises(UserError, match=r"with BatchNorm .* give --critic.forward joint as well"):
        config.check(replace(DIGITS, critic=Critic(fakes="reals")))
    assert config.check(replace(DIGITS, critic=Critic(fakes="reals", forward="joint")))
    with pytest.raises(UserError, match=r"needs the critic"):
        config.check(replace(POINTS, critic=Critic(on=False, fakes="reals")))
    with pytest.raises(UserError, match=r"leave --critic.stream out"):
        config.check(replace(POINTS, critic=Critic(fakes="reals", stream="published")))


@pytest.mark.parametrize("fakes", ["shared", "reals"])
def test_it_starts_as_a_copy_of_d_unless_it_is_to_see_no_fakes(tmp_path, fakes):
    settings = replace(POINTS, critic=Critic(fakes=fakes))
    world = world_of(settings, tmp_path)
    phase1, _, weighted = stages(settings)
    assert train_stage(world, phase1, None, lambda: False)
    game = new_game(settings, world.dataset, world.fabric, weighted, np.ones(48))
    restore(world, weighted, game)
    critic = game.critics[0]
    assert same(critic.net.state_dict(), game.d.net.state_dict()) == (fakes == "shared")
    assert bool(critic.optimiser.state) == (fakes == "shared")
    assert train_stage(world, weighted, np.ones(48), lambda: False)
    restore(world, weighted, game)  # from a checkpoint of its own
    own = checkpoint.load(world.run.checkpoints / "weighted-000012")
    assert same(critic.net.state_dict(), own["critic"]) and critic.optimiser.state
