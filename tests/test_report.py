"""The page from run folders that are written here as docs/formats.md says."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from diagan.config import DCGAN, MLP, Config, DemoDigits, Gaussians25, Record, to_json
from diagan.errors import UserError
from diagan.report import numbers, write_report
from diagan.report.contents import Contents
from diagan.report.sections import MAX_MAP_POINTS, N_MAP_HIGHEST, choose_points
from diagan.rundir import RunDir, append_line, write_json

RECORDS = [100, 200, 300]
NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>')


class Page(HTMLParser):
    """The attributes and visible text of a page, as a browser parses it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.rows: list[list[str]] = []
        self.ids: set[str] = set()
        self.words: list[str] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        self.ids.add(attributes.get("id", ""))
        self._inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data):
        if "script" in self._inside or "style" in self._inside:
            return
        self.words.append(data)
        if "td" in self._inside or "th" in self._inside:
            self.rows[-1][-1] += data.replace("\xa0", " ")

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def row(self, first: str, length: int = 0) -> list[str]:
        """The cells of the row that begins so, of the table with so many columns."""
        return next(r for r in self.rows if r and r[0] == first and len(r) >= length)


def read(path: Path) -> Page:
    return Page((path / "report.html").read_text(encoding="utf-8"))


def write_samples(run: RunDir, names, score_of, *, ldrv_missing=()) -> None:
    """A table of samples whose LDRM is their score less 0.5 and whose LDRV is 0.25 (k = 1)."""
    n = len(names)
    score = np.asarray(score_of, dtype=float)
    ldrv = [None if i in ldrv_missing else 0.25 for i in range(n)]
    columns = {
        "index": np.arange(n),
        "group": list(names),
        "file": [f"{name}/{i}.png" for i, name in enumerate(names)],
        "ldrm": score - 0.5,
        "ldrv": pa.array(ldrv, pa.float64()),
        "score": score,
        "weight": np.full(n, 1 / n),
    }
    run.path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), run.samples)


def write_record(run: RunDir, n: int, steps=RECORDS, is_ldr: bool = True) -> None:
    run.record.mkdir(parents=True)
    about = {"format": 1, "n": n, "mode": "eval", "is_ldr": is_ldr}
    write_json(run.record / "meta.json", about)
    for step in steps:
        np.save(run.record / f"{step:06d}.npy", np.linspace(0, 1, n, dtype=np.float32) + step)


def write_log(run: RunDir, stages) -> None:
    for stage, steps in stages.items():
        for step in steps:
            line = {"stage": stage, "step": step, "images": step * 64, "loss_D": 1.3, "loss_G": 0.8}
            line |= {"d_real": 0.6, "d_fake": 0.4, "lr": 1e-4, "time": 1_790_000_000.0 + step}
            line |= {"loss_critic": 1.2} if stage == "weighted" else {}
            append_line(run.log, line)


def share_line(group, arm, value, low, high, drs=False, n_fake=2_000):
    return {
        "metric": "group_share", "value": value, "arm": arm, "drs": drs, "n_fake": n_fake,
        "seed": 0, "checkpoint": f"{arm}-400", "group": group, "low": low, "high": high,
        "probe": "3nn_pixels", "probe_accuracy": 0.9984, "probe_balanced_accuracy": 0.981,
    }  # fmt: skip


def group_row(name, n, share, score, weight_share):
    return {"name": name, "n": n, "share": share, "ldrm": score - 0.5, "ldrv": 0.25,
            "score": score, "weight_share": weight_share}  # fmt: skip


def diagnosis(n, groups, rare, auc, **others):
    return {
        "format": 1, "n": n, "n_records": 3, "first_step": 100, "last_step": 300, "mode": "eval",
        "is_ldr": True, "k": 1.0, "k_is_auto": False, "centre": "none", "floor": 0.01,
        "ratio": 50.0, "clip": "cap", "exponent": 1.0, "groups": groups, "rare": rare, "auc": auc,
        "warnings": [], **others,
    }  # fmt: skip


