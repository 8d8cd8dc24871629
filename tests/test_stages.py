from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import DIGITS, POINTS, same, world_of

from diagan import checkpoint
from diagan.config import MLP, SNGAN, Record
from diagan.engine import launch
from diagan.errors import UserError
from diagan.game import Parts, compose
from diagan.record import LdrRecord
from diagan.rundir import append_line, read_lines
from diagan.sampling import UniformStream
from diagan.stages import (
    Stage,
    new_game,
    record_batch,
    recording_parts,
    restore,
    stages,
    streams,
    train_stage,
)


def never() -> bool:
    return False


def test_stages_of_a_run():
    assert stages(POINTS) == [
        Stage("phase1", 0, 6),
        Stage("plain", 6, 12),
        Stage("weighted", 6, 12, weighted=True),
    ]
    without = replace(POINTS, plain_arm=False)
    assert [stage.name for stage in stages(without)] == ["phase1", "weighted"]
    assert stages(replace(POINTS, phase1_share=1.0)) == [Stage("phase1", 0, 12)]


def test_the_same_seed_starts_the_same_game(tmp_path):
    def nets(seed: int):
        world = world_of(replace(POINTS, seed=seed), tmp_path)
        game = new_game(world.config, world.dataset, world.fabric, stages(POINTS)[0])
        return {f"{p.name}.{k}": v for p in game.players for k, v in p.net.state_dict().items()}

    assert same(nets(0), nets(0))
    assert not same(nets(0), nets(1))


@pytest.mark.parametrize(("precision", "is_last"), [("float32", True), ("bfloat16", False)])
def test_a_dcgan_in_float32_on_a_cpu_has_its_channels_last(precision, is_last, tmp_path):
    c = replace(DIGITS, precision=precision)
    game = new_game(c, world_of(c, tmp_path).dataset, launch(c), stages(c)[0])
    for player in (game.g, game.d):
        (weight, *_) = [p for p in player.net.parameters() if p.dim() == 4 and p.shape[1] > 1]
        assert weight.is_contiguous(memory_format=torch.channels_last) == is_last


def test_an_sngan_keeps_the_channels_last_that_it_was_built_with(tmp_path):
    c = replace(DIGITS, data=replace(DIGITS.data, size=32), network=SNGAN(width=0.0625))
    game = new_game(c, world_of(c, tmp_path).dataset, launch(c), stages(c)[0])
    for player in (game.g, game.d):
        squares = [p for p in player.net.parameters() if p.dim() == 4 and p.shape[2] > 1]
        assert all(p.is_contiguous(memory_format=torch.channels_last) for p in squares)


def test_g_and_d_start_alike_with_the_critic_and_without(tmp_path):
    world = world_of(POINTS, tmp_path)
    first, _, weighted = stages(POINTS)
    alone = new_game(POINTS, world.dataset, world.fabric, first)
    beside = new_game(POINTS, world.dataset, world.fabric, weighted, np.ones(48))
    assert same(alone.g.net.state_dict(), beside.g.net.state_dict())
    assert same(alone.d.net.state_dict(), beside.d.net.state_dict())
    assert [critic.name for critic in beside.critics] == ["critic"]


def test_adam_is_that_of_the_config(tmp_path):
    world = world_of(POINTS, tmp_path)
    game = new_game(POINTS, world.dataset, world.fabric, stages(POINTS)[0])
    group = game.d.optimiser.param_groups[0]
    assert (group["betas"], group["weight_decay"], group["amsgrad"]) == ((0.5, 0.9), 0, False)


def test_without_weights_all_is_uniform():
    expected = UniformStream(48, POINTS.seed).take(100, 50)
    for stream in streams(POINTS, 48, Stage("plain", 6, 12), None):
        assert np.array_equal(stream.take(100, 50), expected)


def test_records_lie_where_the_window_says(tmp_path):
    record = Record(every=2, window=3, include_end=True)
    world = world_of(replace(POINTS, phase1_share=1.0, record=record), tmp_path / "end")
    assert train_stage(world, stages(world.config)[0], None, never)
    assert LdrRecord(world.run.record, 48).steps == [8, 10, 12]
    published = replace(record, include_end=False)
    world = world_of(replace(world.config, record=published), tmp_path / "published")
    assert train_stage(world, stages(world.config)[0], None, never)
    assert [s for s in LdrRecord(world.run.record, 48).steps if s < 12] == [6, 8, 10]


