"""The paper's tables by name: the plan, the shared phase 1, time, resuming, and the page."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tiny import POINTS, data_of, same

from diagan import checkpoint, cli, estimate, pipeline
from diagan import config as configs
from diagan.config import Penalty, Score
from diagan.device import best_device, best_precision
from diagan.diagnosis import from_moments
from diagan.engine import launch
from diagan.errors import Diverged, Interrupted, UserError
from diagan.evaluate import Look, evaluate_run
from diagan.experiments import EXPERIMENTS, SCALES, at_scale, find
from diagan.experiments.cells import (
    BY_HAND,
    FROM_FOLDER,
    MINOR,
    PROTOCOLS,
    Also,
    Number,
    Part,
    Table,
    grid,
)
from diagan.experiments.figures import FIGURES, PICTURES
from diagan.experiments.presets import PRESETS, Times
from diagan.experiments.tables import TABLES, published
from diagan.experiments.variants import Variant, named
from diagan.kept import kept_steps, needed_records
from diagan.ldr import clip_scores
from diagan.observers import load_game
from diagan.protocols import parse
from diagan.reproduce import Request, plan, reproduce, store, timing, work
from diagan.reproduce.branch import Trunk, find_trunk, graft
from diagan.reproduce.index import write_index
from diagan.reproduce.pictures import LINE, MARGIN, SIDE, TITLE, sheet
from diagan.reproduce.plan import BOOKS, Job, find_table, phase1_key, selected, split_subset
from diagan.reproduce.render import (
    also_cells,
    cell_text,
    further,
    markdown,
    number,
    page,
    spread,
    table_json,
)
from diagan.reproduce.shelf import Shelf, StoredRun, of_one_extractor
from diagan.rundir import RunDir, append_line, locked, read_json, read_lines
from diagan.stages import new_game, stages

# --- the tables as data --------------------------------------------------------------------------

VARIANTS = sorted({c.variant for t in BOOKS.values() for c in t.cells}, key=lambda v: v.name)


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_is_a_run_that_can_be_built(scale):
    for variant in VARIANTS:
        built = variant.config(scale)
        assert configs.check(built) is built
        assert variant.at(scale).config(scale) == built


def test_every_cell_can_be_filled_or_says_why_not():
    known = {*PROTOCOLS, *FROM_FOLDER, *PICTURES, *BY_HAND}
    for table in BOOKS.values():
        assert {x.metric for x in (*table.cells, *table.also)} <= known, table.name
        places = [(cell.row, cell.column) for cell in table.cells]
        assert len(places) == len(set(places)), table.name
        assert set(table.quick) <= {*table.rows, *table.columns}, table.name
    for names in PROTOCOLS.values():
        assert all(parse(name) for name in names.values()) and set(names) == set(SCALES)


def test_the_papers_numbers_are_all_there():
    """How many each table has, counted in the paper; departures and curves have none."""
    counts = {name: sum(c.paper is not None for c in t.cells) for name, t in TABLES.items()}
    assert counts == {
        "table1": 6, "table2": 70, "table3": 9, "table4": 6, "table5": 36, "table6": 56,
        "tableA7": 12, "tableA8": 10, "tableA9": 20, "tableA10": 8, "tableA11": 8, "tableA12": 6,
        "tableA13": 12, "complexity": 4, "departures": 0, "figure1e": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("colored_mnist_99", "weighted+drs", "reconstruction_error", "green"), (0.224, 0.020)),
        (("mnist_fmnist_90_pacgan", "phase1", "reconstruction_error", "FMNIST"), (0.225, 0.007)),
        (("cifar10_ssgan", "weighted+drs", "is", ""), (8.14, 0.06)),
        (("celeba_sngan", "plain", "recall", ""), (0.44, 0.01)),
        (("cifar10_sngan_gold", "plain+drs", "fid", ""), (24.65, 0.86)),
        (("ffhq_stylegan2", "weighted+drs", "fid", ""), (11.89, 0.21)),
        (("gaussian_3", "phase1", "ldrv_last50", "minor"), (0.098, 0.009)),
        (("celeba_sngan", "phase1", "score", "not attribute:Wearing_Hat"), (2.164, 0.178)),
    ],
)
def test_a_few_of_them(where, value):
    assert published(*where) == Number(*value)
    assert published(where[0], "nothing", *where[2:]) is None


def test_hours_of_the_complexity_paragraph():
    hours = [c.paper.value for c in TABLES["complexity"].cells if c.paper]
    minutes = [round(h * 60) for h in hours]
    assert minutes == [4 * 60 + 51, 17 * 60 + 7, 5 * 60 + 38, 19 * 60 + 53]


def test_every_figure_has_its_name():
    numbers = ["1", "3", "4", *(f"A{n}" for n in range(1, 11))]
    assert [f"figure{n}" for n in numbers] == list(FIGURES)
    assert find_table("A10") is TABLES["tableA10"]  # a table goes before a figure
    assert find_table("FIGUREa10") is FIGURES["figureA10"]
    with pytest.raises(UserError, match="no table or figure 'table7'; did you mean table"):
        find_table("table7")


# --- variants ------------------------------------------------------------------------------------


def test_a_change_that_changes_nothing_is_no_variant():
    k3 = Variant("colored_mnist_99", (("score.k", 3.0),))
    assert k3.at("cpu") == Variant("colored_mnist_99")
    longer = Variant("cifar10_sngan", (("score.k", 0.5),), longer=2)
    assert longer.at("paper") == longer
    assert longer.name == "cifar10_sngan+k=0.5+longer=2"
    assert longer.config("paper").steps == 100_000
    assert longer.folder("paper", 1) == "cifar10_sngan+k=0.5+longer=2-seed1"
    assert longer.folder("cpu", 1).endswith("-cpu-seed1")
    with pytest.raises(AttributeError, match="kay"):
        Variant("demo", (("score.kay.x", 1),)).config("cpu")


def test_a_config_knows_its_name():
    c = at_scale(find("mnist_fmnist_95"), "cpu")
    assert named(replace(c, seed=7, precision="float32", device="cpu")) == (
        "mnist_fmnist_95",
        "cpu",
    )
    assert named(replace(c, batch_size=65)) is None


# --- the plan ------------------------------------------------------------------------------------


def test_a_phase_1_is_shared_by_what_differs_later():
    base = find("colored_mnist_99")
    same_phase1 = [
        replace(base, score=replace(base.score, k=1.0, clip="floor")),
        replace(base, critic=replace(base.critic, stream="published")),
        replace(base, phase1_share=0.2, plain_arm=False),
        replace(base, methods=replace(base.methods, gold="published"), weighted_arm=False),
        replace(base, record=replace(base.record, window=20, start=500)),
        replace(base, record=replace(base.record, mode="eval", every=500)),
        replace(base, penalty=Penalty(r1=1.0, every=4, r1_from="phase2")),
        replace(base, optim=replace(base.optim, decay="restart")),
    ]
    assert {phase1_key(c) for c in same_phase1} == {phase1_key(base)}
    others = [
        replace(base, seed=1),
        replace(base, steps=base.steps + 1),  # the learning rate falls to zero at the last step
        replace(base, loss="hinge"),
        replace(base, penalty=Penalty(r1=1.0)),
        replace(base, record=replace(base.record, mode="free")),
        replace(base, methods=replace(base.methods, packing=2)),
        replace(base, precision="float32"),
    ]
    assert phase1_key(base) not in {phase1_key(c) for c in others}
    assert len({phase1_key(c) for c in others}) == len(others)


def test_the_arms_of_table_a8_branch_off_one_trunk():
    table = TABLES["tableA8"]
    units = plan.make_plan(table, selected(table, "cpu"), "cpu", [0])
    phase1 = [u.job.config.phase1_steps for u in units if u.what == "phase1"]
    assert phase1 == [800, 1600, 2400, 3000, 3200]  # each goes on from the one before
    assert len({phase1_key(u.job.config) for u in units}) == 1
    assert [u.name for u in units].count("plain") == 1  # the baseline, once
    assert len(set(units)) == len(units)


def test_table_5_at_cpu_scale():
    table = TABLES["table5"]
    units = plan.make_plan(table, selected(table, "cpu"), "cpu")
    assert {u.job.variant.experiment for u in units} == {
        f"colored_mnist_99{end}" for end in ("", "_gold", "_topk", "_pacgan", "_inclusive")
    }
    assert [u.job.seed for u in units] == sorted(u.job.seed for u in units)  # seed by seed
    assert {u.job.seed for u in units} == {0, 1, 2}
    first = [u.name for u in units if u.job == units[0].job]
    slow = "re10k_epochs10"  # trains an autoencoder: what is quick is known before
    assert first == [
        *("phase1", "plain", "measure plain", "weighted", "measure weighted"),
        "measure weighted+drs",
        *(f"measure {arm}, {slow}" for arm in ("plain", "weighted", "weighted+drs")),
    ]
    of_seed_0 = [u.is_slow for u in units if u.job.seed == 0]
    assert of_seed_0 == sorted(of_seed_0)  # of every row
    assert {p for u in units for p in u.protocols} == {
        *("re10k_epochs10", "shares10k", "fid10k_train", "partial_recall10k_k3"),
    }


def test_phase_1_alone_where_no_more_is_asked():
    table = TABLES["table1"]
    units = plan.make_plan(table, table.cells, "paper")
    assert {u.what for u in units} == {"phase1"} and not any(u.measures for u in units)
    assert Counter(u.job.variant.name for u in units) == {
        "gaussian_3": 10, "colored_mnist_90": 3, "mnist_fmnist_90": 3,
        "colored_mnist_90+mode=eval": 3,
    }  # fmt: skip


def test_attributes_are_subsets_of_their_own():
    table = TABLES["table6"]
    units = plan.make_plan(table, table.cells, "paper", [0])
    measuring = next(u for u in units if u.what == "weighted+drs")
    assert "partial_recall10k_k3@attribute:Bald" in measuring.protocols
    assert split_subset("a@attribute:B") == ("a", "attribute:B") and split_subset("a") == ("a", "")
    assert len(plan.unplanned(table.cells)) == 1


def test_rows_and_columns_by_name():
    table = TABLES["table5"]
    chosen = selected(table, "paper", ["vanilla", "top"], ["colored"])
    assert {c.row for c in chosen} == {"Vanilla", "Top-k"} and len(chosen) == 6
    assert {c.row for c in selected(table, "paper", ["dia-gan"])} == {"Dia-GAN"}  # the whole name
    assert {c.column for c in selected(table, "cpu", ["dia"])} == {"Colored MNIST 99 %"}
    with pytest.raises(UserError, match="--rows Vanila: there is none; did you mean Vanilla"):
        selected(table, "paper", ["Vanila"])


# --- a whole table, small enough for a test ------------------------------------------------------

GREEN = Part("share", "demo", metric="group_share", group="green")
TRAIN_MODE = (("record.mode", "train"), ("record.every", 3), ("record.window", 3))
TRAIN_RUN = "demo+mode=train+every=3+window=3"
TINY = Table(
    "tiny",
    "a table of the demo",
    grid(
        [
            Part("plain", arm="plain"),
            Part("Dia-GAN", arm="weighted+drs"),
            Part("early", arm="weighted", changes=(("phase1_share", 0.25),)),
            Part("gamma", arm="weighted+drs", changes=(("rejection.gamma", "global"),)),
            Part("train", arm="weighted", changes=TRAIN_MODE),
        ],
        [
            GREEN,
            Part("LDRV", "demo", metric="ldrv", group="green"),
            Part("h", "demo", metric="hours"),
        ],
        "0.040±0.010 - -",
    ),
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Asks for the tiny table; everything that is said is returned."""
    monkeypatch.setitem(BOOKS, "tiny", TINY)
    monkeypatch.setattr(pipeline, "report", lambda run: None)  # has its own tests
    monkeypatch.setattr(estimate, "TIMING_SECONDS", 0.0)

    def ask(said: list[str] | None = None, **how) -> list[str]:
        said = [] if said is None else said
        where = {"runs": tmp_path / "runs", "results": tmp_path / "results"}
        reproduce(Request("tiny", "smoke", **how), **where, say=said.append)
        return said

    ask.runs, ask.results = tmp_path / "runs", tmp_path / "results"
    return ask


