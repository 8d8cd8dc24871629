"""What a finished run keeps of its discriminators: read only."""

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from diagan.data import as_input, load_dataset
from diagan.findings import calibration, judging
from diagan.rundir import RunDir, read_json, write_json
from diagan.sample import load_at


@pytest.fixture(scope="module")
def run(finished_run) -> RunDir:
    return RunDir(finished_run)


def test_flags_and_clusters_are_columns_of_the_samples(run):
    table = pq.read_table(run.samples)
    flag, cluster = (table[name].to_numpy(zero_copy_only=False) for name in ("flag", "cluster"))
    found = read_json(run.diagnosis)["high_scored"]
    assert found["n_high"] == np.sum(flag != "") == 5  # a tenth of 48, rounded up
    assert found["rare"] == np.sum(flag == "rare")
    assert np.array_equal(cluster >= 0, flag == "rare")


@pytest.mark.parametrize("arm", ["plain", "weighted", "weighted_drs"])
def test_the_ldr_of_the_stored_fakes_is_that_of_the_one_who_rejects(run, arm):
    name = arm.removesuffix("_drs")
    stored = np.load(run.generated / f"{arm}.npz")["images"]
    ldrs = np.load(run.generated / f"{arm}_ldr.npy")
    trained = load_at(run, name, 12)
    again = trained.ldr(as_input(torch.from_numpy(stored.transpose(0, 3, 1, 2))))
    assert ldrs.dtype == np.float32 and ldrs.shape == (len(stored),)
    assert np.allclose(ldrs, again.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    "file, arm, step, by", [("", "phase1", 6, "D"), ("_rejection", "weighted", 12, "critic")]
)
def test_both_judged_discriminators(run, file, arm, step, by):
    logits, about = calibration.read(run.path / f"calibration{file}.npz")
    assert (about["arm"], about["step"], about["scored_by"]) == (arm, step, by)
    assert about["is_ldr"] is True
    sizes = {name: len(values) for name, values in logits.items()}
    assert sizes == {"heldout": 48, "train": 48, "fake": 48}  # there are 48 training samples


def test_held_out_logits_are_those_of_the_record(run):
    """D was recorded in eval mode at the same step, on the same held-out samples."""
    logits, _ = calibration.read(run.calibration)
    recorded = np.load(run.record / "000006.heldout.npy")
    n = len(logits["heldout"])
    assert np.allclose(logits["heldout"], recorded[:n], atol=1e-4)


def test_the_rejecting_one_is_judged_as_it_rejects(finished_run, tmp_path):
    """With BatchNorm's statistics of fakes, where these are what it rejects by."""
    run = RunDir(shutil.copytree(finished_run, tmp_path / "run"))
    settings = read_json(run.config)
    settings["rejection"]["statistics"] = "fakes"
    write_json(run.config, settings)
    trained = load_at(run, "weighted", 12)
    data = load_dataset(trained.config.data, seed=trained.config.seed)
    judging.judge_run(run, data)
    rejecting, _ = calibration.read(run.path / "calibration_rejection.npz")
    held = as_input(torch.from_numpy(data.heldout[: len(rejecting["heldout"])]))
    assert np.allclose(rejecting["heldout"], trained.judge().ldr(held), atol=1e-5)
    assert not np.allclose(rejecting["heldout"], trained.ldr(held), atol=1e-2)
    recorded, there = (calibration.read(r.calibration)[0] for r in (run, RunDir(finished_run)))
    assert np.array_equal(recorded["heldout"], there["heldout"])  # D, as it was recorded
    judging.keep_ldr(run, "mine", trained, data.values[:4])
    mine = trained.judge().ldr(as_input(torch.from_numpy(data.values[:4])))
    assert np.allclose(np.load(run.generated / "mine_ldr.npy"), mine, atol=1e-5)


def test_judging_again_gives_the_same_files(run, tmp_path):
    settings = load_at(run, "phase1", 6).config
    data = load_dataset(settings.data, seed=settings.seed)
    judging.judge(run, data, "phase1", "me", tmp_path / "calibration.npz")
    mine, _ = calibration.read(tmp_path / "calibration.npz")
    there, _ = calibration.read(run.calibration)
    assert all(np.array_equal(mine[name], there[name]) for name in there)
    judging.judge(run, data, "nobody", "me", tmp_path / "other.npz")
    assert not (tmp_path / "other.npz").exists()