def image_run(path: Path, names=("red", "green"), n: int = 200, n_rare: int = 6) -> RunDir:
    """Two groups; the last n_rare samples are of the rare one and score highest."""
    run = RunDir(path)
    rng = np.random.default_rng(0)
    config = Config(DemoDigits(n=n), DCGAN(), steps=400, record=Record(every=100), seed=7)
    write_json(run.config, to_json(config))
    write_json(
        run.provenance,
        {
            "command": f"diagan run --data.kind {names[1]}",
            "versions": {"diagan": "0.1.0", "torch": "2.13"},
            "fingerprint": "0123456789abcdef",
            "estimates": {"seconds": 180},
            "notes": [f"2 unreadable, skipped: {names[0]}.png"],
        },
    )
    group = [names[0]] * (n - n_rare) + [names[1]] * n_rare
    score = np.r_[np.linspace(1, 2, n - n_rare), np.linspace(4, 5, n_rare)]
    write_samples(run, group, score)
    groups = [
        group_row(names[0], n - n_rare, 1 - n_rare / n, 1.5, 0.9),
        group_row(names[1], n_rare, n_rare / n, 4.5, 0.1),
    ]
    auc = {"ldrm": 0.9, "ldrv": 0.5, "score": 0.974}
    warning = "The weights are nearly uniform: 1.0% of the draws move."
    write_json(run.diagnosis, diagnosis(n, groups, names[1], auc, warnings=[warning]))
    write_record(run, n)
    write_log(run, {"phase1": range(50, 301, 50), "plain": [350, 400], "weighted": [350, 400]})
    for step in (350, 400):
        append_line(run.log, {"stage": "weighted", "step": step, "warning": "D has won: stop."})
    for name, data, plain, dia, rejected in (
        (names[1], 0.029, (0.004, 0.0017, 0.0078), (0.041, 0.033, 0.051), (0.028, 0.021, 0.036)),
        (names[0], 0.971, (0.996, 0.9922, 0.998), (0.959, 0.949, 0.967), (0.972, 0.964, 0.979)),
    ):
        append_line(run.metrics, share_line(name, "data", data, data - 0.01, data + 0.01))
        append_line(run.metrics, share_line(name, "plain", 0.5, 0.4, 0.6))  # measured again below
        append_line(run.metrics, share_line(name, "plain", *plain))
        append_line(run.metrics, share_line(name, "weighted", *dia))
        append_line(run.metrics, share_line(name, "weighted", *rejected, drs=True))
    rate = {"metric": "acceptance_rate", "value": 0.213, "arm": "weighted", "drs": True,
            "n_fake": 2_000, "seed": 0, "checkpoint": "weighted-400"}  # fmt: skip
    append_line(run.metrics, rate)
    index = np.r_[np.arange(n - 60, n), np.arange(60)]
    images = rng.integers(0, 255, (len(index), 16, 16, 3), dtype=np.uint8)
    np.savez(run.thumbnails, index=index, images=images)
    run.generated.mkdir()
    for arm in ("plain", "weighted", "weighted_drs", "phase1"):
        pixels = rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(run.generated / f"{arm}.png")
    return run


def point_run(path: Path) -> RunDir:
    """Two-dimensional data with 25 groups, none of them rare."""
    run = RunDir(path)
    config = Config(Gaussians25(n=250), MLP(), steps=400, record=Record(every=100))
    write_json(run.config, to_json(config))
    names = [f"mode {i % 25}" for i in range(250)]
    write_samples(run, names, np.linspace(0, 3, 250), ldrv_missing=(0, 1))
    groups = [group_row(f"mode {i}", 10, 0.04, 1.5, 0.04) for i in range(25)]
    write_json(run.diagnosis, diagnosis(250, groups, None, None))
    write_record(run, 250)
    run.generated.mkdir()
    points = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    np.save(run.generated / "plain.npy", points)
    np.save(run.generated / "weighted.npy", points + 1)
    return run


def phase1_run(path: Path) -> RunDir:
    """A run that was stopped after one record: no groups, no diagnosis, no metrics."""
    run = RunDir(path)
    config = Config(DemoDigits(n=50), DCGAN(), steps=400, phase1_share=1.0)
    write_json(run.config, to_json(config))
    write_record(run, 50, steps=[100])
    write_log(run, {"phase1": [50, 100]})
    run.generated.mkdir()
    Image.new("L", (32, 32)).save(run.generated / "phase1.png")
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDir:
    """An image run with its report, which tests only read."""
    run = image_run(tmp_path_factory.mktemp("report") / "my run")
    assert write_report(run.path) == run.report
    return run


def test_an_image_run_shows_every_section_in_order(run: RunDir) -> None:
    html = run.report.read_text(encoding="utf-8")
    page = Page(html)
    ids = re.findall(r'<section id="([\w-]+)"', html)
    expected = "summary images ldr-map groups measurements curves making"
    assert ids == expected.split()
    assert "my run" in page.text
    assert "demo_digits · 200 training samples" in page.text
    assert "September 2026" in page.text
    assert "The rare group is green: 3.0 % of the data." in page.text
    assert "AUC 0.97 (1 = always ranked above, 0.5 = chance)" in page.text
    assert "Dia-GAN makes the rare group more often than the plain GAN does." in page.text
    assert "The weights are nearly uniform: 1.0% of the draws move." in page.text
    assert "Dia-GAN, step 350: D has won: stop. (told again until step 400)" in page.text
    assert "2 unreadable, skipped: red.png" in page.text
    assert "right for 99.8 % of real samples (98.1 % when every group counts the same)" in page.text
    assert "All 200 samples are shown." in page.text
    assert "diagan run --data.kind green" in page.text
    assert "not a log-density ratio" not in page.text