@pytest.mark.slow
def test_from_nothing_to_a_table(tiny, tmp_path):
    said = tiny()
    assert "4 runs in 14 units" in said[0]
    folders = sorted(p.name for p in tiny.runs.iterdir())
    assert folders == [f"demo{more}-smoke-seed0" for more in
                       ("+gamma=global", "+mode=train+every=3+window=3", "+phase1_share=0.25", "")
                       ]  # fmt: skip
    found = read_json(tiny.results / "tables" / "tiny.json")
    cells = {(c["row"], c["column"]): c for c in found["cells"]}
    assert cells["plain", "share"]["n"] == 1 and cells["plain", "share"]["paper"] == 0.04
    stored = StoredRun(tiny.results / "measured" / folders[-1])
    (line,) = stored.lines("group_share", "shares128", "plain", "green")
    assert cells["plain", "share"]["mean"] == line["value"]
    text = (tiny.results / "tables" / "tiny.md").read_text()
    assert "; paper 0.040 ± 0.010" in text and "smoke scale" in text
    assert f"precision: {best_precision(best_device())}" in text
    assert "not measured" in text  # a plain GAN has hours of its own, the early arm has none
    assert_the_phase_1_is_shared(tiny, tmp_path)
    assert_nothing_is_left_to_do(tiny)


