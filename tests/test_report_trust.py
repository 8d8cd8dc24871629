"""The sections junk, calibration, rejection and clusters of the page."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from report_runs import NASTY, image_run, read

from diagan.errors import UserError
from diagan.findings import calibration
from diagan.report import write_report
from diagan.rundir import RunDir, append_line, read_json, write_json

FLAGS = ["rare"] * 14 + ["outlier"] * 3 + ["duplicate"] * 2 + ["corrupt"]


def mark(run: RunDir, flags=FLAGS, n_clusters: int = 2) -> None:
    """Flag the highest scored, highest first, and cluster the rare of them in turn."""
    table = pq.read_table(run.samples)
    order = np.argsort(-table["score"].to_numpy(), kind="stable")
    flag = np.full(len(order), "", dtype="<U9")
    flag[order[: len(flags)]] = flags
    cluster = np.full(len(order), -1)
    rare = order[: len(flags)][np.array(flags) == "rare"]
    cluster[rare] = np.arange(len(rare)) % n_clusters
    pq.write_table(
        table.append_column("flag", pa.array(flag)).append_column("cluster", pa.array(cluster)),
        run.samples,
    )


def without_groups(run: RunDir) -> None:
    found = read_json(run.diagnosis) | {"groups": [], "rare": None, "auc": None}
    write_json(run.diagnosis, found | {"high_scored": {"contrast": 0.4}})


def page_of(run: RunDir):
    write_report(run.path)
    return read(run.path), json.loads((run.path / "report.json").read_text())


def logits(n: int = 400, shift: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"heldout": rng.normal(0.5, 1, n), "train": rng.normal(0.5 + shift, 1, n),
            "fake": rng.normal(-0.5, 1, n)}  # fmt: skip


def test_what_was_not_measured_has_no_section(tmp_path):
    page, numbers = page_of(image_run(tmp_path / "run"))
    for name in ("junk", "calibration", "clusters"):
        assert name not in page.ids and name not in numbers


def test_junk_is_counted_and_shown(tmp_path):
    run = image_run(tmp_path / "run")
    mark(run)
    page, numbers = page_of(run)
    assert numbers["junk"] == {
        "n_high": 20, "n_junk": 6, "share": 0.03, "weight": pytest.approx(0.03), "rare": 14,
        "outlier": 3, "duplicate": 2, "corrupt": 1,
    }  # fmt: skip
    assert "Of the 20 highest scored samples 6 look like junk (30.0 %)" in page.text
    assert "3.0 % of the draws" in page.text
    for title in ("Rare but clean", "Outliers", "Duplicates", "Corrupt"):
        assert title in page.text


def test_no_junk_is_said_too(tmp_path):
    run = image_run(tmp_path / "run")
    mark(run, ["rare"] * 20)
    page, numbers = page_of(run)
    assert "none looks like junk" in page.text
    assert numbers["junk"]["n_junk"] == 0 and "Outliers" not in page.text


def test_nobody_high_no_section(tmp_path):
    run = image_run(tmp_path / "run")
    mark(run, [])
    assert "junk" not in page_of(run)[0].ids


def test_names_of_files_are_text(tmp_path):
    run = image_run(tmp_path / "run", names=NASTY)
    mark(run, ["corrupt"] * 20)
    without_groups(run)
    page, _ = page_of(run)
    assert not [attributes for _, attributes in page.tags if "onerror" in attributes]
    assert f"{NASTY[1]}/199.png" in page.text


def test_clusters_only_where_no_labels_name_the_groups(tmp_path):
    run = image_run(tmp_path / "run")
    mark(run)
    page, numbers = page_of(run)
    assert "clusters" not in page.ids and "clusters" not in numbers
    without_groups(run)
    page, numbers = page_of(run)
    assert "clusters" in page.ids
    assert [card["n"] for card in numbers["clusters"]["clusters"]] == [7, 7]
    assert "in 2 groups of like ones" in page.text and "with some in between" in page.text
    mark_of_row = pq.read_table(run.samples)["cluster"].to_numpy()
    for card in numbers["clusters"]["clusters"]:
        assert {mark_of_row[i] for i in card["index"]} == {card["cluster"]}


def test_calibration_shows_what_the_file_says(tmp_path):
    run = image_run(tmp_path / "run")
    found = calibration.write(run.calibration, about={"judge": "the one"}, **logits(shift=2.0))
    page, numbers = page_of(run)
    assert "The one" in page.text and "by heart" in page.text
    row = next(row for row in page.rows if row[0].startswith("temperature"))
    assert row[1].startswith(f"{found.line.temperature:.2f}")
    assert numbers["calibration"][0]["gap"] == pytest.approx(found.gap)
    assert numbers["sources"]["calibration"] == ["calibration.npz", "calibration.json"]
    images = [a["aria-label"] for tag, a in page.tags if a.get("role") == "img"]
    assert any("Reliability" in words for words in images)


def test_calibration_without_training_reals_and_with_an_infinite_temperature(tmp_path):
    run = image_run(tmp_path / "run")
    backward = {"heldout": logits()["fake"], "fake": logits()["heldout"]}
    calibration.write(run.calibration, about={}, **backward)
    file = run.calibration.with_name(calibration.REJECTION)
    calibration.write(file, about={"is_ldr": False}, **logits())
    page, numbers = page_of(run)
    assert [row[1] for row in page.rows if "temperature" in row[0]][:1] == ["infinite"]
    assert "does not make its output a log-density ratio" in page.text
    assert [panel["gap"] is None for panel in numbers["calibration"]] == [True, False]


def test_a_torn_calibration_is_told_by_name(tmp_path):
    run = image_run(tmp_path / "run")
    calibration.write(run.calibration, about={}, **logits())
    run.calibration.write_bytes(b"PK")
    with pytest.raises(UserError, match=r"calibration\.npz cannot be read"):
        write_report(run.path)


def test_rejection_before_and_after(tmp_path):
    run = image_run(tmp_path / "run")
    run.metrics.write_text("")
    append_line(run.metrics, {"metric": "acceptance_rate", "value": 0.25, "arm": "weighted",
                              "drs": True, "n_fake": 2_000, "rejects_by": "critic"})  # fmt: skip
    append_line(run.metrics, {"metric": "mean_ratio", "value": 0.004, "arm": "weighted",
                              "drs": True, "n_fake": 2_000, "rejects_by": "critic"})  # fmt: skip
    page, numbers = page_of(run)
    assert page.row("kept of what was proposed")[1] == "25.0 %"
    (ratio,) = [row[1] for row in page.rows if row and row[0].startswith("mean density ratio")]
    assert ratio == "0.00400"
    assert page.row("proposals for 2,000 samples, about")[1] == "8,000"
    assert "effective" not in numbers["rejection"][0]
    run.generated.mkdir(exist_ok=True)
    np.save(run.generated / "weighted_ldr.npy", np.log(np.array([1, 3], dtype=np.float32)))
    np.save(run.generated / "weighted_drs_ldr.npy", np.array([1.0, 2.0], dtype=np.float32))
    page, numbers = page_of(run)
    assert numbers["rejection"][0]["effective"] == pytest.approx(0.8)
    assert page.row("effective sample size of 2 generated")[1] == "2 (80.0 %)"
    assert page.row("mean LDR of those kept")[1] == "1.50"
    assert "LDR before and after" in page.text


def test_a_run_without_rejection_has_no_such_section(tmp_path):
    run = image_run(tmp_path / "run")
    run.metrics.write_text("")
    assert "rejection" not in page_of(run)[0].ids
