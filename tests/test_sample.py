import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from tiny import POINTS, world_of

import diagan
from diagan import checkpoint, config
from diagan.checkpoint_diagnosis import diagnose_checkpoint
from diagan.errors import UserError
from diagan.rundata import read_settings
from diagan.rundir import RunDir, write_json
from diagan.sample import as_stored, image_grid, load_generator, write_samples
from diagan.stages import stages, train_stage


@pytest.fixture
def trained(finished_run):
    return load_generator(finished_run)


def test_the_weighted_generator_is_preferred(finished_run, trained):
    assert diagan.load_generator is load_generator
    assert (trained.arm, trained.step, trained.rejects_by) == ("weighted", 12, "critic")
    assert not trained.g.training and not trained.d.training
    saved = checkpoint.load(finished_run / "checkpoints" / "weighted-000012")
    assert torch.equal(trained.d.logit.weight, saved["critic"]["logit.weight"])
    plain = load_generator(finished_run, "plain")
    assert (plain.arm, plain.rejects_by) == ("plain", "D")
    assert load_generator(finished_run, "phase1").step == 6


@pytest.mark.parametrize("drs", [False, True])
def test_samples_follow_the_seed(trained, drs):
    first, again, other = (trained.sample(20, seed=seed, drs=drs) for seed in (1, 1, 2))
    assert first.shape == (20, 3, 16, 16) and first.dtype == np.uint8
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_rejection_changes_what_is_drawn(trained):
    """And keeps what the critic thinks more real."""
    n = 200
    both = [trained.sample(n, seed=0, drs=drs) for drs in (False, True)]
    plain, kept = (trained.ldr(torch.from_numpy(x).float() / 127.5 - 1).mean() for x in both)
    assert kept > plain


def test_a_budget_of_one_keeps_everything(trained):
    drawing = trained.draw(0, budget=1)
    first = drawing.take(300)
    assert drawing.acceptance_rate == 1
    assert not np.array_equal(as_stored(first), trained.sample(300))


def test_more_samples_begin_with_the_fewer(trained):
    assert np.array_equal(
        trained.sample(40, seed=3)[:15],
        trained.sample(15, seed=3),
    )


def test_large_images_go_through_the_networks_a_few_at_a_time(trained, monkeypatch):
    seen = []
    for net in (trained.g, trained.d):
        net.register_forward_pre_hook(lambda net, inputs: seen.append(len(inputs[0])))
    draws = torch.Generator().manual_seed(0)
    at_once = trained.generate(20, draws)
    logits = trained.ldr(at_once)
    monkeypatch.setattr("diagan.batches.PIXELS", 16 * 16 * 8)  # 8 of these images
    few = trained.generate(20, draws.manual_seed(0))
    assert seen == [20, 20, 8, 8, 4]
    torch.testing.assert_close(few, at_once)
    torch.testing.assert_close(trained.ldr(few), logits)
    assert seen[5:] == [8, 8, 4]


def test_from_g_to_what_a_dataset_holds():
    images = torch.tensor([-1.5, -1.0, 0.0, 1.0, 2.0]).view(5, 1, 1, 1)
    assert as_stored(images).flatten().tolist() == [0, 0, 128, 255, 255]
    points = torch.randn(3, 2)
    assert np.array_equal(as_stored(points), points.numpy())


def test_every_grey_level_comes_back():
    levels = torch.arange(256, dtype=torch.uint8).view(256, 1, 1, 1)
    assert np.array_equal(as_stored(diagan.data.as_input(levels)), levels.numpy())