def assert_the_phase_1_is_shared(tiny, tmp_path):
    """Trained once: by the early arm, then on from there; and yet the run it would be alone."""
    trunks = {p.name: read_json(p / "provenance.json").get("trunk") for p in tiny.runs.iterdir()}
    early = {"run": "demo+phase1_share=0.25-smoke-seed0", "step": 6, "records": 1}
    assert trunks["demo-smoke-seed0"] == early
    names = "demo-smoke-seed0", "demo+gamma=global-smoke-seed0", f"{TRAIN_RUN}-smoke-seed0"
    assert trunks[names[1]] == {"run": names[0], "step": 12, "records": 4}
    assert trunks[names[2]] == {"run": names[1], "step": 12, "records": 0}  # or the one before
    branch, *_ = runs = [RunDir(tiny.runs / name) for name in names]
    settings = [configs.loads(run.config.read_text(), "") for run in runs]
    plain = pipeline.run(settings[0], tmp_path / "alone", stage="weighted")
    train = pipeline.run(settings[2], tmp_path / "train", stage="weighted")
    for run, alone in zip(runs, (plain, plain, train)):
        mine = checkpoint.load(run.checkpoints / "weighted-000024")
        theirs = checkpoint.load(alone.checkpoints / "weighted-000024")
        assert all(same(mine[name], theirs[name]) for name in theirs)
        assert sorted(p.name for p in run.record.iterdir()) == sorted(
            p.name for p in alone.record.iterdir()
        )
        assert read_json(run.diagnosis) == read_json(alone.diagnosis)
        for file in alone.record.glob("*.npy"):
            assert file.read_bytes() == (run.record / file.name).read_bytes()
    steps = [(x["stage"], x["step"]) for x in read_lines(branch.log)]
    assert steps.count(("phase1", 4)) == 1 and steps.count(("phase1", 12)) == 1


def assert_nothing_is_left_to_do(tiny):
    before = {p: p.stat().st_mtime_ns for p in tiny.runs.rglob("*.safetensors")}
    said = tiny()
    assert "about 0 s in 0 units; 14 are done" in said
    assert {p: p.stat().st_mtime_ns for p in tiny.runs.rglob("*.safetensors")} == before
    for file in (tiny.results / "measured").glob("*/provenance.json"):
        found = read_json(file)
        assert found["estimate"]["seconds"] > 0 and found["seconds"] > 0
        for unit in found["units"].values():
            assert set(unit) == {"estimate", "seconds", "ended"} and unit["ended"]
    shelf = Shelf(tiny.results)
    assert shelf.median_ratio() == np.median(list(shelf.ratios().values()))


@pytest.mark.slow
def test_nothing_is_started_that_would_not_end(tiny, monkeypatch):
    started = []
    monkeypatch.setattr(work.Workshop, "do", lambda shop, unit, s: started.append(unit))
    said = tiny(seconds=0.1)
    assert started == []
    assert sum(line.startswith("not started") for line in said) == 4  # all else needs a phase 1
    assert said[-1].endswith("units wait for more time; the same command goes on")
    assert "not measured; paper 0.040" in (tiny.results / "tables" / "tiny.md").read_text()
    tiny(only_plan=True)
    assert started == []
    tiny(seconds=1000)
    assert {unit.what for unit in started} == {"phase1"}  # the others wait for theirs


def test_quick_leaves_out_what_trains_a_network_to_measure_by(tmp_path, monkeypatch):
    monkeypatch.setattr(work.Workshop, "estimates", lambda shop, units: dict.fromkeys(units, 1.0))
    said: dict[bool, str] = {}
    for quick in (False, True):
        lines: list[str] = []
        request = Request("table5", "cpu", (0,), ("Vanilla",), only_plan=True, quick=quick)
        reproduce(request, runs=tmp_path, results=tmp_path, say=lines.append)
        said[quick] = "\n".join(lines)
    assert "measure plain, re10k_epochs10" in said[False] and "re10k" not in said[True]
    assert "3 units" in said[True]  # phase 1, the plain arm, the rest of its measuring


def test_a_branch_is_not_started_where_its_trunk_was_not(tiny, monkeypatch):
    """What the plan says of it holds only if the trunk comes about."""
    monkeypatch.setattr(work.Workshop, "do", lambda shop, unit, s: pytest.fail(str(unit)))
    guess = estimate.Estimate(0.0, 0, 100.0, 100.0, 1.0)
    monkeypatch.setattr(timing.Clock, "training", lambda clock, c: guess)
    said = tiny(rows=("Dia-GAN", "gamma", "train"), columns=("LDRV",), seconds=600)
    (planned,) = [line for line in said if line.lstrip().startswith("6 s") and TRAIN_RUN in line]
    assert planned.endswith("phase1")  # three records and the overhead
    assert sum(line.startswith("not started") for line in said) == 3


@pytest.mark.slow
def test_of_equal_trunks_the_one_whose_phase_2_is_the_same(tmp_path):
    c = replace(Job(Variant("demo"), "smoke", 0).config, device="cpu", precision="float32")
    pipeline.run(c, tmp_path / "z", stage="phase1")
    pipeline.run(replace(c, score=replace(c.score, k=1.0)), tmp_path / "a", stage="phase1")
    other = replace(c, rejection=replace(c.rejection, gamma="global"))
    assert find_trunk(tmp_path, other, tmp_path / "b").run.path.name == "z"


def test_a_unit_of_seconds_says_little_about_one_of_hours(tmp_path):
    shop = work.Workshop(tmp_path, tmp_path)
    assert shop.pace == 1
    shop.done = {"graft": (3.0, 9.0)}
    assert shop.pace < 1.1
    shop.done["phase 1"] = (3600.0, 7200.0)
    assert shop.pace == pytest.approx(2, rel=0.02)
    shop.done = {"phase 1": (3600.0, 1800.0)}
    assert shop.pace == 1