def test_the_last_measured_shares_are_shown_as_fine_as_their_intervals(run: RunDir) -> None:
    page = read(run.path)
    assert page.row("training data")[1] == "3.0 %"
    assert page.row("plain GAN")[1:3] == ["0.4 % (0.2 to 0.8)", "2,000"]
    assert page.row("Dia-GAN")[1] == "4.1 % (3.3 to 5.1)"
    assert page.row("Dia-GAN with rejection")[1] == "2.8 % (2.1 to 3.6)"


def test_report_json_has_the_numbers_of_the_table(run: RunDir) -> None:
    page = read(run.path)
    stored = json.loads((run.path / "report.json").read_text())
    head = next(row for row in page.rows if row[0] == "group")
    assert len(stored["groups"]["groups"]) == 2
    for group in stored["groups"]["groups"]:
        cells = dict(zip(head, page.row(group["name"], length=len(head))))
        assert int(cells["n"]) == group["n"]
        for column, key in (("share of data", "share"), ("share of weight", "weight_share")):
            assert float(cells[column].rstrip(" %")) == pytest.approx(100 * group[key], abs=0.05)
        for column, key in (("mean LDRM", "ldrm"), ("mean LDRV", "ldrv"), ("mean score", "score")):
            assert float(cells[column]) == pytest.approx(group[key], rel=0.005)
        assert list(group["generated"]) == head[7:]
        for arm, line in group["generated"].items():
            shown = [float(x) for x in re.findall(r"[\d.]+", cells[arm])]
            exact = [100 * line[key] for key in ("value", "low", "high")]
            assert shown == pytest.approx(exact, abs=0.5)
    assert stored["summary"]["auc"]["score"] == 0.974
    assert stored["summary"]["shares"]["plain GAN"]["value"] == 0.004
    assert stored["measurements"][0]["value"] == 0.213


def test_thumbnails_are_the_highest_and_lowest_scored_and_have_words(run: RunDir) -> None:
    images = [attributes for tag, attributes in read(run.path).tags if tag == "img"]
    assert len(images) == 48 + 48 + 4
    assert all(image["alt"] for image in images)
    assert images[0]["title"] == "index 199 · green · score 5.00 · green/199.png"
    assert images[48]["title"] == "index 0 · red · score 1.00 · red/0.png"
    labels = [image["alt"].split(": ")[1] for image in images[96:]]
    assert labels == ["Plain GAN", "Dia-GAN", "Dia-GAN with rejection", "GAN after phase 1"]


@pytest.mark.parametrize("make", [image_run, point_run, phase1_run])
def test_the_page_asks_the_network_for_nothing(tmp_path: Path, make) -> None:
    run = make(tmp_path / "run")
    write_report(run.path)
    page = read(run.path)
    sources = [
        value
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action", "data")
    ]
    assert all(source.startswith("data:image/") for source in sources)
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "object", "base")]
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy


def test_words_from_data_are_only_words(tmp_path: Path) -> None:
    run = image_run(tmp_path / NASTY[1].replace("/", ""), names=NASTY)
    write_report(run.path)
    html = run.report.read_text(encoding="utf-8")
    page = Page(html)
    for name in NASTY:
        assert name in page.text
        assert name not in html
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert len(scripts) == 1
    assert scripts[0]["nonce"]
    assert not [a for _, a in page.tags if any(name.startswith("on") for name in a)]
    # Bokeh's part: neither markup in tooltips nor TeX, for which it would fetch a library
    assert r"\\u2039script\\u203aalert(1)" in html
    assert "onerror=alert(2)>" not in html


def test_points_are_drawn_instead_of_images(tmp_path: Path) -> None:
    run = point_run(tmp_path / "run")
    write_report(run.path)
    page = read(run.path)
    assert "images" not in page.ids
    assert {"points", "ldr-map", "groups", "curves"} <= page.ids
    assert "Plain GAN (300 points)" in page.text
    assert "No rare group is known" in page.text
    assert "All 248 samples that have both numbers are shown. 2 lack one" in page.text
    stored = json.loads((run.path / "report.json").read_text())
    assert stored["ldr_map"] == {"n_points": 248, "n_shown": 248, "k": 1.0, "n_missing": 2}


def test_a_run_without_a_diagnosis_leaves_its_sections_out(tmp_path: Path) -> None:
    run = phase1_run(tmp_path / "run")
    write_report(run.path)
    page = read(run.path)
    assert {"summary", "images", "curves", "making"} <= page.ids
    assert not {"points", "ldr-map", "groups", "measurements"} & page.ids
    assert "This run has no diagnosis yet" in page.text
    assert "The log ends at step 100 of 400." in page.text


