"""Checkpoints appear whole or not at all, and are refused in one sentence where they do not fit."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from tiny import same
from torch import nn

from diagan import checkpoint
from diagan.errors import UserError


def tensors(value: float = 1.0) -> dict[str, dict[str, torch.Tensor]]:
    return {"G": {"weight": torch.full((2, 3), value)}, "D": {"bias": torch.arange(4)}}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_saved_comes_back_bit_for_bit(tmp_path: Path):
    files = {
        "G": {"a": torch.randn(3, 4).t(), "b": torch.tensor([0.0, -0.0, 1e-45, 3e38])},
        "D": {"c": torch.randn(5).bfloat16(), "n": torch.tensor(7), "v": torch.randn(4).double()},
        "empty": {},
    }
    path = checkpoint.save(tmp_path / "checkpoints", "phase1", 12, files)
    assert path.name == "phase1-000012"
    loaded = checkpoint.load(path)
    assert loaded.keys() == files.keys()
    for name in files:
        assert same(loaded[name], files[name])
        assert all(loaded[name][k].dtype == files[name][k].dtype for k in files[name])
    assert torch.signbit(loaded["G"]["b"][1])


def test_one_that_is_there_is_not_written_again(tmp_path: Path):
    checkpoint.save(tmp_path, "plain", 3, tensors(1.0))
    path = checkpoint.save(tmp_path, "plain", 3, tensors(2.0))
    assert same(checkpoint.load(path)["G"], tensors(1.0)["G"])


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SafetensorError("io")])
def test_a_failed_write_leaves_the_old_one_and_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
):
    checkpoint.save(tmp_path, "phase1", 1, tensors())
    real = checkpoint.save_file

    def fails_at_the_second(flat: dict[str, torch.Tensor], path: Path) -> None:
        real(flat, path)
        if path.name == "D.safetensors":
            raise error

    monkeypatch.setattr(checkpoint, "save_file", fails_at_the_second)
    with pytest.raises(UserError, match=r"checkpoint of step 2.*free some disk") as told:
        checkpoint.save(tmp_path, "phase1", 2, tensors())
    assert "\n" not in str(told.value)
    assert names(tmp_path) == ["phase1-000001"]
    assert same(checkpoint.load(tmp_path / "phase1-000001")["G"], tensors()["G"])


def test_steps_of_a_stage_in_order(tmp_path: Path):
    assert checkpoint.steps(tmp_path / "none", "phase1") == []
    for stage, step in (("phase1", 2), ("phase1", 1_000_000), ("phase1", 30), ("plain", 5)):
        checkpoint.save(tmp_path, stage, step, {})
    (tmp_path / ".phase1-000040.tmp").mkdir()
    (tmp_path / "phase1-backup").mkdir()
    assert checkpoint.steps(tmp_path, "phase1") == [2, 30, 1_000_000]
    assert checkpoint.steps(tmp_path, "plain") == [5]


def test_the_last_two_stay(tmp_path: Path):
    for step in (1, 2, 3, 4):
        checkpoint.save(tmp_path, "phase1", step, {})
    checkpoint.save(tmp_path, "plain", 1, {})
    checkpoint.prune(tmp_path, "phase1")
    assert names(tmp_path) == ["phase1-000003", "phase1-000004", "plain-000001"]


def test_one_that_is_half_pruned_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for step in (1, 2, 3):
        checkpoint.save(tmp_path, "phase1", step, tensors())

    def killed(folder: Path) -> None:
        (folder / "G.safetensors").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint.shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.prune(tmp_path, "phase1")
    assert checkpoint.steps(tmp_path, "phase1") == [2, 3]


def test_what_cannot_be_read_says_what_to_do(tmp_path: Path):
    path = checkpoint.save(tmp_path, "phase1", 1, tensors())
    file = path / "G.safetensors"
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"phase1-000001 cannot be read .*; delete this folder"):
        checkpoint.load(path)
    state = {"format": checkpoint.FORMAT + 1, "stage": "phase1", "step": 1}
    (path / "state.json").write_text(json.dumps(state))
    with pytest.raises(UserError, match=r"has checkpoint format 2; this diagan reads 1"):
        checkpoint.load(path)
    (path / "state.json").unlink()
    with pytest.raises(UserError, match=r"cannot read .*state\.json"):
        checkpoint.load(path)


@pytest.mark.parametrize(
    "other", [nn.Linear(3, 5), nn.Linear(3, 4, bias=False), nn.Sequential(nn.Linear(3, 4))]
)
def test_another_network_is_told_in_a_sentence(other: nn.Module):
    with pytest.raises(UserError, match="HERE holds another network than this config") as told:
        checkpoint.load_network(nn.Linear(3, 4), other.state_dict(), "HERE")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_adam_goes_on_as_if_nothing_had_been(memory: torch.memory_format, tmp_path: Path):
    def made() -> tuple[nn.Module, torch.optim.Adam]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 4, 2), nn.BatchNorm2d(4), nn.Conv2d(4, 1, 3))
        net.to(memory_format=memory)
        return net, torch.optim.Adam(net.parameters(), 0.1, (0.5, 0.9), fused=True)

    def train(net: nn.Module, adam: torch.optim.Adam, seeds: range) -> None:
        for seed in seeds:
            x = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(seed))
            adam.zero_grad()
            net(x).square().mean().backward()
            adam.step()

    whole = made()
    train(*whole, range(6))
    first, second = made(), made()
    train(*first, range(3))
    files = {"net": first[0].state_dict(), "net.optim": checkpoint.optimiser_tensors(*first)}
    loaded = checkpoint.load(checkpoint.save(tmp_path, "phase1", 3, files))
    checkpoint.load_network(second[0], loaded["net"], "")
    checkpoint.load_optimiser(*second, loaded["net.optim"])
    train(*second, range(3, 6))
    assert same(whole[0].state_dict(), second[0].state_dict())
    moments = [checkpoint.optimiser_tensors(*pair) for pair in (whole, second)]
    assert same(*moments)
    assert {"0.weight.exp_avg", "0.weight.exp_avg_sq", "0.weight.step"} < moments[0].keys()
