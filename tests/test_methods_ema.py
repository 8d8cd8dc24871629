from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import game_of, nets
from tiny import DIGITS, POINTS, same, world_of
from torch import nn

from diagan import checkpoint, pipeline
from diagan.config import MLP, Methods
from diagan.game import Moment
from diagan.methods.ema import EMA, averages
from diagan.sample import load_generator
from diagan.stages import new_game, restore, stages, train_stage
from diagan.train import train


def with_ema(config, decay):
    return replace(config, methods=Methods(ema=decay))


def moment(step: int) -> Moment:
    return Moment(step, [], {}, is_last=False)


def test_by_hand():
    g = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(g.weight)
    parts = EMA(0.75, g).parts()
    (observer,) = parts.observers
    for step, weight in enumerate(([4.0, 8.0], [0.0, 4.0]), start=1):
        with torch.no_grad():
            g.weight.copy_(torch.tensor([weight]))
        assert observer.due(moment(step))
        observer.look(moment(step))
    # 0 -> 1 -> 0.75 and 0 -> 2 -> 2.5
    assert parts.state["ema.weight"].tolist() == [[0.75, 2.5]]


@settings(max_examples=20)
@given(st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=8), st.floats(0.01, 0.99))
def test_it_stays_between_the_least_and_the_greatest(weights, decay):
    g = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        g.weight.fill_(weights[0])
    parts = EMA(decay, g).parts()
    for step, weight in enumerate(weights, start=1):
        with torch.no_grad():
            g.weight.fill_(weight)
        parts.observers[0].look(moment(step))
    average = parts.state["ema.weight"].item()
    assert min(weights) - 1e-4 <= average <= max(weights) + 1e-4


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
def test_the_game_does_not_notice(config):
    plain, off, on = game_of(config), game_of(with_ema(config, 0.0)), game_of(with_ema(config, 0.9))
    assert off.parts.state == {} and off.parts.observers == ()
    for game in (plain, off, on):
        assert train(game, until=3)
    assert same(nets(plain), nets(off)) and same(nets(plain), nets(on))
    names = [f"ema.{name}" for name, _ in on.g.net.named_parameters()]
    assert list(on.parts.state) == names
    for name, parameter in on.g.net.named_parameters():
        assert not torch.equal(on.parts.state[f"ema.{name}"], parameter)


def test_it_goes_on_after_an_interruption_and_into_phase_2(tmp_path):
    config = with_ema(POINTS, 0.9)
    phase1, plain, _ = stages(config)
    whole, again = world_of(config, tmp_path / "a"), world_of(config, tmp_path / "b")
    answers = iter([False] * 3 + [True])
    assert not train_stage(again, phase1, None, lambda: next(answers))
    for world in (whole, again):
        for stage in (phase1, plain):
            assert train_stage(world, stage, None, lambda: False)

    def saved(world):
        return checkpoint.load(world.run.checkpoints / checkpoint.folder_name("plain", 12))["state"]

    assert same(saved(whole), saved(again))
    fresh = new_game(config, whole.dataset, whole.fabric, plain)
    assert not same(dict(fresh.parts.state), saved(whole))
    restore(whole, plain, fresh)
    assert same(dict(fresh.parts.state), saved(whole))


@pytest.mark.slow
def test_the_average_is_what_is_drawn_from(tmp_path):
    config = with_ema(replace(DIGITS, phase1_share=1.0), 0.5)
    run = pipeline.run(config, tmp_path / "run")
    files = checkpoint.load(run.checkpoints / checkpoint.folder_name("phase1", 12))
    trained = load_generator(run.path)
    weights = dict(trained.g.named_parameters())
    assert same(weights, {name: files["state"][f"ema.{name}"] for name in weights})
    assert not any(torch.equal(weights[name], files["G"][name]) for name in weights)
    assert np.isfinite(trained.sample(2, drs=False)).all()


@pytest.mark.slow
@pytest.mark.parametrize("network", [DIGITS.network, MLP(width=8, latent=8)], ids=["dcgan", "mlp"])
def test_batchnorm_knows_the_averaged_weights(tmp_path, network):
    config = with_ema(replace(DIGITS, network=network, phase1_share=1.0), 0.5)
    trained = load_generator(pipeline.run(config, tmp_path / "run").path)
    layers = list(trained.g)
    first = next(i for i, layer in enumerate(layers) if hasattr(layer, "running_mean"))
    with torch.no_grad():
        seen = nn.Sequential(*layers[:first])(torch.randn(5_000, network.latent)).transpose(0, 1)
    means, deviations = seen.flatten(1).mean(dim=1), seen.flatten(1).std(dim=1)
    assert torch.allclose(layers[first].running_mean, means, atol=0.2 * float(deviations.mean()))
    assert torch.allclose(layers[first].running_var.sqrt(), deviations, rtol=0.1)


def test_without_an_average_g_is_drawn_from_as_it_is():
    assert averages({"record.mean": torch.zeros(3)}) == {}