def test_a_run_with_nothing_but_a_config_has_a_page_without_figures(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_json(run.config, to_json(Config(DemoDigits(), DCGAN())))
    write_report(run.path)
    assert re.findall(r'<section id="([\w-]+)"', run.report.read_text()) == ["summary", "making"]
    assert "<script" not in run.report.read_text()


def test_a_raw_output_that_is_no_density_ratio_is_said(tmp_path: Path) -> None:
    run = image_run(tmp_path / "run")
    stored = json.loads(run.diagnosis.read_text())
    write_json(run.diagnosis, stored | {"is_ldr": False})
    write_report(run.path)
    assert "is not a log-density ratio" in read(run.path).text


def test_shares_that_overlap_are_not_called_a_difference(tmp_path: Path) -> None:
    run = image_run(tmp_path / "run")
    append_line(run.metrics, share_line("green", "weighted", 0.006, 0.003, 0.01))
    write_report(run.path)
    assert "do not differ by more than chance" in read(run.path).text


def test_of_many_points_the_highest_scored_are_always_shown() -> None:
    rows = np.random.default_rng(1).permutation(50_000)
    shown = choose_points(rows)
    assert len(set(shown.tolist())) == MAX_MAP_POINTS
    assert set(rows[:N_MAP_HIGHEST].tolist()) <= set(shown.tolist())
    assert np.array_equal(shown, choose_points(rows))
    assert np.array_equal(choose_points(rows[:30]), rows[:30])


def test_a_large_run_stays_small_enough_to_mail(tmp_path: Path) -> None:
    run = image_run(tmp_path / "run", n=30_000, n_rare=300)
    images = np.random.default_rng(0).integers(0, 255, (1_000, 128, 128, 3), dtype=np.uint8)
    np.savez(run.thumbnails, index=np.r_[np.arange(500), np.arange(29_500, 30_000)], images=images)
    for arm in ("plain", "weighted", "weighted_drs", "phase1"):
        pixels = np.random.default_rng(0).integers(0, 255, (1024, 1024, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(run.generated / f"{arm}.png")
    write_report(run.path)
    assert run.report.stat().st_size < 5_000_000
    assert "Shown are 20,000 of 30,000 samples: the 500 highest scored" in read(run.path).text


def test_a_folder_that_is_no_run_and_files_that_are_broken_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run folder"):
        write_report(tmp_path)
    run = image_run(tmp_path / "run")
    run.samples.write_bytes(b"not parquet")
    with pytest.raises(UserError, match=r"samples\.parquet cannot be read"):
        write_report(run.path)
    assert not run.report.exists()
    write_json(run.diagnosis, {"format": 2})
    with pytest.raises(UserError, match="has format 2; this diagan reads format 1"):
        write_report(run.path)


def test_importing_the_report_does_not_import_bokeh() -> None:
    code = "import sys, diagan.report; sys.exit('bokeh' in sys.modules or 'torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_colours_single_out_the_rare_group(run: RunDir, tmp_path: Path) -> None:
    assert list(Contents(run).colours) == ["green", "red"]
    many = Contents(point_run(tmp_path / "points")).colours
    assert len(many) == 25
    assert len(set(many.values())) == 6  # five of their own, and one for the others


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (1234.5, "1,234"), (1.0, "1.00"), (0.04321, "0.0432"), (-2.718, "-2.72"),
     (float("nan"), "–"), (None, "–")],
)  # fmt: skip
def test_numbers_have_three_digits(value, shown) -> None:
    assert numbers.significant(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.03, "3.0 %"), (0.0042, "0.42 %"), (0.9984, "99.8 %"),
     (0.00002, "0.0020 %"), (0.99998, "99.9980 %")],
)  # fmt: skip
def test_only_nothing_reads_zero_and_only_all_reads_hundred(value, shown) -> None:
    assert numbers.percent(value) == shown


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [(0.0, 0.0, 0.0004, "0.00 % (0.00 to 0.04)"), (0.25, 0.1, 0.5, "25 % (10 to 50)"),
     (0.0412, 0.0373, 0.0455, "4.1 % (3.7 to 4.5)"), (0.5, None, None, "50.0 %")],
)  # fmt: skip
def test_shares_are_as_fine_as_their_interval(value, low, high, shown) -> None:
    text = numbers.share({"value": value, "low": low, "high": high})
    assert text.replace("\xa0", " ") == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.974, "0.97"), (0.9961, "0.996"), (0.9997, "over 0.999"), (1.0, "1.00"), (0.0, "0.00")],
)
def test_only_a_perfect_ranking_reads_one(value, shown) -> None:
    assert numbers.auc(value) == shown
