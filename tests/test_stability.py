"""`diagnose run A B C`: how alike several runs rank the same samples."""

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from diagan import cli
from diagan.metrics.ranks import correlation, ranks
from diagan.rundir import RunDir, read_json, write_json
from diagan.stability import compare_runs, stability

GROUPS = np.repeat(["a", "b"], [900, 100])


def test_the_same_order_is_stable_whatever_its_scale():
    score = np.random.default_rng(0).normal(size=1000)
    found = stability({"one": score, "other": np.exp(score)}, GROUPS)
    assert found.spearman == pytest.approx(1) and found.overlap == 1


def test_random_orders_overlap_as_chance_has_it():
    rng = np.random.default_rng(0)
    found = stability({str(i): rng.normal(size=1000) for i in range(6)}, GROUPS)
    assert len(found.pairs) == 15
    assert abs(found.spearman) < 0.05 and found.overlap == pytest.approx(0.05, abs=0.03)
    assert found.chance == 0.05


def test_a_group_that_all_put_on_top():
    rng = np.random.default_rng(0)
    scores = {str(i): rng.normal(size=1000) + 5 * (GROUPS == "b") for i in range(2)}
    found = stability(scores, GROUPS)
    assert all(rank > 0.94 for rank in found.groups["b"].values())
    assert all(rank < 0.46 for rank in found.groups["a"].values())


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30))
def test_spearman_is_that_of_scipy_with_ties(pairs):
    a, b = np.array(pairs).T
    if np.ptp(a) and np.ptp(b):
        assert correlation(ranks(a), ranks(b)) == pytest.approx(spearmanr(a, b).statistic)


# --- run folders ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(finished_run, tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    for name in ("one", "two"):
        shutil.copytree(finished_run, root / name)
    table = pq.read_table(root / "two" / "samples.parquet")
    ldrm = table["ldrm"].to_numpy()[::-1].copy()
    at = table.column_names.index("ldrm")
    pq.write_table(table.set_column(at, "ldrm", [ldrm]), root / "two" / "samples.parquet")
    return root


def test_several_runs_from_the_command_line(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli.main(["diagnose", "run", str(runs / "one"), str(runs / "two"), "--out", "both"])
    told = capsys.readouterr().out
    assert "one, two" in told and "by chance" in told and "mean rank" in told
    about = read_json(tmp_path / "both" / "stability.json")
    assert about["spearman"] == pytest.approx(1)  # of the scores, which are the same here
    one, two, both = (pq.read_table(folder / "samples.parquet")["ldrm"].to_numpy()
                      for folder in (runs / "one", runs / "two", tmp_path / "both"))  # fmt: skip
    np.testing.assert_allclose(both, (one + two) / 2)
    assert read_json(RunDir(tmp_path / "both").diagnosis)["mode"] == "runs"
    assert (tmp_path / "both" / "report.html").exists()


def test_runs_that_cannot_be_compared(runs, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(runs / "one", other)
    about = read_json(other / "provenance.json")
    about["data"]["fingerprint"] = "another"
    write_json(other / "provenance.json", about)
    for paths, said in (
        ([runs / "one", other], "different data"),
        ([runs / "one", runs / "one"], "given twice"),
        ([runs / "one", tmp_path], "no samples.parquet"),
    ):
        with pytest.raises(SystemExit):
            cli.main(["diagnose", "run", *map(str, paths), "--out", str(tmp_path / "no")])
        assert said in capsys.readouterr().err
        assert not (tmp_path / "no").exists()


def test_one_run_takes_no_out(runs, capsys):
    with pytest.raises(SystemExit):
        cli.main(["diagnose", "run", str(runs / "one"), "--out", "x"])
    assert "--out goes with several runs" in capsys.readouterr().err


def test_from_python(runs, tmp_path):
    found, averaged = compare_runs([str(runs / "one"), str(runs / "two")], out=tmp_path / "x")
    assert found.overlap == 1 and len(averaged.score) == 48
