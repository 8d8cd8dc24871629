import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tiny import DIGITS, POINTS, Overheard, data_of

from diagan import pipeline
from diagan.config import DrawnFaces
from diagan.data import load_dataset
from diagan.errors import UserError
from diagan.evaluate import (
    Arm,
    Look,
    arms_of,
    evaluate_folders,
    evaluate_images,
    evaluate_run,
    subsets_by,
)
from diagan.groups import GroupProbe
from diagan.rundir import RunDir, read_json, read_lines, write_json
from diagan.sample import load_generator


def test_metrics_of_a_whole_run(finished_run):
    lines = read_lines(RunDir(finished_run).metrics)
    shares = [line for line in lines if line["metric"] == "group_share"]
    arms = {(line["arm"], line["drs"]) for line in shares}
    assert arms == {("plain", False), ("weighted", False), ("weighted", True)}
    for arm in arms:
        own = [line for line in shares if (line["arm"], line["drs"]) == arm]
        assert [line["group"] for line in own] == ["red", "green"]
        assert sum(line["value"] for line in own) == pytest.approx(1)
        assert all(line["low"] <= line["value"] <= line["high"] for line in own)
        # A share says from what, and how far its probe can be trusted.
        assert all(line["n_fake"] == 64 and 0 <= line["probe_accuracy"] <= 1 for line in own)
        assert {line["checkpoint"] for line in own} == {f"{arm[0]}-000012"}
    (rate,) = [line for line in lines if line["metric"] == "acceptance_rate"]
    assert 0 < rate["value"] < 1 and rate["rejects_by"] == "critic"
    (ratio,) = [line for line in lines if line["metric"] == "mean_ratio"]
    assert ratio["value"] > 0 and ratio["arm"] == "weighted" and ratio["drs"]


def test_a_share_is_that_of_the_samples_that_the_seed_draws(finished_run):
    """What is in metrics.jsonl can be counted again from the checkpoint."""
    data = load_dataset(DIGITS.data, seed=DIGITS.seed)
    probe = GroupProbe.fit(data.values, data.groups, 2, seed=DIGITS.seed)
    fake = load_generator(finished_run, "plain").sample(64, seed=DIGITS.seed, drs=False)
    mine = float(np.mean(probe.predict(fake) == 1))
    lines = read_lines(RunDir(finished_run).metrics)
    (theirs,) = [x for x in lines if x["arm"] == "plain" and x.get("group") == "green"]
    assert theirs["value"] == mine


def test_pictures_of_every_arm(finished_run):
    found = {path.name for path in (finished_run / "generated").glob("*.png")}
    assert found == {"plain.png", "weighted.png", "weighted_drs.png"}


def test_without_a_critic_nothing_rejects_of_itself(finished_run):
    """D, that saw weighted reals, would draw its arm towards these; asked for, it does."""
    run = RunDir(finished_run)
    assert arms_of(run, DIGITS) == [Arm("plain"), Arm("weighted"), Arm("weighted", drs=True)]
    alone = replace(DIGITS, critic=replace(DIGITS.critic, on=False))
    assert arms_of(run, alone) == [Arm("plain"), Arm("weighted")]


def test_evaluate_a_run(finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "run")
    names = ["fid40_train", "pr30_k3", "partial_recall30_k3", "shares40"]
    lines = evaluate_run(
        run, names, arms=["plain", "plain+drs", "weighted"], look=Look("discriminator")
    )
    assert {(x["arm"], x["drs"], x["rejects_by"]) for x in lines} == {
        ("plain", False, None), ("plain", True, "D"), ("weighted", False, None)}  # fmt: skip
    measured = [x for x in lines if x["metric"] not in ("acceptance_rate", "mean_ratio")]
    needed = {
        "n_real",
        "n_fake",
        "seed",
        "extractor",
        "extractor_version",
        "drs",
        "checkpoint",
        "data",
    }
    assert all(needed <= set(x) and not x["comparable_with_published"] for x in measured)
    stored = read_lines(RunDir(run).metrics)
    assert [x for x in stored if x.get("extractor") != "pixels"][-len(lines) :] == lines

    evaluate_run(run, names, arms=["plain"], look=Look("discriminator"))
    assert len(read_lines(RunDir(run).metrics)) == len(stored)  # the same anew, nothing twice


@pytest.mark.slow
def test_points_need_no_extractor(tmp_path):
    run = pipeline.run(POINTS, tmp_path / "run").path
    lines = evaluate_run(run, ["fid100_train", "pr100_k3"])
    assert {x.get("extractor", "") for x in lines} == {"", "coordinates"}  # "": acceptance rate
    evaluate_run(run, ["fid100_train"])  # of which nothing need be held in memory
    assert np.load(run / "generated/plain.npy").shape == (100, 2)


@pytest.mark.parametrize(
    ("arm", "known"),
    [("phase2", "weighted, plain, phase1"), ("plain+gold", r"plain\+drs"), ("", "weighted")],
)
def test_an_unknown_arm(arm, known):
    with pytest.raises(UserError, match=known):
        Arm.of(arm)


def write_pngs(folder, images):
    folder.mkdir(parents=True)
    for i, image in enumerate(images):
        Image.fromarray(image.transpose(1, 2, 0).squeeze()).save(folder / f"{i:03}.png")


