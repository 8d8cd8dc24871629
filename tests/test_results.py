"""What results/ says: every number comes from a stored file, and the pages are what these give."""

import importlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from diagan import config as configs
from diagan.experiments.tables import TABLES
from diagan.experiments.variants import Variant
from diagan.reproduce import store
from diagan.reproduce.index import index, write_index
from diagan.reproduce.plan import BOOKS, Job
from diagan.reproduce.render import number, page, table_json
from diagan.reproduce.shelf import Shelf

pytestmark = pytest.mark.slow

RESULTS = Path(__file__).parents[1] / "results"
PAGES = sorted((RESULTS / "tables").glob("*.md"))
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def numbers_in(text: str) -> list[str]:
    return NUMBER.findall(text)


def unsourced(text: str, results: Path) -> list[str]:
    """The numbers of an index that no stored file has: by row, in the files that the row links to.

    What a table is called is the paper's word, and not a measurement; a row of the paper's part
    says how many cells of its table are measured, and with which seeds.
    """
    found: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if line.startswith("| ") and cells[0] in BOOKS:
            found += [n for n in numbers_in(cells[2]) if n not in counts(results, cells[0])]
        elif line.startswith("| ") and "](" in line:
            files = [results / name for name in re.findall(r"\]\((.*?)\)", line)]
            files += [results / name for name in re.findall(r"results/(\w+\.py)", line)]
            known = " ".join(f.read_text() for f in files if f.suffix != ".png" and f.exists())
            told = re.sub(r"\]\(.*?\)|\[.*?(?=\])", "", line)  # without the names of files
            found += [n for n in numbers_in(told) if n not in numbers_in(known)]
        elif line.startswith("Estimates"):
            ratios = Shelf(results).ratios()
            there = {str(len(ratios)), f"{np.median(list(ratios.values())):.2f}"}
            found += [n for n in numbers_in(line) if n not in there]
        elif not line.startswith("|"):
            found += numbers_in(line)
    return found


def counts(results: Path, name: str) -> set[str]:
    """Counted anew in the stored table: measured cells, all cells, and the seeds of these and of
    our further numbers."""
    file = results / "tables" / f"{name}.json"
    if not file.exists():
        return set()
    cells = json.loads(file.read_text())["cells"]
    known = {seed for c in cells for seed in c["by_seed"]}
    for scale in {c["scale"] for c in cells}:
        main = [c for c in cells if c["scale"] == scale and not c["part"]]
        n_smaller = sum(c["smaller"] for c in main)
        n_whole = sum(bool(c["by_seed"]) for c in main) - n_smaller
        known |= {str(len(main)), str(n_whole), *([str(n_smaller)] if n_smaller else [])}
    return known


# --- what is stored now --------------------------------------------------------------------------


def test_the_index_is_what_the_files_give():
    text = (RESULTS / "README.md").read_text()
    assert text == index(Shelf(RESULTS)), "run `diagan reproduce --index`"


def test_every_number_of_the_index_comes_from_a_stored_file():
    assert unsourced((RESULTS / "README.md").read_text(), RESULTS) == []


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_what_the_stored_runs_give(name):
    """A page, and every mean on it, again from measured/*/metrics.jsonl."""
    found, file = table_json(TABLES[name], Shelf(RESULTS)), RESULTS / "tables" / f"{name}.json"
    assert file.exists() or not found["scales"], "run `diagan reproduce --index`"
    if file.exists():
        stored = json.loads(file.read_text())
        assert stored == json.loads(json.dumps(found)), "run `diagan reproduce --index`"
        assert file.with_suffix(".md").read_text() == page(stored, TABLES[name])
        assert_values_are_stored(stored, RESULTS)


SCRIPTS = {"demo": "demo_seeds"}  # where it is not called as its page
WITHOUT = {"README", "benchmarks", "quality"}  # by commands of their own


@pytest.mark.parametrize("name", sorted({file.stem for file in RESULTS.glob("*.md")} - WITHOUT))
def test_every_page_is_what_its_script_makes_of_the_stored_numbers(name, monkeypatch):
    monkeypatch.syspath_prepend(RESULTS)
    stored = json.loads((RESULTS / f"{name}.json").read_text())
    made = importlib.import_module(SCRIPTS.get(name, name)).page(stored)
    assert made == (RESULTS / f"{name}.md").read_text()


def assert_values_are_stored(table: dict, results: Path) -> None:
    for cell in table["cells"]:
        suffix = "" if cell["scale"] == "paper" else f"-{cell['scale']}"
        for seed, value in cell["by_seed"].items():
            run = results / "measured" / f"{cell['run']}{suffix}-seed{seed}" / "metrics.jsonl"
            assert value in [json.loads(line)["value"] for line in run.read_text().split("\n")[:-1]]
        if cell["by_seed"]:
            assert cell["mean"] == pytest.approx(np.mean(list(cell["by_seed"].values())))