def test_pngs_and_a_grid(finished_run, trained, tmp_path):
    said = write_samples(finished_run, 10, tmp_path / "out", seed=5)
    assert said.startswith(f"wrote 10 samples of weighted at step 12 to {tmp_path / 'out'}")
    assert "of the proposals kept by critic" in said
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    # The folder has samples and nothing else: it may be evaluated as it is.
    assert names == [f"{i:06d}.png" for i in range(10)]
    assert Image.open(tmp_path / "out.png").width > 8 * 2 * 8
    with pytest.raises(UserError, match="is there already and is not empty"):
        write_samples(finished_run, 4, tmp_path / "out")
    expected = trained.sample(10, seed=5)
    for number, image in enumerate(expected):
        pixels = np.asarray(Image.open(tmp_path / "out" / f"{number:06d}.png"))
        assert np.array_equal(pixels, image.transpose(1, 2, 0))


def test_a_folder_is_filled_a_part_at_a_time(finished_run, tmp_path, monkeypatch):
    write_samples(finished_run, 10, tmp_path / "whole", seed=5)
    monkeypatch.setattr("diagan.sample.N_HELD", 4)
    write_samples(finished_run, 10, tmp_path / "parts", seed=5)
    for file in (tmp_path / "whole").glob("0*.png"):
        assert file.read_bytes() == (tmp_path / "parts" / file.name).read_bytes()


def test_without_rejection_and_of_another_arm(finished_run, tmp_path):
    said = write_samples(finished_run, 3, tmp_path / "out", drs=False, arm="plain")
    assert said == f"wrote 3 samples of plain at step 12 to {tmp_path / 'out'}"
    assert len(list((tmp_path / "out").glob("0*.png"))) == 3


@pytest.mark.parametrize("channels", [1, 3])
def test_a_grid_has_every_image_in_its_place(channels):
    images = np.random.default_rng(0).integers(0, 256, (10, channels, 4, 4), dtype=np.uint8)
    sheet = np.asarray(image_grid(images, columns=4, pad=1))
    assert sheet.shape[:2] == (3 * 5 + 1, 4 * 5 + 1)
    row, column = divmod(6, 4)
    cell = sheet[row * 5 + 1 : row * 5 + 5, column * 5 + 1 : column * 5 + 5]
    assert np.array_equal(cell.reshape(4, 4, channels), images[6].transpose(1, 2, 0))
    doubled = np.asarray(image_grid(images, columns=4, pad=1, scale=2))
    assert np.array_equal(doubled[::2, ::2], sheet)


# --- a chain of ratios: data over weighted data over fakes ------------------------------------


@pytest.fixture
def chained(finished_run, tmp_path):
    """The finished run, as if its critic had been shown D's reals."""
    path = shutil.copytree(finished_run, tmp_path / "run")
    of_reals = config.Critic(fakes="reals", forward="joint")
    settings = replace(read_settings(RunDir(path)), critic=of_reals)
    write_json(RunDir(path).config, config.to_json(settings))
    return load_generator(path)


def test_a_critic_of_reals_rejects_together_with_d(chained, trained):
    assert chained.rejects_by == "critic and D" and chained.is_ldr and not chained.d.training
    images = chained.generate(20, torch.Generator().manual_seed(0))
    critic, d = chained.d.links
    torch.testing.assert_close(chained.ldr(images), critic(images).logits + d(images).logits)
    torch.testing.assert_close(critic(images).logits, trained.ldr(images))
    assert not torch.equal(critic(images).logits, d(images).logits)
    assert chained.sample(5).shape == (5, 3, 16, 16)


def test_a_chain_has_no_ldrv_of_one_last_layer(chained, tmp_path):
    with pytest.raises(UserError, match=r"Eq. 5 is of one; give --arm plain or phase1"):
        diagnose_checkpoint(tmp_path / "run", out=tmp_path / "out")


def test_a_hinge_d_is_chained_by_its_logistic_head(tmp_path):
    settings = replace(POINTS, loss="hinge", methods=config.Methods(logistic_head=True),
                       critic=config.Critic(fakes="reals"))  # fmt: skip
    world = world_of(settings, tmp_path)
    for stage in stages(settings):
        assert train_stage(world, stage, np.ones(48), lambda: False)
    write_json(RunDir(tmp_path).provenance, {"shape": [2]})
    write_json(RunDir(tmp_path).config, config.to_json(settings))
    critic, d = load_generator(tmp_path).d.links
    points = torch.randn(9, 2)
    torch.testing.assert_close(d(points).logits, d(points).heads["logistic"].squeeze(1))
    assert not torch.equal(critic(points).logits, critic(points).heads["logistic"].squeeze(1))


