"""What looks on while a run trains: grids of the averaged G, D's learning rate in the log."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from playing import game_of, nets
from tiny import DIGITS, POINTS, same, world_of

from diagan.config import Methods, Optim
from diagan.game import Moment
from diagan.methods.ema import averages
from diagan.networks.common import settle_generator
from diagan.observers import grids, recording
from diagan.record import LdrRecord
from diagan.rundir import read_lines
from diagan.sample import as_stored, image_grid
from diagan.stages import stages, train_stage
from diagan.train import train


def grid_of(g: torch.nn.Module, game) -> np.ndarray:
    """64 images of the grid's latents, by a G in eval mode."""
    shape = (64, game.draws.n_latent)
    latents = torch.randn(shape, generator=game.draws.generator("grid", 0))
    with torch.no_grad():
        return np.asarray(image_grid(as_stored(g.eval()(latents)), scale=2))


@pytest.mark.parametrize("ema", [0.0, 0.5])
def test_a_grid_shows_the_average_where_one_is_kept(tmp_path, ema):
    game = game_of(replace(DIGITS, methods=Methods(ema=ema)))
    assert train(game, until=3)
    before = {name: value.clone() for name, value in nets(game).items()}
    grids(tmp_path, "phase1", game, every=1).look(Moment(3, [], {}, is_last=False))
    assert same(before, nets(game)) and game.g.net.training  # the game has not noticed
    shown = np.asarray(Image.open(tmp_path / "phase1-000003.png"))
    plain = grid_of(game.g.net, game)
    if ema:
        game.g.net.load_state_dict(averages(game.parts.state), strict=False)
        settle_generator(game.g.net, game.draws.n_latent)
    average = grid_of(game.g.net, game)
    assert np.array_equal(shown, average)
    assert np.array_equal(shown, plain) == (ema == 0)


@pytest.mark.parametrize("d_lr", [None, 3e-3])
def test_the_log_has_the_learning_rate_of_d_where_it_differs(tmp_path, d_lr):
    config = replace(POINTS, optim=Optim(lr=1e-3, d_lr=d_lr))
    world = world_of(config, tmp_path)
    assert train_stage(world, stages(config)[0], None, lambda: False)
    lines = read_lines(world.run.log)
    assert [line["step"] for line in lines] == [3, 6]
    assert [line["lr"] for line in lines] == pytest.approx([1e-3 * (1 - s / 12) for s in (2, 5)])
    if d_lr is None:
        assert all("lr_D" not in line for line in lines)
    else:
        assert [line["lr_D"] / line["lr"] for line in lines] == pytest.approx([3.0, 3.0])


class Elsewhere(torch.Tensor):
    """Of a device whose tensors are no arrays, as those of a GPU."""

    def numpy(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def cpu(self):
        return self.as_subclass(torch.Tensor)


def test_logits_that_were_summed_on_another_device_are_recorded(tmp_path, monkeypatch):
    game = game_of(DIGITS)
    fabric, record = game.draws.fabric, LdrRecord(tmp_path, n=6)
    monkeypatch.setattr(fabric, "all_reduce", lambda x, **_: x.as_subclass(Elsewhere))
    parts = recording(record, game.d.net, fabric, {"": game.draws.values[:6]}, mode="eval",
                      batch_size=4, every=1, start=1, at_end=False, seed=0)  # fmt: skip
    parts.observers[0].look(Moment(1, [], {}, is_last=False))
    assert record.read(1).shape == (6,)