def test_folders_of_any_origin(tmp_path):
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 256, (40, 3, 12, 12), dtype=np.uint8)
    write_pngs(tmp_path / "real" / "a", colour[:20])
    write_pngs(tmp_path / "real" / "b", colour[20:])
    write_pngs(tmp_path / "fake", colour[:, :1])  # grey
    look = Look("pixels")
    shown = Overheard()
    lines = evaluate_folders(tmp_path / "real", tmp_path / "fake", look=look, shown=shown)
    (warning,) = [text for text in shown.said if text.startswith("warning")]
    assert "the covariance is singular" in warning
    assert {x["protocol"] for x in lines} >= {"fid40_train", "partial_recall40_k3", "shares40"}
    assert {x.get("group") for x in lines} == {None, "a", "b"}
    assert all(np.isfinite(x["value"]) for x in lines)
    with pytest.raises(UserError, match="fid50_train needs 50 generated images and there are 40"):
        evaluate_folders(tmp_path / "real", tmp_path / "fake", ["fid50_train"], look=look)


def test_arrays(tmp_path):
    rng = np.random.default_rng(2)
    real, fake = rng.integers(0, 256, (2, 90, 1, 4, 4), dtype=np.uint8)
    (fid,) = evaluate_images(real=real, fake=fake, names=["fid80_train"], look=Look("pixels"))
    assert fid["value"] > 0 and (fid["n_real"], fid["n_fake"]) == (90, 80)


def test_a_set_against_itself(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (60, 1, 4, 4), dtype=np.uint8)
    write_pngs(tmp_path / "a", images)
    names = ["fid60_train", "pr60_k3"]
    fid, precision, recall = evaluate_folders(
        tmp_path / "a", tmp_path / "a", names, look=Look("pixels")
    )
    assert fid["value"] == pytest.approx(0, abs=1e-6)
    assert (precision["value"], recall["value"]) == (1, 1)


def test_without_weights_folders_are_measured_all_the_same(tmp_path):
    images = np.random.default_rng(1).integers(0, 256, (12, 1, 16, 16), dtype=np.uint8)
    write_pngs(tmp_path / "a", images)
    lines = evaluate_folders(tmp_path / "a", tmp_path / "a")
    assert {x["extractor"] for x in lines} == {"patches"}
    assert not any(x["comparable_with_published"] for x in lines)
    small = evaluate_folders(tmp_path / "a", tmp_path / "a", ["fid12_train"], size=8)
    assert small[0]["extractor"] == "pixels"
    with pytest.raises(UserError, match="diagan weights fetch inception"):
        evaluate_folders(tmp_path / "a", tmp_path / "a", look=Look("inception"))


def test_some_of_the_fakes_are_any_of_them():
    """Were the first, which in a folder are those of its first classes."""
    half = np.repeat(np.array([0, 200], dtype=np.uint8), 100)[:, None, None, None]
    images = half + np.random.default_rng(0).integers(0, 40, (200, 1, 4, 4), dtype=np.uint8)
    (fid,) = evaluate_images(real=images, fake=images, names=["fid100_train"], look=Look("pixels"))
    assert fid["value"] < 0.5  # 2.6 of the first hundred


def test_other_images_than_it_was_trained_on_are_refused(finished_run, tmp_path):
    run = RunDir(shutil.copytree(finished_run, tmp_path / "run"))
    stored = read_json(run.provenance)
    stored["data"]["fingerprint"] = "other"
    write_json(run.provenance, stored)
    with pytest.raises(UserError, match="the data are not those that"):
        evaluate_run(run.path, ["fid40_train"])


def test_subsets(tmp_path):
    data = data_of(DIGITS)
    red, green = subsets_by("group", data, None)
    assert len(red.indices) + len(green.indices) == data.n and green.name == "green"
    scores = np.arange(data.n)[::-1].astype(float)
    quarters = subsets_by("score", data, scores)
    assert [len(q.indices) for q in quarters] == [len(p) for p in np.array_split(scores, 4)]
    assert quarters[-1].indices[0] == 0  # the highest score
    scores[:4] = np.nan  # never seen: neither high nor low
    assert not {0, 1, 2, 3} & {int(i) for q in subsets_by("score", data, scores) for i in q.indices}
    faces = load_dataset(DrawnFaces(n=200), seed=0)
    (pale,) = subsets_by("attribute:pale", faces, None)
    assert np.array_equal(pale.indices, np.flatnonzero(faces.attributes["pale"]))
    with pytest.raises(UserError, match="no attribute 'pail'; did you mean pale"):
        subsets_by("attribute:pail", faces, None)
    (tmp_path / "odd.txt").write_text("3\n5\n5\n")
    np.save(tmp_path / "odd.npy", [3, 5])
    for name in ("odd.txt", "odd.npy"):
        (mine,) = subsets_by(str(tmp_path / name), data, None)
        assert mine.name == "odd" and mine.indices.tolist() == [3, 5]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no list of indices"),
        ("a b", "expected group, score, attribute:NAME, or a file"),
        ("-1", "outside 0 to"),
        ("999999", "another dataset"),
    ],
)
def test_a_bad_list_of_indices(tmp_path, text, sentence):
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(UserError, match=sentence):
        subsets_by(str(tmp_path / "list.txt"), data_of(DIGITS), None)
    with pytest.raises(UserError, match="diagnose the run first"):
        subsets_by("score", data_of(DIGITS), None)
