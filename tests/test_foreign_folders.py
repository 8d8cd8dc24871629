"""`diagnose folders` and `filter`: two folders of images, from the command line."""

import json
import zipfile

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from diagan import cli
from diagan.errors import UserError
from diagan.foreign import folders
from diagan.foreign.filtering import accept, filter_folder
from diagan.foreign.folders import diagnose_folders
from diagan.foreign.probe import ProbeSettings
from diagan.rundir import RunDir, read_json, read_lines

QUICK = ProbeSettings(n_filters=8, n_records=4, window=3)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("diagan.features.patches.N_PATCHES", 1_000)
    monkeypatch.setattr("diagan.foreign.probe.MIN_STEPS", 300)
    monkeypatch.setattr(folders, "ProbeSettings", lambda: QUICK)


def blobs(folder, n, blue, seed):
    """Noisy squares in red, and a share of them in blue; blue ones in a sub-folder."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        is_blue = i < blue * n
        pixels = rng.integers(0, 60, (32, 32, 3)).astype(np.uint8)
        y, x = rng.integers(0, 20, size=2)
        pixels[y : y + 12, x : x + 12, 2 if is_blue else 0] += 190
        place = folder / ("blue" if is_blue else "red")
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{i:04d}.png")
    return folder


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    root = tmp_path_factory.mktemp("sets")
    return {"real": blobs(root / "real", 200, 0.1, 0), "without": blobs(root / "a", 180, 0.0, 1),
            "with": blobs(root / "b", 200, 0.1, 2)}  # fmt: skip


@pytest.fixture(scope="module")
def diagnosed(sets, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diagan.features.patches.N_PATCHES", 1_000)
        out = tmp_path_factory.mktemp("out") / "diagnosis"
        found = diagnose_folders(real=str(sets["real"]), fake=str(sets["without"]), out=out,
                                 settings=QUICK)  # fmt: skip
    return found, RunDir(out)


@pytest.mark.slow
def test_what_the_fakes_lack_is_found(diagnosed):
    found, run = diagnosed
    assert found.rare == "blue" and found.auc["score"] > 0.95
    *shares, modes = read_lines(run.metrics)
    lines = {line["group"]: line for line in shares}
    assert lines["blue"]["high"] < 0.1 < lines["red"]["low"]
    assert all(line["arm"] == "fake" for line in [*shares, modes])
    assert (modes["protocol"], modes["n_real"], modes["n_fake"]) == ("missing180", 200, 180)
    assert lines["blue"]["probe_balanced_accuracy"] > 0.3  # ten of them are enough for that


def test_the_folder_is_like_that_of_a_run(diagnosed):
    _, run = diagnosed
    about = read_json(run.diagnosis)
    assert about["mode"] == "folders" and about["n_fake"] == 180 and about["n_records"] == 3
    assert about["probe"].keys() == {
        "auc",
        "auc_standard_error",
        "loss",
        "decay",
        "n_missed",
        "tail",
    }
    table = pq.read_table(run.samples)
    assert table["file"][0].as_py().startswith("blue/") and table.num_rows == 200
    with np.load(run.generated / "fake.npz") as stored:
        assert stored["images"].shape == (180, 32, 32, 3)
    assert np.load(run.generated / "fake_ldr.npy").shape == (180,)
    with np.load(run.calibration) as stored:
        assert len(stored["heldout"]) == 200 and len(stored["fake"]) == 180
        assert len(stored["train"]) > 50
    assert len(list(run.record.glob("*.npy"))) == 4
    assert read_json(run.provenance)["data"]["n"] == 200


@pytest.mark.slow
def test_the_command_writes_a_report_and_says_that_few_images_tell_little(
    sets, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    cli.main(["diagnose", "folders", "--real", str(sets["real"]), "--fake", str(sets["with"])])
    told = capsys.readouterr().out
    assert "diagnosed 200 samples" in told and "200 fake images: a probe learns little" in told
    assert (tmp_path / "diagnosis" / "report.html").exists()
    *shares, modes = read_lines(RunDir(tmp_path / "diagnosis").metrics)
    lines = {line["group"]: line for line in shares}
    assert modes["value"] == 0
    assert lines["blue"]["high"] > 0.08  # no claim that blue is missing


def test_a_folder_that_holds_something_else_is_refused_before_any_work(sets, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "prepare", lambda **k: pytest.fail("worked first"))
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UserError, match="something else"):
        diagnose_folders(real=str(sets["real"]), fake=str(sets["with"]), out=tmp_path)


# --- filter --------------------------------------------------------------------------------------


def test_filter_keeps_exactly_n_original_files(sets, tmp_path, capsys):
    fake = blobs(tmp_path / "fake", 60, 0.0, 3)
    junk = np.random.default_rng(0).integers(0, 256, (60, 32, 32, 3)).astype(np.uint8)
    for i, pixels in enumerate(junk):
        Image.fromarray(pixels).save(fake / f"junk{i}.png")
    out = tmp_path / "kept"
    cli.main(["filter", "--real", str(sets["real"]), "--fake", str(fake), "--out", str(out),
              "--n", "40"])  # fmt: skip
    assert "kept 40 of 120 images (33.3%)" in capsys.readouterr().out
    files = sorted(out.rglob("*.png"))
    assert len(files) == 40 and sum("junk" in file.name for file in files) <= 2
    for file in files:  # byte for byte, under the same name
        assert file.read_bytes() == (fake / file.relative_to(out)).read_bytes()
    summary = json.loads((out / "filter.json").read_text())
    assert summary["n_kept"] == 40 and len(summary["kept"]) == 40
    with pytest.raises(UserError, match="not empty"):
        filter_folder(real=str(sets["real"]), fake=str(fake), out=out)


def test_filter_reads_zips_and_arrays(sets, tmp_path):
    with zipfile.ZipFile(tmp_path / "fake.zip", "w") as archive:
        for file in sorted(sets["without"].rglob("*.png"))[:50]:
            archive.write(file, f"deep/{file.name}")
    found = filter_folder(real=str(sets["real"]), fake=str(tmp_path / "fake.zip"),
                          out=tmp_path / "a", n=10)  # fmt: skip
    assert found.n_kept == len(list((tmp_path / "a" / "deep").glob("*.png"))) == 10
    pixels = [np.asarray(Image.open(f)) for f in sorted(sets["without"].rglob("*.png"))[:50]]
    np.save(tmp_path / "fake.npy", np.stack(pixels))
    filter_folder(real=str(sets["real"]), fake=str(tmp_path / "fake.npy"), out=tmp_path / "b", n=10)
    kept = sorted((tmp_path / "b").glob("*.png"))
    assert len(kept) == 10
    row = int(kept[0].stem.removeprefix("row-"))
    assert np.array_equal(np.asarray(Image.open(kept[0])), pixels[row])


def test_filter_refuses_what_it_cannot_keep(sets, tmp_path):
    with pytest.raises(UserError, match="expected 1 to 180"):
        filter_folder(real=str(sets["real"]), fake=str(sets["without"]), out=tmp_path / "x", n=999)
    assert not (tmp_path / "x").exists()


def test_acceptance_is_rejection_sampling():
    """Fakes have 80 % of kind a, reals 20 %: among the kept the kinds are as among the reals."""
    rng = np.random.default_rng(0)
    is_a = rng.random(200_000) < 0.8
    ldr = np.where(is_a, np.log(0.2 / 0.8), np.log(0.8 / 0.2)) + rng.normal(0, 1e-3, len(is_a))
    kept, _ = accept(ldr, n=None, seed=0)
    few, _ = accept(ldr, n=2_000, seed=0)
    assert is_a[few].mean() < is_a[kept].mean() < 0.8
    # sigmoid(F - gamma) is not e^LDR: it tends to it for strict gammas, up to the maximum's own.
    assert is_a[few].mean() == pytest.approx(0.2, abs=0.2)
    assert len(few) == 2_000 and np.all(np.diff(few) > 0)