@pytest.mark.slow
def test_stopped_it_leaves_a_table_and_goes_on(tiny, monkeypatch):
    whole = pipeline.run

    def stop_after_phase1(settings, path, stage, **how):
        if stage != "phase1":
            raise Interrupted("stopped and saved")
        return whole(settings, path, stage=stage, **how)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "run", stop_after_phase1)
        with pytest.raises(Interrupted):
            tiny(rows=("plain",))
    assert "not measured" in (tiny.results / "tables" / "tiny.md").read_text()
    units = read_json(tiny.results / "measured" / "demo-smoke-seed0" / "provenance.json")["units"]
    assert [unit["ended"] for unit in units.values()] == [True, False]
    (ratio,) = Shelf(tiny.results).ratios().values()  # how long a part took says nothing
    assert ratio == units["phase1"]["seconds"] / units["phase1"]["estimate"]
    said = tiny(rows=("plain",))
    assert [line for line in said if "phase1" in line] == []
    units = read_json(tiny.runs / "demo-smoke-seed0" / "provenance.json")["units"]
    assert set(units) == {"phase1", "plain", "measure plain"}


@pytest.mark.slow
def test_a_run_that_cannot_be_is_said_and_the_others_go_on(tiny, monkeypatch):
    whole = work.Workshop.do

    def fail_early(shop, unit, seconds):
        if unit.job.variant.changes:
            raise UserError("the loss of D is not finite")
        whole(shop, unit, seconds)

    monkeypatch.setattr(work.Workshop, "do", fail_early)
    said = tiny(rows=("early", "plain"))
    assert any(line.endswith("the loss of D is not finite") for line in said)
    cells = read_json(tiny.results / "tables" / "tiny.json")["cells"]
    assert {c["row"]: c["n"] for c in cells if c["column"] == "share"} == {
        "plain": 1,
        "Dia-GAN": 0,
        "early": 0,
        "gamma": 0,
        "train": 0,
    }


@pytest.mark.slow
def test_a_folder_of_that_name_with_another_run_is_not_taken(tiny):
    tiny(rows=("plain",), columns=("LDRV",))
    for folder in (tiny.runs, tiny.results / "measured"):
        file = folder / "demo-smoke-seed0" / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"batch_size": 8}))
    said: list[str] = []
    with pytest.raises(UserError, match="none of the 1 runs"):
        tiny(said, rows=("plain",))
    assert "holds a run with --batch-size 8, not 16; give another --runs" in said[0]
    assert read_json(tiny.results / "tables" / "tiny.json")["scales"] == {}


@pytest.mark.slow
def test_numbers_stay_that_another_run_has_measured(tiny):
    """results/ came with the repository, the run folders did not."""
    tiny(rows=("plain",))
    file = tiny.results / "measured" / "demo-smoke-seed0" / "metrics.jsonl"
    before, table = file.read_text(), (tiny.results / "tables" / "tiny.json").read_text()
    shutil.rmtree(tiny.runs)
    said: list[str] = []
    with pytest.raises(UserError, match="none of the 1 runs"):
        tiny(said, rows=("plain",))
    assert "give another --results, or delete that folder" in said[0]
    assert file.read_text() == before
    assert (tiny.results / "tables" / "tiny.json").read_text() == table
    shutil.rmtree(file.parent)
    tiny(rows=("plain",), columns=("LDRV",))
    assert file.exists()


@pytest.mark.slow
def test_a_diagnosis_by_other_settings_fills_no_cell(tiny):
    tiny(rows=("plain",), columns=("LDRV",))
    run = RunDir(tiny.runs / "demo-smoke-seed0")
    stored = tiny.results / "measured" / "demo-smoke-seed0" / "diagnosis.json"
    own = stored.read_text()
    pipeline.diagnose_again(run.path, Score(k=7.0))
    said: list[str] = []
    with pytest.raises(UserError, match="none of the 1 runs"):
        tiny(said, rows=("plain",), columns=("LDRV",))
    assert "delete diagnosis.json there" in said[0] and stored.read_text() == own
    run.diagnosis.unlink()
    tiny(rows=("plain",), columns=("LDRV",))
    assert read_json(run.diagnosis)["k_is_auto"] and stored.read_text() == own


@pytest.mark.slow
def test_subsets_of_the_score_are_not_the_groups(tiny):
    tiny(rows=("plain",), columns=("LDRV", "h"))
    run = tiny.runs / "demo-smoke-seed0"
    evaluate_run(run, ["partial_recall128_k3"], arms=["plain"], by="score")
    shop = work.Workshop(tiny.runs, tiny.results)
    unit = plan.Unit(Job(Variant("demo"), "smoke", 0), "plain", ("partial_recall128_k3",))
    assert shop.missing(unit) == ["partial_recall128_k3"]
    evaluate_run(run, ["partial_recall128_k3"], arms=["plain"])
    assert shop.missing(unit) == ["partial_recall128_k3"]  # in the features of its own D
    evaluate_run(run, ["partial_recall128_k3"], arms=["plain"], look=Look("patches"))
    assert shop.missing(unit) == []


@pytest.mark.parametrize("group", ["highest scored", "airplane", "green", "", None])
def test_a_protocol_is_there_whatever_the_groups_are_called(tmp_path, group):
    shop = work.Workshop(tmp_path, tmp_path)
    unit = plan.Unit(Job(Variant("demo"), "smoke", 0), "plain+drs", ("partial_fid128_ends32",))
    file = shop.folder(unit.job).metrics
    file.parent.mkdir()
    append_line(file, LINE_OF_ITS_END | {"group": "attribute:Bald"})
    assert shop.missing(unit) == ["partial_fid128_ends32"]
    append_line(file, LINE_OF_ITS_END | ({} if group is None else {"group": group}))
    assert shop.missing(unit) == []


LINE_OF_ITS_END = {
    "metric": "partial_fid", "protocol": "partial_fid128_ends32", "arm": "plain", "drs": True,
    "value": 1.0, "checkpoint": "plain-000024", "extractor": "patches",
}  # fmt: skip
ERROR_OF_ITS_END = LINE_OF_ITS_END | {"metric": "reconstruction_error", "protocol": "re128_epochs1"}


@pytest.mark.parametrize(
    ("line", "is_there"),
    [
        (LINE_OF_ITS_END, True),
        (LINE_OF_ITS_END | {"checkpoint": "plain-000018"}, False),  # looked at on the way
        (LINE_OF_ITS_END | {"extractor": "discriminator"}, False),
        (ERROR_OF_ITS_END | {"extractor": "discriminator"}, True),  # pixels are pixels
        (ERROR_OF_ITS_END | {"checkpoint": "plain-000018"}, False),
    ],
)
def test_what_somebody_else_has_evaluated_counts_if_it_is_the_same_number(tmp_path, line, is_there):
    shop = work.Workshop(tmp_path, tmp_path)
    unit = plan.Unit(Job(Variant("demo"), "smoke", 0), "plain+drs", (line["protocol"],))
    file = shop.folder(unit.job).metrics
    file.parent.mkdir()
    append_line(file, line)
    assert (shop.missing(unit) == []) == is_there


