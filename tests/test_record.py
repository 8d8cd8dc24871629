"""The record: what comes back is what was put in, and a pass over the data leaves no trace."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from diagan.errors import UserError
from diagan.networks import Scores
from diagan.record import LdrRecord, index_batches, score_all, untouched


class Noisy(nn.Module):
    """A discriminator with all that a pass could disturb: BatchNorm, dropout, modes."""

    def __init__(self) -> None:
        super().__init__()
        layers = nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1)
        self.layers = nn.Sequential(*layers)
        self.seen: list[int] = []

    def forward(self, x: Tensor) -> Scores:
        self.seen.append(len(x))
        features = self.layers[:-1](x)
        return Scores(self.layers[-1](features).squeeze(1), features, {})


def points(n: int) -> Tensor:
    return torch.randn(n, 2, generator=torch.Generator().manual_seed(n))


def test_records_come_back_in_order(tmp_path: Path):
    record = LdrRecord(tmp_path / "record", 3, mode="eval")
    record.add(3, np.array([0.5, -0.0, 1e-40]))
    record.write(3, np.zeros(7), part="heldout")
    record.add(20, torch.tensor([1.0, 2.0, 3.0]))
    again = LdrRecord(tmp_path / "record", 3)
    assert again.steps == [3, 20]
    assert again.read(20).tolist() == [1.0, 2.0, 3.0]
    assert again.read(3).dtype == np.float32
    assert len(again.read(3, "heldout")) == 7
    assert json.loads((tmp_path / "record/meta.json").read_text()) == {
        "format": 1, "n": 3, "mode": "eval",
    }  # fmt: skip


def test_what_a_discriminator_says_can_be_added_as_it_is(tmp_path: Path):
    record = LdrRecord(tmp_path, 3)
    logits = nn.Linear(2, 1)(points(3))  # [3, 1], with a graph
    record.add(1, logits)
    record.add(2, logits.bfloat16())
    first, second = record
    assert first.tolist() == logits[:, 0].tolist()
    assert second.tolist() == logits[:, 0].bfloat16().tolist()


def test_records_of_an_earlier_training_do_not_pass_for_those_of_this_one(tmp_path: Path):
    first = LdrRecord(tmp_path, 2)
    for step in (0, 20, 40):
        first.add(step, np.zeros(2))
    again = LdrRecord(tmp_path, 2)
    with pytest.raises(UserError, match=r"steps up to 40 of an earlier training; .*cut\(after="):
        again.add(20, np.ones(2))
    assert first.read(20).tolist() == [0, 0]
    again.cut(after=10)
    again.add(20, np.ones(2))
    first.add(20, np.ones(2))  # as another process of the same training does
    LdrRecord(tmp_path, 2).add(60, np.ones(2))  # where it goes on from a checkpoint at the end
    assert first.steps == [0, 20, 60]


@pytest.mark.parametrize("step", [-1, 5.5, True])
def test_steps_are_whole_numbers(tmp_path: Path, step: object):
    with pytest.raises(UserError, match=f"step {step}: expected a whole number, 0 or more"):
        LdrRecord(tmp_path, 2).add(step, np.zeros(2))  # type: ignore[arg-type]
    assert LdrRecord(tmp_path, 2).steps == []


def test_a_record_is_cut_after_a_step(tmp_path: Path):
    record = LdrRecord(tmp_path, 2)
    for step in (5, 10, 15):
        record.add(step, np.zeros(2))
        record.write(step, np.zeros(4), part="heldout")
    np.save(tmp_path / "notes.npy", np.zeros(1))
    record.cut(after=10)
    kept = {"000005.npy", "000005.heldout.npy", "000010.npy", "000010.heldout.npy"}
    assert {path.name for path in tmp_path.iterdir()} == kept | {"meta.json", "notes.npy"}


@pytest.mark.parametrize(
    ("logits", "told"),
    [
        (np.zeros(2), r"a record needs 3 logits, one a sample, got \(2,\)"),
        (np.zeros((3, 2)), r"a record needs 3 logits, one a sample, got \(3, 2\)"),
        (np.array([0.0, np.nan, 1.0]), "step 7 holds values that are not finite"),
        (np.array([0.0, 1e300, 1.0]), "step 7 holds values that are not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_no_record_is_not_kept(tmp_path: Path, logits: np.ndarray, told: str):
    record = LdrRecord(tmp_path, 3)
    with pytest.raises(UserError, match=told):
        record.add(7, logits)
    assert [path.name for path in tmp_path.iterdir()] == ["meta.json"]


def test_files_that_were_changed_are_refused_by_name(tmp_path: Path):
    record = LdrRecord(tmp_path, 3)
    file = tmp_path / "000007.npy"
    np.save(file, np.array([0.0, np.nan, np.inf], np.float32))
    with pytest.raises(UserError, match=r"000007\.npy holds 2 values that are NaN or infinite"):
        record.read(7)
    np.save(file, np.zeros(4, np.float32))
    with pytest.raises(UserError, match=r"000007\.npy has shape \(4,\), but the dataset has 3"):
        record.read(7)
    for left in (0, 20, 130):
        np.save(file, np.zeros(3, np.float32))
        file.write_bytes(file.read_bytes()[:left])
        with pytest.raises(UserError, match=r"000007\.npy cannot be read"):
            record.read(7)
    np.save(file, np.array([{}, {}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match=r"000007\.npy cannot be read"):
        record.read(7)
    with pytest.raises(UserError, match=r"000008\.npy cannot be read"):
        record.read(8)


def test_a_record_of_something_else_is_refused(tmp_path: Path):
    LdrRecord(tmp_path, 3, fingerprint="abc")
    LdrRecord(tmp_path, 3)  # who does not know the fingerprint may read it
    with pytest.raises(UserError, match="is of 3 samples, but the dataset has 4"):
        LdrRecord(tmp_path, 4, fingerprint="abc")
    with pytest.raises(UserError, match="is of other samples than the dataset holds now"):
        LdrRecord(tmp_path, 3, fingerprint="abd")
    meta = tmp_path / "meta.json"
    meta.write_text(meta.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(UserError, match=r"meta\.json has record format 2; this diagan reads 1"):
        LdrRecord(tmp_path, 3)


def test_running_moments_come_back(tmp_path: Path):
    record = LdrRecord(tmp_path, 2)
    with pytest.raises(UserError, match=r"free\.npz cannot be read"):
        record.free_moments()
    record.write_free(np.array([4, 3], np.int32), np.ones(2, np.float32), np.full(2, 6, np.float32))
    count, ldrm, ldrv = record.free_moments()
    assert count.tolist() == [4, 3]
    assert ldrm.tolist() == [1.0, 1.0]
    assert ldrv[0] == 2.0
    assert np.isnan(ldrv[1])
    file = tmp_path / "free.npz"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(UserError, match=r"free\.npz cannot be read"):
        record.free_moments()
    record.write_free(np.ones(3, np.int32), np.ones(3, np.float32), np.ones(3, np.float32))
    with pytest.raises(UserError, match=r"has shape \(3,\), but the dataset has 2"):
        record.free_moments()


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_pass_leaves_no_trace(mode: str):
    torch.manual_seed(1)
    net = Noisy()
    net.layers[2].eval()  # modes come back one by one
    before = {name: value.clone() for name, value in net.state_dict().items()}
    modes = [module.training for module in net.modules()]
    randomness = torch.get_rng_state()
    first = score_all(net, points(50), lambda x: x, mode=mode, batch_size=16, seed=3, step=5)
    assert torch.equal(torch.get_rng_state(), randomness)
    assert [module.training for module in net.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    again = score_all(net, points(50), lambda x: x, mode=mode, batch_size=16, seed=3, step=5)
    assert torch.equal(first, again)
    assert not first.requires_grad


def test_what_fails_inside_leaves_no_trace_either():
    net = Noisy()
    with pytest.raises(ValueError, match="stop"), untouched(net, training=False):
        raise ValueError("stop")
    assert all(module.training for module in net.modules())


def test_eval_mode_scores_each_sample_by_itself():
    torch.manual_seed(2)
    net = Noisy()
    values = points(33)
    logits = score_all(net, values, lambda x: 2 * x, batch_size=10)
    assert net.seen == [10, 10, 10, 3]
    net.eval()
    with torch.no_grad():
        alone = torch.cat([net(2 * x[None]).logits for x in values])
    torch.testing.assert_close(logits, alone)


def test_large_images_are_scored_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr("diagan.batches.PIXELS", 3)
    net = Noisy()
    score_all(net, points(7)[:, :, None, None], lambda x: x.flatten(1))
    assert net.seen == [3, 3, 1]


def test_train_mode_has_whole_batches_and_a_new_order_each_time():
    net = Noisy()
    values = points(33)
    first = score_all(net, values, lambda x: x, mode="train", batch_size=10, step=1)
    assert net.seen == [10] * 4  # BatchNorm never sees a small one
    second = score_all(net, values, lambda x: x, mode="train", batch_size=10, step=2)
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_slices_of_processes_add_up_to_the_whole(mode: str):
    torch.manual_seed(3)
    net, values = Noisy(), points(47)

    def scored(**where: int) -> Tensor:
        return score_all(net, values, lambda x: x, mode=mode, batch_size=8, step=2, **where)

    parts = [scored(rank=rank, world_size=3) for rank in range(3)]
    assert torch.equal(sum(parts), scored())


@settings(max_examples=40)
@given(n=st.integers(1, 60), batch_size=st.integers(1, 20), mode=st.sampled_from(["eval", "train"]))
def test_every_sample_is_new_once(n: int, batch_size: int, mode: str):
    batches = list(index_batches(n, mode, batch_size, seed=0, step=0))
    new = torch.cat([indices[:n_new] for indices, n_new in batches])
    assert sorted(new.tolist()) == list(range(n))
    if mode == "train" and n >= batch_size:
        assert {len(indices) for indices, _ in batches} == {batch_size}