def test_held_out_reals_are_recorded_too(tmp_path):
    world = world_of(POINTS, tmp_path)
    assert train_stage(world, stages(POINTS)[0], None, never)
    record = LdrRecord(world.run.record, 48)
    assert record.read(6, "heldout").shape == (12,)
    about = record.about
    assert about["fingerprint"] == world.dataset.fingerprint
    assert (about["mode"], about["loss"], about["is_ldr"]) == ("eval", "non_saturating", True)


def test_the_record_is_what_d_says_at_that_step(tmp_path):
    world = world_of(DIGITS, tmp_path)
    assert train_stage(world, stages(DIGITS)[0], None, never)
    game = new_game(DIGITS, world.dataset, world.fabric, stages(DIGITS)[0])
    restore(world, stages(DIGITS)[0], game)
    assert game.step == 6
    images = torch.from_numpy(world.dataset.values).float() / 127.5 - 1
    with torch.no_grad():
        logits = game.d.net.eval()(images).logits
    found = LdrRecord(world.run.record, 48).read(6)
    assert np.allclose(found, logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("mode", "shape", "size"), [
    ("train", (2,), 8), ("train", (3, 256, 256), 8), ("eval", (2,), 500),
    ("eval", (3, 32, 32), 500), ("eval", (3, 256, 256), 8),
])  # fmt: skip
def test_in_train_mode_the_batch_is_that_of_training(mode, shape, size):
    config = replace(POINTS, batch_size=8, record=Record(mode=mode))
    assert record_batch(config, shape) == size


@pytest.mark.parametrize("mode", ["eval", "train", "free"])
def test_recording_refuses_packing(tmp_path, mode):
    world = world_of(replace(POINTS, record=Record(mode=mode)), tmp_path)
    game = new_game(world.config, world.dataset, world.fabric, stages(POINTS)[0])
    with pytest.raises(UserError, match=r"recording needs one score per image, .* leave one"):
        compose([Parts(images_per_score=2), recording_parts(world, game)])


def test_what_lies_beyond_the_checkpoint_is_cut(tmp_path):
    world, phase1 = world_of(POINTS, tmp_path), stages(POINTS)[0]
    assert train_stage(world, phase1, None, never)
    record = LdrRecord(world.run.record, 48)
    record.add(7, np.zeros(48))
    record.write(7, np.zeros(12), "heldout")
    append_line(world.run.log, {"stage": "phase1", "step": 7})
    append_line(world.run.log, {"stage": "plain", "step": 9})
    game = new_game(POINTS, world.dataset, world.fabric, phase1)
    restore(world, phase1, game)
    assert game.step == 6 and record.steps == [2, 4, 6]
    assert not (world.run.record / "000007.heldout.npy").exists()
    kept = [(line["stage"], line["step"]) for line in read_lines(world.run.log)]
    assert kept == [("phase1", 3), ("phase1", 6), ("plain", 9)]  # of other stages nothing


def test_a_lost_end_of_phase_1_is_told(tmp_path):
    world, (_, plain, _) = world_of(POINTS, tmp_path), stages(POINTS)
    with pytest.raises(UserError, match=r"phase1-000006 is gone, from which plain starts"):
        train_stage(world, plain, None, never)


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    assert train_stage(world_of(POINTS, tmp_path), stages(POINTS)[0], None, never)
    other = world_of(replace(POINTS, network=MLP(width=9)), tmp_path)
    with pytest.raises(UserError, match="holds another network than this config builds"):
        train_stage(other, stages(POINTS)[1], None, never)


def test_the_end_of_a_phase_stays_when_checkpoints_are_pruned(tmp_path):
    world = world_of(POINTS, tmp_path)
    for stage in stages(POINTS):
        assert train_stage(world, stage, np.ones(48), never)
        assert world.is_done(stage)
    folder = world.run.checkpoints
    kept = {stage.name: checkpoint.steps(folder, stage.name) for stage in stages(POINTS)}
    assert kept == {"phase1": [4, 6], "plain": [10, 12], "weighted": [10, 12]}