@pytest.mark.slow
def test_what_another_process_is_at_is_left_alone(tiny):
    tiny(rows=("plain",), columns=("LDRV",))
    run = RunDir(tiny.runs / "demo-smoke-seed0")
    before = run.provenance.read_text()
    with locked(run), pytest.raises(UserError, match="none of the 1 runs"):
        tiny(rows=("plain",))
    assert run.provenance.read_text() == before


@pytest.mark.slow
def test_what_diagan_run_has_done_counts_once(tiny):
    unit = plan.Unit(Job(Variant("demo"), "smoke", 0), "plain")
    run = pipeline.run(unit.job.config, tiny.runs / "demo-smoke-seed0", stage="phase1")
    took = read_json(run.provenance)["seconds"]
    tiny(rows=("plain",))
    found = read_json(run.provenance)
    assert found["units"]["run"]["seconds"] == took
    assert [x["ended"] for x in found["units"].values()] == [False, True, True]
    assert found["seconds"] == sum(x["seconds"] for x in found["units"].values())


def test_a_unit_done_twice_was_estimated_twice(tmp_path):
    run = RunDir(tmp_path)
    run.provenance.write_text(json.dumps({"estimate": {}, "units": {}, "failed": "diverged"}))
    work.note(run, "phase1", 10.0, 4.0, ended=False)  # cut short: what is left is part of it
    assert read_json(run.provenance)["failed"] == "diverged"
    work.note(run, "phase1", 6.0, 7.0, ended=True)
    work.note(run, "measure plain", 10.0, 9.0, ended=True)
    work.note(run, "measure plain", 30.0, 33.0, ended=True)  # by other protocols
    found = read_json(run.provenance)
    assert found["units"] == {
        "phase1": {"estimate": 10.0, "seconds": 11.0, "ended": True},
        "measure plain": {"estimate": 40.0, "seconds": 42.0, "ended": True},
    }
    assert (found["estimate"]["seconds"], found["seconds"]) == (50.0, 53.0)
    assert "failed" not in found


def test_a_stage_that_another_run_was_to_train_is_estimated_anew(tmp_path, monkeypatch):
    """Rows that only reject differently train phase 2 once, if it was trained at all."""
    shop = work.Workshop(tmp_path, tmp_path)
    guess = estimate.Estimate(0.0, 0, 1.0, 2.0, 10.0, 0.0)
    monkeypatch.setattr(shop.clock, "training", lambda c: guess)
    jobs = [Job(Variant("demo", changes), "smoke", 0)
            for changes in ((), (("rejection.gamma", "global"),))]  # fmt: skip
    units = [plan.Unit(job, "weighted") for job in jobs]
    steps = {unit: seconds - timing.OVERHEAD for unit, seconds in shop.estimates(units).items()}
    assert list(steps.values()) == [24, 0]
    assert shop.seconds_now(units[1], 0.0) - timing.OVERHEAD == 24


def test_what_waits_for_want_of_time_is_counted_whole(tiny):
    said = tiny(rows=("plain",), seconds=0.0)
    assert said[-1] == "3 units wait for more time; the same command goes on"


FEATURES = ("inception tf1", "discriminator ab", "discriminator cd", None)


@given(st.lists(st.sets(st.sampled_from(FEATURES)), min_size=1, max_size=6))
def test_numbers_of_different_features_are_not_averaged(kinds):
    """Nor those in the features of two discriminators."""
    found = {seed: [{"metric": "fid"}
                    | dict(zip(("extractor", "extractor_version"), kind.split() if kind else ()))
                    for kind in sorted(of, key=str)]
             for seed, of in enumerate(kinds) if of}  # fmt: skip
    chosen = of_one_extractor(found)
    names = {(line.get("extractor"), line.get("extractor_version")) for line in chosen.values()}
    assert len(names) <= 1
    assert len(chosen) == max((sum(name in of for of in kinds) for name in FEATURES), default=0)


def test_errors_are_of_pixels_and_of_equals_the_last_counts():
    errors = {seed: [ERROR_OF_ITS_END | {"extractor": name}]
              for seed, name in enumerate(["patches", "patches", "inception"])}  # fmt: skip
    assert list(of_one_extractor(errors)) == [0, 1, 2]
    both = {0: [LINE_OF_ITS_END, LINE_OF_ITS_END | {"extractor": "inception"}]}
    assert of_one_extractor(both)[0]["extractor"] == "inception"  # fetched since


# --- branches ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_records_that_a_trunk_lacks_make_it_no_trunk(tmp_path):
    c = replace(Job(Variant("demo"), "smoke", 0).config, device="cpu", precision="float32")
    assert needed_records(c, 12) == [6, 8, 10, 12]
    assert needed_records(c, 9) == [6, 8]
    assert needed_records(replace(c, record=replace(c.record, mode="none")), 12) == []
    run = pipeline.run(c, tmp_path / "a", stage="phase1")
    longer = replace(c, record=replace(c.record, window=5))
    assert find_trunk(tmp_path, c, tmp_path / "b").step == 12
    assert find_trunk(tmp_path, c, run.path) is None  # a run is not its own trunk
    assert find_trunk(tmp_path, longer, tmp_path / "b") is None
    assert find_trunk(tmp_path, replace(c, phase1_share=0.25), tmp_path / "b") is None
    trunk = find_trunk(tmp_path, c, tmp_path / "b")
    for _ in range(2):  # again, where it was cut short
        graft(trunk, c, RunDir(tmp_path / "b"))
    assert len(read_lines(tmp_path / "b" / "log.jsonl")) == len(read_lines(run.log))
    (tmp_path / "b" / "log.jsonl").write_text("")
    assert read_lines(run.log)  # nothing is shared that could be written to


def test_d_is_kept_for_what_other_rows_would_record(tmp_path):
    shop = work.Workshop(tmp_path, tmp_path)
    kept = shop.to_keep(Job(Variant("colored_mnist_99"), "cpu", 0))
    assert kept == {*range(2000, 3001, 20)}
    assert shop.to_keep(Job(Variant("colored_mnist_95"), "cpu", 0)) == set()
    figure_a1 = shop.to_keep(Job(Variant("cifar10_sngan"), "paper", 0))
    assert figure_a1 == {*range(30_100, 35_001, 100)}  # what it records and Table 2 does not