def test_arms_without_a_critic_have_no_chain(chained, tmp_path):
    assert load_generator(tmp_path / "run", "plain").rejects_by == "D"


# --- hinge, and points ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hinge_run(tmp_path_factory):
    """A hinge run on points: phase 1 has no critic, the weighted stage has one."""
    path = tmp_path_factory.mktemp("hinge")
    settings = replace(POINTS, loss="hinge")
    world = world_of(settings, path)
    for stage in stages(settings):
        assert train_stage(world, stage, np.ones(48), lambda: False)
    write_json(RunDir(path).provenance, {"shape": [2]})
    write_json(RunDir(path).config, config.to_json(settings))
    return path


def test_a_hinge_discriminator_cannot_reject(hinge_run):
    plain = load_generator(hinge_run, "plain")
    with pytest.raises(UserError, match=r"the raw output of a hinge .* sample with --no-drs"):
        plain.sample(5)
    points = plain.sample(5, drs=False)
    assert points.shape == (5, 2) and points.dtype == np.float32


def test_the_critic_of_a_hinge_run_can(hinge_run, tmp_path):
    weighted = load_generator(hinge_run)
    assert weighted.rejects_by == "critic"
    assert weighted.sample(5).shape == (5, 2)
    write_samples(hinge_run, 7, tmp_path)
    assert np.load(tmp_path / "points.npy").shape == (7, 2)


# --- what is not there ---------------------------------------------------------------------------


def test_refusals(finished_run, hinge_run, tmp_path):
    with pytest.raises(UserError, match="is not a run folder: it has no config"):
        load_generator(tmp_path)
    with pytest.raises(UserError, match="--n 0: expected at least 1"):
        write_samples(finished_run, 0, tmp_path)
    with pytest.raises(UserError, match="--budget is for rejection sampling"):
        write_samples(finished_run, 1, tmp_path, drs=False, budget=2)
    with pytest.raises(UserError, match="budget 0: expected 1"):
        write_samples(finished_run, 1, tmp_path, budget=0)
    shutil.copy(hinge_run / "config.json", tmp_path)
    with pytest.raises(UserError, match="has no checkpoint of any stage yet; train it first"):
        load_generator(tmp_path)
    with pytest.raises(UserError, match="has no checkpoint of plain yet"):
        load_generator(tmp_path, "plain")


def test_rejection_may_take_its_statistics_of_fakes(trained):
    """As in the published evaluation of the digits; whoever else asks D finds it as it was."""
    settings = trained.config
    by_fakes = replace(
        trained,
        config=replace(settings, rejection=replace(settings.rejection, statistics="fakes")),
    )
    before = {name: value.clone() for name, value in trained.d.state_dict().items()}
    assert trained.judge() is trained
    assert not np.array_equal(by_fakes.sample(20), trained.sample(20))
    assert np.array_equal(by_fakes.sample(20), by_fakes.sample(20))
    assert np.array_equal(by_fakes.sample(20, drs=False), trained.sample(20, drs=False))
    judge = by_fakes.judge()
    assert not judge.d.training
    norm = next(m for m in judge.d.modules() if isinstance(m, torch.nn.BatchNorm2d))
    seen = []
    norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].mean(dim=(0, 2, 3))))
    judge.ldr(trained.generate(64, torch.Generator().manual_seed(5)))
    torch.testing.assert_close(norm.running_mean, seen[0], atol=0.05, rtol=0.05)
    for name, value in judge.d.named_parameters():
        assert torch.equal(value, before[name])
    assert all(torch.equal(value, before[name]) for name, value in trained.d.state_dict().items())
