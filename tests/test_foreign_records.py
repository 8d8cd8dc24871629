"""`diagnose record`: records of any trainer, in every format of docs/formats.md."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pictures import photo

from diagan import cli
from diagan.config import Score
from diagan.diagnosis import diagnose
from diagan.errors import UserError
from diagan.foreign.records import diagnose_record, open_record
from diagan.record import LdrRecord

N, T = 40, 5
PLAIN = Score(clip="floor")


@pytest.fixture(scope="module")
def logits():
    rng = np.random.default_rng(0)
    return (rng.normal(size=N) + 0.3 * rng.normal(size=(T, N))).astype(np.float32)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for i in range(N):
        place = folder / ("cats" if i < 30 else "dogs")
        place.mkdir(exist_ok=True)
        photo(i).save(place / f"{i:03d}.png")
    return folder


def written(kind, logits, folder):
    """The same record in each of the formats."""
    steps = np.arange(1, T + 1) * 100
    if kind == "folder":
        record = LdrRecord(folder / "record", N, mode="eval", loss="hinge", is_ldr=False)
        for step, values in zip(steps, logits):
            record.add(int(step), values)
        return folder / "record"
    path = folder / f"record.{kind.split('-')[0]}"
    if kind == "npy-samples":
        np.save(path, logits.T)
    elif kind == "npy":
        np.save(path, logits.astype(np.float64))
    elif kind == "npz":
        groups = np.where(np.arange(N) < 35, "many", "few")
        np.savez_compressed(path, logits=logits, steps=steps, groups=groups)
    else:
        index, step = np.tile(np.arange(N), T), np.repeat(steps, N)
        order = np.random.default_rng(1).permutation(N * T)  # any order will do
        columns = {"index": index, "step": step, "logit": logits.ravel().astype(np.float64)}
        pq.write_table(pa.table({k: v[order] for k, v in columns.items()}), path, row_group_size=33)
    return path


@pytest.mark.parametrize("kind", ["folder", "npy", "npy-samples", "npz", "parquet"])
def test_every_format_gives_the_same_diagnosis(kind, logits, tmp_path, monkeypatch):
    monkeypatch.setattr("diagan.foreign.records.BLOCK", 7)  # several blocks
    path = written(kind, logits, tmp_path)
    found = diagnose_record(path, out=tmp_path / "out", score=PLAIN)
    expected = diagnose(logits, PLAIN)
    np.testing.assert_allclose(found.score, expected.score, rtol=1e-5)
    table = pq.read_table(tmp_path / "out" / "samples.parquet")
    assert table.num_rows == N
    kept = LdrRecord(tmp_path / "out" / "record", N)
    np.testing.assert_allclose(np.stack(list(kept)), logits, rtol=1e-6)
    assert kept.steps == (list(range(1, T + 1)) if "npy" in kind else [100, 200, 300, 400, 500])
    about = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    assert about["mode"] == "record" and about["is_ldr"] is (kind != "folder")


def test_groups_that_come_with_a_record(logits, tmp_path):
    found = diagnose_record(written("npz", logits, tmp_path), out=tmp_path / "out")
    assert {g.name: g.n for g in found.groups} == {"few": 5, "many": 35} and found.rare == "few"


def test_the_last_records_only(logits, tmp_path):
    path = written("npz", logits, tmp_path)
    found = diagnose_record(path, out=tmp_path / "out", score=PLAIN, window=2)
    np.testing.assert_allclose(found.ldrm, logits[-2:].mean(axis=0), rtol=1e-5)
    assert json.loads((tmp_path / "out" / "diagnosis.json").read_text())["first_step"] == 400


def test_one_record_is_taken_for_what_it_is(logits, tmp_path):
    np.save(tmp_path / "one.npy", logits[:1])
    found = diagnose_record(tmp_path / "one.npy", out=tmp_path / "out", score=PLAIN)
    np.testing.assert_allclose(found.score, logits[0])
    assert found.n_records == 1 and any("one record" in w for w in found.warnings)


def test_with_data_there_are_pictures_groups_and_a_report(logits, photos, tmp_path, capsys):
    path = written("npy", logits, tmp_path)
    out = tmp_path / "out"
    cli.main(["diagnose", "record", str(path), "--data", str(photos), "--out", str(out)])
    assert "diagnosed 40 samples from 5 records" in capsys.readouterr().out
    table = pq.read_table(out / "samples.parquet")
    assert table["file"][39].as_py() == "dogs/039.png" and table["group"][39].as_py() == "dogs"
    assert "flag" in table.column_names
    with np.load(out / "thumbnails.npz") as stored:
        assert stored["images"].shape == (N, 32, 32, 3)
    assert (out / "report.html").stat().st_size > 10_000


def test_the_same_command_again_replaces_its_own_folder_and_no_other(logits, tmp_path):
    path, out = written("npy", logits, tmp_path), tmp_path / "out"
    diagnose_record(path, out=out)
    (out / "left.txt").write_text("from before")
    diagnose_record(path, out=out)
    assert not (out / "left.txt").exists()
    with pytest.raises(UserError, match="something else"):
        diagnose_record(path, out=tmp_path)
    (out / "config.json").write_text("{}")  # a run
    with pytest.raises(UserError, match="something else"):
        diagnose_record(path, out=out)


# --- what is wrong is said, and nothing is left behind -------------------------------------------


def bad(kind, logits, folder):
    """A file, and what is said of it."""
    rows = {"index": [0, 1, 0], "step": [1, 1, 2], "logit": [0.5, 0.2, 0.1]}
    hole = logits.copy()
    hole[2, 7] = np.nan
    square = folder / "square.npy"
    np.save(square, logits[:, :T])
    made = {
        "nothing": ("missing.npy", None, "does not exist"),
        "no record": ("a.txt", lambda f: f.write_text("1"), "is no record"),
        "pickled": ("p.npy", lambda f: np.save(f, np.array([{}]), allow_pickle=True), "pickled"),
        "torn": ("t.npy", lambda f: f.write_bytes(b"\x93NUMPY"), "cannot be read"),
        "no zip": ("z.npz", lambda f: f.write_bytes(b"PK"), "cannot be read"),
        "three axes": ("x.npy", lambda f: np.save(f, logits[None]), r"\[1, 5, 40\]"),
        "square": ("square.npy", lambda f: None, "as long as wide"),
        "NaN": ("n.npy", lambda f: np.save(f, hole), "step 3 .sample 7 is the first"),
        "no logits": ("l.npz", lambda f: np.savez(f, a=logits), "no array `logits`"),
        "steps": ("s.npz", lambda f: np.savez(f, logits=logits, steps=[3, 2, 1, 0, 5]), "rise"),
        "groups": ("g.npz", lambda f: np.savez(f, logits=logits, groups=["a"]), "one a sample"),
        "columns": ("c.parquet", lambda f: pq.write_table(pa.table({"index": [0]}), f), "logit"),
        "gap": ("h.parquet", lambda f: pq.write_table(pa.table(rows), f), "of 1 samples at step 2"),
        "below": ("b.parquet", lambda f: pq.write_table(pa.table({**rows, "index": [0, -1, 1]}), f),
                  "negative"),
        "words": ("w.parquet", lambda f: pq.write_table(pa.table({**rows, "step": list("abc")}), f),
                  "whole numbers"),
    }  # fmt: skip
    name, write, said = made[kind]
    if write:
        write(folder / name)
    return folder / name, said


@pytest.mark.parametrize("kind", [
    "nothing", "no record", "pickled", "torn", "no zip", "three axes", "square", "NaN", "no logits",
    "steps", "groups", "columns", "gap", "below", "words",
])  # fmt: skip
def test_a_bad_record_is_refused_in_a_sentence(kind, logits, tmp_path):
    path, said = bad(kind, logits, tmp_path)
    with pytest.raises(UserError, match=said):
        diagnose_record(path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*"))


def test_data_of_another_number_are_refused(logits, photos, tmp_path):
    np.save(tmp_path / "r.npy", logits[:, :-1])
    with pytest.raises(UserError, match=r"39 samples, but .* holds 40 readable"):
        diagnose_record(tmp_path / "r.npy", out=tmp_path / "out", data=str(photos))


def test_data_tell_the_axes_apart(logits, tmp_path):
    np.save(tmp_path / "r.npy", logits.T)
    assert open_record(tmp_path / "r.npy", n=N).n == N
    assert open_record(tmp_path / "r.npy", n=T).n == T
    assert open_record(tmp_path / "r.npy", "records").n == T