@pytest.mark.slow
def test_a_branch_records_in_its_own_mode_what_its_trunk_recorded_in_another(tmp_path):
    """And is the run that it would be alone, bit for bit."""
    c = replace(Job(Variant("demo"), "smoke", 0).config, device="cpu", precision="float32")
    other = replace(c, record=replace(c.record, mode="train", every=3, window=3))
    trunk = pipeline.run(c, tmp_path / "runs" / "trunk", stage="phase1", keep={3, 6, 9})
    branch, alone = RunDir(tmp_path / "runs" / "branch"), tmp_path / "alone"
    assert find_trunk(tmp_path / "runs", other, branch.path) is None  # step 12 is not kept
    checkpoint.keep_network(d_at_the_end(trunk, c), trunk.kept / "000012.safetensors")
    found = find_trunk(tmp_path / "runs", other, branch.path)
    assert (found.step, found.records(other), found.records(c)) == (12, set(), {6, 8, 10, 12})
    graft(found, other, branch)
    begun = Trunk(branch, other, 12)  # it has not recorded yet, and another may begin from it
    graft(begun, other, RunDir(tmp_path / "later"))
    assert not branch.record.exists() and kept_steps(branch) == kept_steps(trunk)
    pipeline.run(other, branch.path, stage="weighted")
    pipeline.run(other, alone, stage="weighted")
    files = [*alone.glob("record/*.npy"), *alone.glob("checkpoints/weighted-000024/*.safetensors")]
    assert len(files) == 3 * 2 + 3 * 2  # with the held-out reals, and with the optimisers
    for file in files:
        assert file.read_bytes() == (branch.path / file.relative_to(alone)).read_bytes(), file


@pytest.mark.slow
def test_a_copy_of_records_that_were_taken_later_tells_no_hours(tiny):
    for row in ("train", "plain", "gamma"):  # each begins from the one before
        tiny(rows=(row,), columns=("LDRV",))
    trunks = [read_json(tiny.runs / f"demo{more}-smoke-seed0" / "provenance.json")["trunk"]
              for more in ("", "+gamma=global")]  # fmt: skip
    assert trunks == [{"run": f"{TRAIN_RUN}-smoke-seed0", "step": 12, "records": 0},
                      {"run": "demo-smoke-seed0", "step": 12, "records": 0}]  # fmt: skip


def d_at_the_end(run, c):
    game = new_game(c, data_of(c), launch(c), stages(c)[0])
    load_game(run.checkpoints / "phase1-000012", game)
    return game.d.net


def test_a_change_may_be_a_multiple_of_what_the_scale_has():
    ours = Variant("colored_mnist_99", (("record.every", Times(5)), ("record.window", 10)))
    assert ours.name == "colored_mnist_99+every=x5+window=10"
    for scale, every, start in (("paper", 500, 10_500), ("cpu", 100, 2_100)):
        c = ours.config(scale)
        assert (c.record.every, c.record_start) == (every, start)


def test_a_preset_is_its_changes_under_a_short_name():
    ours = Variant("colored_mnist_99", (("preset", "robust"), ("score.k", 5.0)))
    assert ours.folder("cpu", 1) == "colored_mnist_99+preset=robust+k=5.0-cpu-seed1"
    listed = Variant("colored_mnist_99", (*PRESETS["robust"], ("score.k", 5.0)))
    assert ours.config("paper") == listed.config("paper")
    assert ours.config("paper").score.clip == "floor"


def test_a_record_in_another_mode_is_no_phase_1_in_the_plan(tmp_path, monkeypatch):
    table = TABLES["departures"]
    cells = selected(table, "cpu", ["as in the paper", "recorded in eval mode", "robust"])
    shop = work.Workshop(tmp_path, tmp_path)
    guess = estimate.Estimate(0.0, 0, 1.0, 2.0, 10.0, 0.0)
    monkeypatch.setattr(shop.clock, "training", lambda c: guess)
    units = [u for u in plan.make_plan(table, cells, "cpu", [0]) if u.what == "phase1"]
    seconds = [round(s - timing.OVERHEAD) for s in shop.estimates(units).values()]
    assert seconds == [3000 + 50 * 10, 50 * 10, 0]  # the last one's are among the second's


# --- what tables needed of the rest --------------------------------------------------------------


@pytest.mark.parametrize(("terms", "column"), [("ldrm", 0), ("ldrv", 1)])
def test_one_statistic_alone_is_the_score(terms, column):
    """Table A10: clipped as the score is."""
    moments = np.array([0.2, 0.02, 3.0]), np.array([0.5, 0.001, 0.1])
    found = from_moments(*moments, 50, configs.Score(k=3.0, terms=terms))
    assert np.array_equal(found.score, moments[column])
    clipped = clip_scores(moments[column])
    assert found.weights == pytest.approx(clipped / clipped.sum())
    both = from_moments(*moments, 50, configs.Score(k=3.0))
    assert np.array_equal(both.score, moments[0] + 3 * np.sqrt(moments[1]))


def test_an_arm_that_is_not_trained_is_not_estimated(monkeypatch):
    monkeypatch.setattr(estimate, "TIMING_SECONDS", 0.0)
    monkeypatch.setattr(estimate, "stopwatch", lambda action, n: 1.0)
    data, fabric = data_of(POINTS), launch(POINTS)

    def seconds(**how) -> float:
        return estimate.estimate(replace(POINTS, **how), data, fabric)[1].seconds

    phase1 = seconds(plain_arm=False, weighted_arm=False)
    plain, weighted = seconds(weighted_arm=False), seconds(plain_arm=False)
    n_steps, a_fake = POINTS.steps - POINTS.phase1_steps, (1.0 + 1.0) / 256
    assert plain - phase1 == pytest.approx(n_steps + POINTS.n_evaluate * a_fake)
    assert seconds() - plain == pytest.approx(weighted - phase1)


def test_each_subset_of_a_measuring_is_drawn_anew(monkeypatch):
    """And no autoencoder is timed where none is asked for."""
    guess = estimate.Estimate(0.0, 0, 1.0, 1.0, 1.0, seconds_per_fake=1.0)
    monkeypatch.setattr(timing.Clock, "training", lambda clock, c: guess)
    monkeypatch.setattr(timing.Clock, "look", lambda clock, c: 0.1)
    monkeypatch.setattr(timing, "train_autoencoder", lambda *more, **how: pytest.fail())
    job = Job(Variant("demo"), "smoke", 0)

    def seconds(*protocols: str) -> float:
        return timing.Clock().seconds(plan.Unit(job, "plain", protocols), job.config)

    name = "partial_recall128_k3"
    one, two = seconds(f"{name}@attribute:A"), seconds(f"{name}@attribute:A", f"{name}@attribute:B")
    assert seconds(name, "shares128") < one + 1 and two - one == pytest.approx(140.8, abs=0.5)