def test_no_file_names_a_place_of_some_machine():
    for file in RESULTS.rglob("*"):
        if file.suffix in (".md", ".json", ".jsonl"):
            found = re.findall(r"(?:/home/|/root/|/work/|/tmp/|C:\\)\S*", file.read_text())
            assert not found, (file, found)


# --- the checks can fail -------------------------------------------------------------------------


def made_up_run(results: Path, job: Job, value: float, protocol: str) -> None:
    folder = results / "measured" / job.name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(configs.to_json(job.config)))
    about = {"precision": "float32", "device": "cpu", "started": "2026-01-02 03:04:05",
             "estimate": {"seconds": 10.0}, "seconds": 11.0 + job.seed}  # fmt: skip
    (folder / "provenance.json").write_text(json.dumps(about))
    line = {"metric": "reconstruction_error", "protocol": protocol, "value": value,
            "group": "green", "arm": "plain", "drs": False, "extractor": "pixels",
            "comparable_with_published": False}  # fmt: skip
    store.write_lines(folder / "metrics.jsonl", [line])


@pytest.fixture
def some_results(tmp_path: Path) -> Path:
    """Two stored runs of table5 at smoke scale, made up, and a page by a script."""
    for seed, value in ((0, 0.75), (1, 0.85)):
        job = Job(Variant("colored_mnist_99"), "smoke", seed)
        made_up_run(tmp_path, job, value, "re128_epochs1")
    script = {
        "command": "python results/x.py --seeds 7",
        "date": "2026-01-02",
        "scale": "123 steps",
    }
    (tmp_path / "x.json").write_text(json.dumps(script))
    (tmp_path / "x.md").write_text("# Of 45 things\n\n0.5\n")
    write_index(tmp_path)
    return tmp_path


def test_an_index_of_made_up_runs(some_results):
    text = (some_results / "README.md").read_text()
    assert "smoke: 1 of 42 cells, seeds 0 1" in text
    assert "| Of 45 things | `python results/x.py --seeds 7` | 123 steps, 2026-01-02 |" in text
    assert "over 2 stored runs is 1.15" in text
    assert unsourced(text, some_results) == []
    assert text == index(Shelf(some_results))  # the same files, the same page
    told = (some_results / "tables" / "table5.md").read_text()
    assert f"{number(0.8)} ± 0.071 (2); paper 0.838 ± 0.033" in told
    assert "2026-01-02" in told and "published FID" not in told  # no FID is in it


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1 of 42 cells", "5 of 42 cells"),
        ("seeds 0 1", "seeds 0 1 2"),
        ("Of 45 things", "Of 46 things"),
        ("--seeds 7", "--seeds 8"),
        ("is 1.15", "is 1.05"),
        ("A file that is not here", "The 3 files that are not here"),
    ],
)
def test_a_number_from_nowhere_is_found(some_results, old, new):
    text = (some_results / "README.md").read_text()
    assert old in text
    assert unsourced(text.replace(old, new), some_results) != []


def test_a_table_with_a_changed_number_is_found(some_results):
    table = json.loads((some_results / "tables" / "table5.json").read_text())
    assert_values_are_stored(table, some_results)
    cell = next(c for c in table["cells"] if c["by_seed"])
    cell["by_seed"]["0"] = 0.2
    with pytest.raises(AssertionError):
        assert_values_are_stored(table, some_results)


def test_a_smaller_protocol_stands_in_for_the_papers_and_is_marked(tmp_path):
    job = Job(Variant("colored_mnist_99"), "paper", 0)
    made_up_run(tmp_path, job, 0.75, "re10k_epochs10")
    told = page(table_json(TABLES["table5"], Shelf(tmp_path)), TABLES["table5"])
    assert "0.750 (1) †; paper 0.838 ± 0.033" in told
    assert "`diagan evaluate RUN --metrics re10k_epochs10`" in told
    assert "measured: 0 of 42 cells and 1 more by a smaller protocol" in told
    lines = store.read_lines(tmp_path / "measured" / job.name / "metrics.jsonl")
    whole = lines[0] | {"protocol": "re50k_epochs50", "value": 0.5}
    store.write_lines(tmp_path / "measured" / job.name / "metrics.jsonl", [*lines, whole])
    told = page(table_json(TABLES["table5"], Shelf(tmp_path)), TABLES["table5"])
    assert "0.500 (1); paper 0.838" in told and "†" not in told


def test_numbers_of_other_settings_are_not_taken(some_results):
    """A stored run whose config is no longer the experiment's fills no cell."""
    file = next((some_results / "measured").glob("*seed1")) / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"batch_size": 8}))
    found = table_json(TABLES["table5"], Shelf(some_results))
    assert found["scales"]["smoke"]["seeds"] == [0]
    shutil.rmtree(some_results / "measured")
    assert table_json(TABLES["table5"], Shelf(some_results))["scales"] == {}
