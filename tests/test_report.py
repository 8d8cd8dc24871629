"""The page from run folders that are written here as docs/formats.md says."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from report_runs import (
    NASTY,
    Page,
    group_row,
    image_run,
    phase1_run,
    point_run,
    read,
    write_record,
    write_samples,
)
from report_runs import diagnosis as diagnosis_json

from diagan.cli import main
from diagan.config import DCGAN, Config, DemoDigits, to_json
from diagan.errors import UserError
from diagan.experiments import find
from diagan.report import figures, numbers, pictures, write_comparison, write_report
from diagan.report.contents import Contents
from diagan.report.sections.ldr_map import MAX_POINTS, N_HIGHEST, TIMES, choose_points, edge
from diagan.rundir import RunDir, append_line, write_json


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDir:
    """An image run with its report, which tests only read."""
    run = image_run(tmp_path_factory.mktemp("report") / "my run")
    assert write_report(run.path) == run.report
    return run


def page_data(run: RunDir) -> dict:
    """What the script of the page is given."""
    html = run.report.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(found[1])


def unpack(text: str, kind: str) -> np.ndarray:
    import base64

    return np.frombuffer(base64.b64decode(text), dtype=kind)


# --- what is on the page -------------------------------------------------------------------------


def test_an_image_run_shows_every_section_in_order(run: RunDir) -> None:
    html = run.report.read_text(encoding="utf-8")
    page = Page(html)
    ids = re.findall(r'<section id="([\w-]+)"', html)
    ours = ["glance", "ldr-map", "ranking", "groups", "changed", "missing", "metrics", "training",
            "making"]  # fmt: skip
    assert [name for name in ids if name in ours] == ours
    assert "my run" in page.text
    assert "demo_digits · 200 training samples" in page.text
    assert "September 2026" in page.text
    assert "The rare group is green: 3.0 % of the data." in page.text
    assert "AUC 0.97 (1 = always ranked above, 0.5 = chance)" in page.text
    assert "The weights are nearly uniform: 1.0% of the draws move." in page.text
    assert "Dia-GAN, step 350: D has won: stop. (told again until step 400)" in page.text
    assert "2 unreadable, skipped: red.png" in page.text
    assert "right for 99.8 % of real samples (98.1 % when every group counts the same)" in page.text
    assert "All 200 samples are shown; 120 of them can be looked at closely." in page.text
    assert "diagan run --data.kind green" in page.text
    assert "not a log-density ratio" not in page.text


def test_the_last_measured_shares_are_shown_as_fine_as_their_intervals(run: RunDir) -> None:
    page = read(run.path)
    assert page.row("training data")[1] == "3.0 %"
    assert page.row("plain GAN")[1:3] == ["0.4 % (0.2 to 0.8)", "2,000"]
    assert page.row("Dia-GAN")[1] == "4.1 % (3.3 to 5.1)"
    assert page.row("Dia-GAN with rejection")[1] == "2.8 % (2.1 to 3.6)"


def test_missing_modes_are_shown_by_arm_with_their_members(run: RunDir) -> None:
    page = read(run.path)
    assert "None was found in the images of Dia-GAN." in page.text
    assert "Plain GAN 3.1 % of the data, 0.20 % of its images" in page.text.replace("\xa0", " ")
    section = run.report.read_text(encoding="utf-8").partition('<section id="missing">')[2]
    assert "&lt;" not in section
    shown = re.findall(r'aria-label="index (\d+)', section.partition("</section>")[0])
    assert shown == ["199", "198"]
    stored = json.loads((run.path / "report.json").read_text())["missing"]
    assert [(arm["arm"], len(arm["modes"])) for arm in stored["arms"]] == [
        ("Dia-GAN", 0), ("plain GAN", 1)]  # fmt: skip


def test_report_json_has_the_numbers_of_the_table(run: RunDir) -> None:
    page = read(run.path)
    stored = json.loads((run.path / "report.json").read_text())
    head = next(row for row in page.rows if row and row[0] == "group")
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
    assert stored["glance"]["auc"]["score"] == 0.974
    assert stored["glance"]["shares"]["plain GAN"]["value"] == 0.004
    assert stored["metrics"]["measured"][0]["value"] == 0.213
    assert stored["ranking"]["highest"][:6] == [199, 198, 197, 196, 195, 194]
    assert stored["sources"]["groups"] == ["diagnosis.json", "metrics.jsonl"]


def test_every_section_names_files_that_are_there(run: RunDir) -> None:
    stored = json.loads((run.path / "report.json").read_text())
    for names in stored["sources"].values():
        assert all((run.path / name).exists() for name in names)
    assert "From diagnosis.json, metrics.jsonl" in read(run.path).text


def test_pictures_are_the_highest_and_lowest_scored_and_have_words(run: RunDir) -> None:
    tags = read(run.path).tags
    thumbs = [a for tag, a in tags if tag == "button" and "thumb" in a.get("class", "")]
    assert all(thumb["aria-label"] == thumb["title"] for thumb in thumbs)
    titles = [thumb["title"] for thumb in thumbs]
    assert titles[0] == "index 199 · green · score 5.00 · green/199.png"
    lowest = titles.index("index 0 · red · score 1.00 · red/0.png")
    assert titles[lowest + 1].startswith("index 1 ")
    images = [attributes for tag, attributes in tags if tag == "img"]
    assert all(image["alt"] for image in images)
    labels = [i["alt"].split(": ")[1] for i in images if i["alt"].startswith("Images generated")]
    assert labels == ["Plain GAN", "Dia-GAN", "Dia-GAN with rejection", "GAN after phase 1"]


def test_bars_stand_where_the_shares_are(run: RunDir, tmp_path: Path) -> None:
    """12 of 200 are green, and 0.004 of what the plain GAN makes: left of 1, and of Dia-GAN."""
    larger = image_run(tmp_path / "run", n_rare=12)
    write_report(larger.path)
    html = larger.report.read_text(encoding="utf-8")
    bars = re.findall(r'title="([^"]+): ([\d.]+) times[^>]*>.*?<i [^>]*left:([\d.]+)%', html)
    assert [bar[0] for bar in bars[:2]] == ["plain GAN", "Dia-GAN"]
    one = float(re.search(r'class="one" style="left:([\d.]+)%"', html)[1])
    assert float(bars[0][1]) == pytest.approx(0.004 / 0.06, abs=0.001)
    assert float(bars[0][2]) < float(bars[1][2]) < one
    assert "Groups of fewer than 10 samples" not in html
    few = run.report.read_text(encoding="utf-8")  # 6 green ones say too little
    assert "Groups of fewer than 10 samples" in few
    assert "0.133 times" not in few


def test_an_experiment_of_the_paper_has_the_papers_numbers(tmp_path: Path) -> None:
    run = image_run(tmp_path / "run")
    write_json(run.config, to_json(replace(find("colored_mnist_99"), seed=3)))
    for arm, drs in (("plain", False), ("weighted", True)):
        line = {"metric": "reconstruction_error", "value": 0.7, "group": "green", "arm": arm}
        append_line(run.metrics, line | {"drs": drs, "protocol": "re50k_epochs50"})
    write_report(run.path)
    page = read(run.path)
    cells = page.row("reconstruction error, green ↓")
    assert "0.700paper 0.838 ± 0.033" in cells  # Table 5, Vanilla
    assert "0.700paper 0.224 ± 0.02" in cells  # Dia-GAN
    assert "does not compare" not in page.text
    write_json(run.config, to_json(replace(find("colored_mnist_99"), steps=19_999)))  # another run
    write_report(run.path)
    assert "paper 0.838" not in read(run.path).text


# --- what the script is given --------------------------------------------------------------------


def test_points_and_curves_are_those_of_the_files(run: RunDir) -> None:
    data = page_data(run)
    x, y, group, index = (
        unpack(data["points"][key], kind)
        for key, kind in (("x", "<f4"), ("y", "<f4"), ("group", "<u2"), ("index", "<u4"))
    )
    assert sorted(index.tolist()) == list(range(200))
    score = x + data["k"] * y
    by_index = dict(zip(index.tolist(), score.tolist()))
    assert by_index[199] == pytest.approx(5.0)
    assert by_index[0] == pytest.approx(1.0)
    names = [data["groups"][g][0] for g in group]
    assert names[-6:] == ["green"] * 6  # the few are drawn last, on top
    place = unpack(data["chosen"]["point"], "<u4")
    close = index[place]
    assert len(close) == 120
    assert np.array_equal(unpack(data["chosen"]["rank"], "<u4")[close == 199], [1])
    values = unpack(data["curves"]["values"], "<u2").reshape(120, 3).astype(float) / 65535
    low, high = data["curves"]["low"], data["curves"]["high"]
    curve = low + values[np.flatnonzero(close == 199)[0]] * (high - low)
    assert curve == pytest.approx([101, 201, 301], abs=0.01)  # write_record: step + rank
    assert data["curves"]["steps"] == [100, 200, 300]
    assert data["curves"]["band"][0][1] == pytest.approx(100.5, abs=0.1)


def test_the_slider_goes_from_ldrm_alone_to_ldrv_alone(run: RunDir) -> None:
    data = page_data(run)
    stops = data["stops"]
    assert stops[0] == 0
    assert stops[-1] is None
    assert stops[data["own_stop"]] == pytest.approx(data["k"])
    assert all(a < b for a, b in pairwise(stops[:-1]))
    assert len(data["limits"]) == len(data["shades"]["values"]) == len(stops)
    # LDRV is the same for all: the limit at infinity is its root, at 0 the LDRM of the 5 %
    assert data["limits"][-1] == pytest.approx(0.5)
    assert data["limits"][0] == pytest.approx(data["limits"][data["own_stop"]] - 0.5)


def test_the_nearest_fakes_of_an_image_are_found(tmp_path: Path) -> None:
    run = image_run(tmp_path / "run")
    with np.load(run.thumbnails) as stored:
        images = stored["images"]
    fakes = np.random.default_rng(1).integers(0, 255, (50, 16, 16, 3), dtype=np.uint8)
    fakes[17] = images[3]
    np.savez(run.generated / "plain.npz", images=fakes)
    write_report(run.path)
    arm = page_data(run)["nearest"][0]
    assert arm["label"] == "plain GAN"
    at = unpack(arm["at"], "<u2").reshape(-1, arm["each"])
    assert at[3, 0] == 17
    assert unpack(arm["further"], "u1")[3] == 0  # nobody is nearer


def test_fakes_of_another_size_have_no_neighbours(tmp_path: Path) -> None:
    run = image_run(tmp_path / "run")
    np.savez(run.generated / "plain.npz", images=np.zeros((9, 32, 20, 1), np.uint8))
    write_report(run.path)
    assert "plain GAN" not in [arm["label"] for arm in page_data(run)["nearest"]]


# --- safe, small, complete -----------------------------------------------------------------------


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
    assert all(source.startswith(("data:image/", "#")) for source in sources)
    assert {source[1:] for source in sources if source[0] == "#"} <= page.ids
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "object", "base")]
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy
    assert "http:" not in run.report.read_text().replace("http://www.w3.org/2000/svg", "")


def test_words_from_data_are_only_words(tmp_path: Path) -> None:
    run = image_run(tmp_path / NASTY[1].replace("/", ""), names=NASTY)
    write_report(run.path)
    html = run.report.read_text(encoding="utf-8")
    page = Page(html)
    for name in NASTY:
        assert name in page.text
        assert name not in html
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert [script.get("type") for script in scripts] == ["application/json", None]
    assert scripts[1]["nonce"]
    assert not [a for _, a in page.tags if any(name.startswith("on") for name in a)]
    assert page_data(run)["groups"][0][0] in NASTY


def test_points_are_drawn_instead_of_images(tmp_path: Path) -> None:
    run = point_run(tmp_path / "run")
    write_report(run.path)
    page = read(run.path)
    assert "changed" not in page.ids
    assert {"points", "ldr-map", "ranking", "groups", "training"} <= page.ids
    assert "Plain GAN (300 points)" in page.text
    assert "Of the groups mode 0 scores highest: 1.50 on average" in page.text
    assert "All 248 samples that have both numbers are shown" in page.text
    assert "2 lack one and are left out" in page.text
    stored = json.loads((run.path / "report.json").read_text())
    counts = {key: stored["ldr_map"][key] for key in ("n_points", "n_shown", "n_missing")}
    assert counts == {"n_points": 248, "n_shown": 248, "n_missing": 2}
    assert "Mean LDR of each group" in page.text


def test_a_run_without_a_diagnosis_leaves_its_sections_out(tmp_path: Path) -> None:
    run = phase1_run(tmp_path / "run")
    write_report(run.path)
    page = read(run.path)
    assert {"glance", "changed", "training", "making"} <= page.ids
    assert not {"points", "ldr-map", "ranking", "groups", "metrics"} & page.ids
    assert "This run has no diagnosis yet" in page.text
    assert "The log ends at step 100 of 400." in page.text


def test_a_run_with_nothing_but_a_config_has_a_page_without_a_script(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_json(run.config, to_json(Config(DemoDigits(), DCGAN())))
    write_report(run.path)
    ids = re.findall(r'<section id="([\w-]+)"', run.report.read_text())
    assert {"glance", "making"} <= set(ids) <= {"glance", "making", "verdict"}
    assert "<script" not in run.report.read_text()


def test_a_diagnosis_without_a_run_has_a_page(tmp_path: Path) -> None:
    """As `diagnose record` leaves it: no config, no log, no pictures, no groups."""
    run = RunDir(tmp_path / "foreign")
    write_samples(run, ["all"] * 40, np.linspace(0, 1, 40))
    groups = [group_row("all", 40, 1.0, 0.5, 1.0)]
    write_json(run.diagnosis, diagnosis_json(40, groups, None, None, mode="record"))
    write_record(run, 40)
    write_report(run.path)
    page = read(run.path)
    assert "a record of another trainer · 40 training samples" in page.text
    assert {"ldr-map", "ranking", "training"} <= page.ids
    assert not {"groups", "metrics", "changed"} & page.ids
    assert page.row("39")[-1] == "1.00"  # the highest score, as a row where there is no picture


def test_one_record_only_has_no_curves(tmp_path: Path) -> None:
    run = image_run(tmp_path / "run")
    for step in (200, 300):
        (run.record / f"{step:06d}.npy").unlink()
    write_report(run.path)
    assert page_data(run)["curves"] is None


def test_a_raw_output_that_is_no_density_ratio_is_said(tmp_path: Path) -> None:
    run = image_run(tmp_path / "run")
    stored = json.loads(run.diagnosis.read_text())
    write_json(run.diagnosis, stored | {"is_ldr": False})
    write_report(run.path)
    assert "is not a log-density ratio" in read(run.path).text
    assert "LDRM: mean raw output of D" in page_data(run)["axes"][0]


def test_of_many_points_the_highest_and_the_close_ones_are_always_shown() -> None:
    rows = np.random.default_rng(1).permutation(80_000)
    close = rows[40_000:40_100]
    shown = choose_points(rows, close)
    assert len(set(shown.tolist())) == len(shown) == MAX_POINTS
    assert set(rows[:N_HIGHEST].tolist()) | set(close.tolist()) <= set(shown.tolist())
    assert np.array_equal(shown, choose_points(rows, close))
    assert np.array_equal(choose_points(rows[:30], rows[:3]), rows[:30])


@pytest.mark.slow
def test_a_large_run_stays_small_enough_to_mail(tmp_path: Path) -> None:
    """60,000 samples with pictures of noise, which is what compresses worst."""
    run = image_run(tmp_path / "run", n=60_000, n_rare=600)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (5_000, 64, 64, 3), dtype=np.uint8)
    index = np.r_[np.arange(2_500), np.arange(57_500, 60_000)]
    np.savez(run.thumbnails, index=index, images=images)
    for arm in ("plain", "weighted", "weighted_drs", "phase1"):
        np.savez(run.generated / f"{arm}.npz", images=images[:1_000])
        Image.fromarray(images[:256].reshape(1024, 1024, 3)).save(run.generated / f"{arm}.png")
    write_report(run.path)
    assert run.report.stat().st_size < 15_000_000
    assert "Shown are 50,000 of 60,000 samples: the 2,000 highest scored" in read(run.path).text


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


@pytest.mark.slow
def test_importing_the_report_is_quick() -> None:
    code = "import sys, diagan.report; sys.exit('matplotlib' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_colours_single_out_the_rare_group(run: RunDir, tmp_path: Path) -> None:
    assert list(Contents(run).colours) == ["green", "red"]
    many = Contents(point_run(tmp_path / "points")).colours
    assert len(many) == 25
    assert len(set(many.values())) == 6  # five of their own, and one for the others


# --- several runs --------------------------------------------------------------------------------


def test_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    runs = [image_run(tmp_path / name) for name in ("one", "two")]
    for run, score in zip(runs, (1, -1)):
        write_json(run.provenance, {"data": {"fingerprint": "ab"}})
        group = ["red"] * 194 + ["green"] * 6
        write_samples(run, group, score * np.linspace(1, 2, 200))
    config = json.loads(runs[1].config.read_text())
    write_json(runs[1].config, config | {"seed": 8})
    fid = {"metric": "fid", "value": 12.5, "arm": "plain", "drs": False}
    append_line(runs[0].metrics, fid)
    for run, value, version in ((runs[0], 1.5, "ab"), (runs[1], 2.5, "cd")):  # each by its own D
        own = {"protocol": "fid9_train", "extractor": "discriminator", "extractor_version": version}
        append_line(run.metrics, fid | own | {"metric": "kid", "value": value})
    out = write_comparison([run.path for run in runs], tmp_path / "both.html")
    page = Page(out.read_text(encoding="utf-8"))
    assert "2 runs side by side" in page.text
    assert page.row("seed") == ["seed", "7", "8"]
    assert page.row("fid")[1:4] == ["plain GAN", "12.5", "–"]
    assert page.row("kid")[1:] == ["plain GAN", "1.50", "–", "fid9_train, discriminator"]
    assert page.row("one and two")[1:] == ["-1.00", "0.0 %"]
    stored = json.loads((tmp_path / "both.json").read_text())
    assert stored["agreement"][0]["spearman"] == pytest.approx(-1)
    assert [run["name"] for run in stored["runs"]] == ["one", "two"]
    assert not [tag for tag, _ in page.tags if tag == "script"]


def test_runs_with_the_same_name_and_nasty_groups_are_told_apart(tmp_path: Path) -> None:
    runs = [image_run(tmp_path / name / "run", names=NASTY) for name in ("a", "b")]
    out = write_comparison([run.path for run in runs], tmp_path / "both.html")
    page = Page(out.read_text(encoding="utf-8"))
    assert "a/run" in page.text
    assert "b/run" in page.text
    assert NASTY[0] in page.text
    assert not [tag for tag, _ in page.tags if tag in ("script", "img")]


# --- parts ---------------------------------------------------------------------------------------


def test_a_sprite_holds_every_picture_where_it_says() -> None:
    import base64
    import io

    images = np.random.default_rng(0).integers(0, 255, (7, 4, 6, 3), dtype=np.uint8)
    made = pictures.sprite(images, budget=10_000)
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(made.uri.partition(",")[2]))))
    for at, image in enumerate(images):
        x, y = (float(part.rstrip("%")) / 100 for part in made.position(at).split())
        # CSS: the percentage of (sheet - cell) that lies left of the cell
        left = round(x * (sheet.shape[1] - 6))
        top = round(y * (sheet.shape[0] - 4))
        assert np.array_equal(sheet[top : top + 4, left : left + 6], image)


def test_a_sprite_keeps_to_its_budget() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (200, 64, 64, 3), dtype=np.uint8)
    made = pictures.sprite(noise, budget=300_000)
    assert len(made.uri) < 1.4 * 300_000
    assert made.uri.startswith("data:image/jpeg")
    flat = pictures.sprite(np.zeros((200, 64, 64, 1), np.uint8), budget=300_000)
    assert flat.uri.startswith("data:image/png")


def test_ticks_are_round_and_within() -> None:
    for low, high in ((0, 1), (-3.2, 7.9), (0.001, 0.0042), (900, 12_000)):
        found = figures.Axis(low, high).ticks()
        assert 2 <= len(found) <= 7
        assert low <= found[0] and found[-1] <= high + 1e-9
        steps = np.diff(found)
        assert np.allclose(steps, steps[0])
        assert round(float(f"{steps[0]:.6e}".split("e")[0]), 6) in (1, 2, 5)


def test_a_chart_has_words_and_escapes_names() -> None:
    line = figures.Line(NASTY[0], NASTY[1], [0, 1, 2], [1.0, float("nan"), 3.0], "#000000")
    other = figures.Line("b", "b", [0, 2], [0.0, 1.0], "#111111")
    made = figures.curves([line, other], "step", "loss", title="Loss")
    page = Page(str(made))
    words = next(a["aria-label"] for _, a in page.tags if a.get("role") == "img")
    assert words.startswith("Loss against step.")
    assert "from 1.00 to 3.00" in words
    assert NASTY[1] in page.text
    assert not [tag for tag, _ in page.tags if tag in ("script", "img")]
    points = next(a["points"] for tag, a in page.tags if tag == "polyline")
    assert len(points.split()) == 2  # what is not a number is left out


def test_a_histogram_is_as_high_as_its_bars() -> None:
    bars = figures.Bars("all", np.array([0.0, 1, 2]), np.array([1.0, 3.0]), "#000000")
    page = Page(str(figures.histogram([bars], "x", "n", marks=[(1.0, "here")])))
    path = next(a["d"] for tag, a in page.tags if tag == "path" and a.get("fill"))
    heights = [1_000 - float(y) for y in re.findall(r"L[\d.]+ ([\d.]+)", path)]
    assert heights[0] * 3 == pytest.approx(heights[2], rel=0.01)
    assert "here" in page.text


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (1234.5, "1,234"), (1.0, "1.00"), (0.04321, "0.0432"), (-2.718, "-2.72"),
     (float("nan"), "–"), (None, "–"), (1, "1"), (12_345, "12,345")],
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


def test_code_in_a_sentence_is_marked_and_the_rest_escaped() -> None:
    assert numbers.marked("try `a <b>` & go") == "try <code>a &lt;b&gt;</code> &amp; go"


def test_the_command_line_writes_one_page_or_one_for_several(tmp_path: Path, capsys) -> None:
    runs = [image_run(tmp_path / name) for name in ("one", "two")]
    main(["report", str(runs[0].path)])
    assert capsys.readouterr().out.strip() == str(runs[0].report)
    out = tmp_path / "both.html"
    main(["report", *(str(run.path) for run in runs), "--out", str(out)])
    assert "2 runs side by side" in out.read_text()
    with pytest.raises(SystemExit):
        main(["report", str(runs[0].path), "--out", str(out)])
    assert "--out goes with several runs" in capsys.readouterr().err


@pytest.mark.parametrize("share", [0.02, 0.4])
def test_what_is_missed_lies_beyond_the_edge_however_much_it_is(share: float):
    """25 Gaussians of which a third were missed: all 10,000 points were called covered."""
    missed = np.arange(1_000) < 1_000 * share
    ldrm = 4.0 * missed + np.random.default_rng(0).uniform(-0.1, 0.1, 1_000)
    assert ((ldrm > edge(ldrm, np.log(TIMES))) == missed).all()