# --- what is kept, and how it is told ------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["phase1", "plain"]), st.integers(1, 400)), unique=True))
@settings(max_examples=25)
def test_a_thinned_log(found):
    lines = [{"stage": s, "step": n, "loss_D": n / 3} for s, n in sorted(found)]
    lines += [{"stage": "plain", "step": 7, "warning": "D has won"}]
    kept = store.thinned(lines)
    steps = [(x["stage"], x["step"]) for x in kept]
    assert kept[-1]["warning"] == "D has won"
    assert all((s, n) in steps for s, n in found if n % 50 == 0)
    last = dict(sorted(found))
    assert ("phase1", last["phase1"]) in steps if "phase1" in last else True
    assert all(abs(x["loss_D"] - x["step"] / 3) < 1e-3 for x in kept if "loss_D" in x)


def test_hours_from_a_log(tmp_path):
    c = Job(Variant("demo"), "smoke", 0).config  # records from step 6 of 12; 24 in all
    lines = [("phase1", 4, 2.0), ("phase1", 8, 1.0), ("phase1", 12, 1.0), ("weighted", 24, 0.5)]
    run = RunDir(tmp_path)
    store.write_lines(
        run.log, [{"stage": s, "step": n, "steps_per_second": v} for s, n, v in lines]
    )
    found = {x["arm"]: x["value"] * 3600 for x in store.hours(run, c)}
    assert found == pytest.approx({"plain": 24 / 2.0, "weighted": 4 / 2 + 4 + 4 + 12 / 0.5})
    trunk = {"run": "another", "step": 12, "records": 4}
    run.provenance.write_text(json.dumps({"trunk": trunk}))
    assert len(store.hours(run, c)) == 2
    run.provenance.write_text(json.dumps({"trunk": trunk | {"records": 0}}))
    assert [x["arm"] for x in store.hours(run, c)] == ["plain"]  # records are not in its log


def test_numbers_by_attribute(tmp_path):
    """Table 6: of who has it and who has not."""
    run = RunDir(tmp_path)
    columns = {"attribute:Bald": [1, 0, 0, 1], "ldrv": [0.5, 0.1, 0.3, 0.7], "score": [4, 1, 2, 3]}
    pq.write_table(pa.table(columns), run.samples)
    run.diagnosis.write_text(json.dumps({"groups": []}))
    found = {(x["metric"], x["group"]): x["value"] for x in store.from_diagnosis(run)}
    assert found == pytest.approx({
        ("ldrv", "attribute:Bald"): 0.6, ("ldrv", "not attribute:Bald"): 0.2,
        ("score", "attribute:Bald"): 3.5, ("score", "not attribute:Bald"): 1.5,
    })  # fmt: skip


@pytest.mark.slow
def test_a_run_that_diverged_is_told_in_the_table(tiny, monkeypatch):
    def diverge(settings, path, stage, **how):
        raise Diverged("D", "loss", 7)

    monkeypatch.setattr(pipeline, "run", diverge)
    said: list[str] = []
    for tried in ("once", "again"):  # which would end as it did before
        with pytest.raises(UserError, match="none of the 1 runs could be measured"):
            tiny(said, rows=("plain",))
        assert any("to try again" in line for line in said) == (tried == "again")
    monkeypatch.undo()
    for word in next(line for line in said if "to try again" in line).split():
        if word.startswith(str(tiny.runs.parent)):
            shutil.rmtree(word)
    assert any("the loss of D is not finite at step 7" in line for line in said)
    text = (tiny.results / "tables" / "tiny.md").read_text()
    assert "- demo-smoke-seed0: the loss of D is not finite at step 7" in text


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("reproduce table5 --data-root /home/me/data --runs=/x --scale cpu",
         "reproduce table5 --data-root DIR --runs DIR --scale cpu"),
        ("run ffhq_stylegan2 --out '/my disk/runs/ffhq-seed0' --data_root /x --seed 0",
         "run ffhq_stylegan2 --out DIR --data_root DIR --seed 0"),
    ],
)  # fmt: skip
def test_no_place_of_this_machine_is_kept(tmp_path, command, kept):
    run = RunDir(tmp_path)
    run.provenance.write_text(json.dumps({"command": command}))
    assert store.provenance_of(run)["command"] == kept


@pytest.mark.slow
def test_what_is_half_kept_is_no_stored_run(tiny, monkeypatch):
    """Nor does it stop those that read the others."""
    tiny(rows=("plain",), columns=("LDRV",))
    run = RunDir(tiny.runs / "demo-smoke-seed0")
    monkeypatch.setattr(store, "write_lines", lambda path, lines: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.keep(run, tiny.results / "measured" / "demo-smoke-seed1")
    assert len(Shelf(tiny.results).runs) == 1


@pytest.mark.slow
def test_a_table_that_has_lost_its_runs_is_written_anew(tiny, monkeypatch):
    monkeypatch.setitem(TABLES, "tiny", TINY)
    tiny(rows=("plain",), columns=("LDRV",))
    shutil.rmtree(tiny.results / "measured")
    write_index(tiny.results)
    assert read_json(tiny.results / "tables" / "tiny.json")["scales"] == {}


def test_numbers_as_they_are_told():
    told = " ".join(number(x) for x in (26.9, 0.838, 0.0012, 0, 1))
    assert told == "26.90 0.838 0.0012 0 1.00"
    assert spread(0.8381, 0.0331) == "0.838 ± 0.033" and spread(19.23, None) == "19.23"
    cell = {"n": 0, "paper_text": Number.of("0.224±0.020").text}
    assert cell_text(cell) == "not measured; paper 0.224 ± 0.020"
    mine = {"n": 3, "mean": 0.5, "deviation": 0.1, "paper_text": "", "warnings": ["D has won"]}
    assert cell_text(mine) == "0.500 ± 0.100 (3) !"


def test_a_page_of_nothing_shows_the_papers_numbers(tmp_path):
    table = TABLES["table3"]
    text = page(table_json(table, Shelf(tmp_path)), table)
    assert "Nothing of it has been measured yet" in text
    assert text.count("not measured; paper") == 9 and "11.89 ± 0.21" in text


def test_rows_without_any_number_are_named_below_the_table():
    def cell(row: str, column: str, n: int, paper: str = "") -> dict[str, object]:
        return {"row": row, "column": column, "n": n, "mean": 0.0, "deviation": 0.0,
                "paper_text": paper}  # fmt: skip

    cells = [cell("c", "x", 0), cell("b", "x", 0, "0.5"), cell("a", "x", 0), cell("d", "x", 0),
             cell("b", "y", 0), cell("a", "y", 2)]  # fmt: skip
    assert markdown(cells) == [
        "| | x | y |",
        "| --- | --- | --- |",
        "| b | not measured; paper 0.5 | not measured |",
        "| a | not measured | 0 ± 0 (2) |",
        "",
        "Not measured: c; d.",
    ]


def test_further_numbers_are_of_the_minor_group():
    table = replace(TABLES["table5"], also=(Also("share", "group_share"),))
    cells = also_cells(table, table.also[0])
    assert {c.group for c in cells} == {MINOR["colored_mnist"], MINOR["mnist_fmnist"]}
    assert all(c.paper is None for c in cells)


@pytest.mark.parametrize(
    ("places", "titles", "rows", "columns"),
    [
        (["plain 99 %", "ours 99 %"], ["99 %"], {"plain", "ours"}, {"share", "LDRV"}),
        (["plain 99 %", "plain 95 %"], [""], {"share", "LDRV"}, {"99 %", "95 %"}),
        (["plain 99 %", "ours 99 %", "plain 95 %"], ["99 %"], {"plain", "ours"},
         {"share", "LDRV"}),
    ],
)  # fmt: skip
def test_further_numbers_are_a_table_for_each_column(places, titles, rows, columns):
    """What they are is a column, or a row where there is only one; the first place is measured."""
    split = [place.split(" ", 1) for place in places]
    cells = [{"part": part, "row": row, "column": column, "n": int(place == 0)}
             for part in ("", "share", "LDRV")
             for place, (row, column) in enumerate(split)]  # fmt: skip
    found = further(cells)
    assert list(found) == titles
    assert {x["row"] for x in found[titles[0]]} == rows
    assert {x["column"] for x in found[titles[0]]} == columns
    assert further([{**x, "n": 0} for x in cells]) == {}


# --- figures -------------------------------------------------------------------------------------

PICTURE = Table(
    "picture",
    "panels of the demo",
    grid(
        [Part("demo", "demo", arm="phase1")],
        [*(Part(kind, metric=kind) for kind in ("grid", "highest", "intensity", "ldr", "ranks")),
         Part("LDRV", metric="lowest", group="k=inf"),
         Part("later", metric="grid", arm="weighted")],
    ),
)  # fmt: skip


@pytest.mark.slow
def test_a_sheet_of_panels(tiny, monkeypatch):
    monkeypatch.setitem(BOOKS, "picture", PICTURE)
    columns = ("grid", "highest", "intensity", "ldr", "ranks", "LDRV")
    where = {"runs": tiny.runs, "results": tiny.results, "say": lambda text: None}
    path = reproduce(Request("picture", "smoke", columns=columns), **where)
    assert path == tiny.results / "figures" / "picture-smoke-seed0.png"
    with Image.open(path) as picture:
        pixels = np.asarray(picture)
    panels = [pixels[22:302, 130 + 292 * i : 410 + 292 * i] for i in range(6)]
    assert all(panel.std() > 5 for panel in panels)  # something is drawn in each
    assert not np.array_equal(panels[1], panels[5]) and not np.array_equal(panels[3], panels[4])
    # Panels are kept beside the run's numbers: the sheet is drawn anew when the run is gone.
    shutil.rmtree(tiny.runs)
    path.unlink()
    with pytest.raises(UserError, match="none of the 1 runs"):
        reproduce(Request("picture", "smoke", columns=columns), **where)
    with Image.open(path) as picture:
        assert np.array_equal(np.asarray(picture), pixels)


def test_a_row_of_which_nothing_is_measured_is_a_line():
    rows = [Part(name, "demo", arm="plain") for name in ("made", "not yet")]
    cells = grid(rows, [Part("images", metric="grid")])
    made = Image.new("RGB", (8, 8))
    picture = sheet(cells, lambda cell: made if cell.row == "made" else None)
    assert SIDE < picture.height < 2 * SIDE
    assert sheet(cells, lambda cell: None) is None  # nothing to write


def test_names_of_three_lines_stay_apart_from_their_neighbours():
    rows = [Part(f"Colored MNIST {x} %, eval mode", "demo", arm="plain") for x in (90, 95, 99)]
    cells = grid(rows, [Part("images", metric="grid")])
    made = Image.new("RGB", (8, 8))
    picture = sheet(cells, lambda cell: made if cell.row == rows[2].name else None)
    names = np.asarray(picture.crop((0, TITLE, 130, TITLE + 2 * LINE + MARGIN)))
    blank = (names == 255).all(axis=(1, 2))
    assert not blank[:LINE].all() and not blank[-LINE:].all()
    assert blank[LINE : LINE + MARGIN].all()


# --- the command line ----------------------------------------------------------------------------


def test_without_a_name_it_lists_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cli.main(["reproduce"])
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} >= {*TABLES, *FIGURES, "figure2", "tableA1"}
    assert all("not measured" in x or "not numbers" in x for x in lines)


def test_what_is_measured_stands_below_the_name(capsys):
    results = Path(__file__).parent.parent / "results"
    cli.main(["reproduce", "--results", str(results)])
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("table5"))
    assert "cells" not in lines[at]
    assert lines[at + 1].startswith("    ") and "cpu: " in lines[at + 1]


def test_what_the_command_line_asks_for(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("diagan.reproduce.reproduce", lambda r, **how: asked.append((r, how)))
    monkeypatch.setenv("DIAGAN_RUNS", str(tmp_path / "r"))
    monkeypatch.setenv("DIAGAN_DATA", "/data")
    cli.main(["reproduce", "table5", "--scale", "cpu", "--time-left", "150m", "--seeds", "0", "2",
              "--rows", "Dia-GAN", "Top-k", "--quick"])  # fmt: skip
    request, how = asked[0]
    rows = ("Dia-GAN", "Top-k")
    assert request == Request(
        "table5", "cpu", (0, 2), rows, (), 9000.0, only_plan=False, quick=True
    )
    assert (how["runs"], how["data_root"]) == (tmp_path / "r", "/data")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("reproduce table9", "there is no table or figure 'table9'"),
        ("reproduce table5 --time-left soon", "--time-left soon: expected a time such as 90s"),
        ("reproduce table5 --columns nothing", "--columns nothing: there is none"),
        ("reproduce table5 --seeds -1", "--seeds are numbers from 0 on"),
        ("reproduce Figure2", "figure2 has a script of its own: python results/gaussians25.py"),
        ("reproduce tableA1", "tableA1 has no numbers to measure: it is the network"),
    ],
)
def test_mistakes_are_one_line(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        cli.main(words.split())
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_many_processes_are_refused(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "table3"])
    assert "one process" in capsys.readouterr().err


def test_every_experiment_of_the_paper_is_in_a_table_or_a_figure():
    used = {cell.variant.experiment for table in BOOKS.values() for cell in table.cells}
    scripts = {"demo", "gaussians25", "drawn_faces"}  # Figure 2, and the like of Table 6
    unused = set(EXPERIMENTS) - used - scripts
    assert unused == set()
