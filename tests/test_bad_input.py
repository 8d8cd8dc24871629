"""Whatever is wrong is told in one sentence, with exit code 2, and nothing is written."""

import json
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from tiny import POINTS

from diagan import WeightedSampler, WeightedStream, cli
from diagan import config as configs
from diagan.checkpoint import FORMAT
from diagan.errors import UserError

Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """The sentence of a command that must fail."""

    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as left:
            cli.main(list(words))
        told = capsys.readouterr()
        assert left.value.code == 2
        assert told.err.startswith("diagan: ")
        assert told.err.endswith("\n")
        assert told.err.count("\n") == 1, told.err
        assert "Traceback" not in told.out + told.err
        return told.err.removeprefix("diagan: ").strip()

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that we stand in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every name below a folder, with its content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


# --- the words of a command ----------------------------------------------------------------------

WORDS = {
    "rnu": "there is no verb 'rnu'; did you mean run?",
    "frobnicate": "there is no verb 'frobnicate'; expected one of demo, run, data check",
    "--verbose": "there is no verb '--verbose'; expected one of",
    "diagnose": "there is no verb 'diagnose'; did you mean diagnose run?",
    "run": "give an EXPERIMENT (`diagan list`), --data PATH, or --config FILE",
    "run gausian_3": "there is no experiment 'gausian_3'; did you mean gaussian_3?",
    "run imagenet": "there is no experiment 'imagenet'; expected one of demo, gaussian_3",
    "run gaussian_3 --stps 5": "there is no flag --stps; did you mean --steps?",
    "run gaussian_3 --optim.betsa 0.1 0.2": "there is no flag --optim.betsa; did you mean",
    "run gaussian_3 --stesp 5 --foo 3": "there is no flag --stesp; did you mean --steps?",
    "run gaussian_3 gaussian_2": "gaussian_2 was not expected here",
    "run gaussian_3 --steps": "--steps: a value is missing",
    "run gaussian_3 --steps many": "--steps many: expected a whole number",
    "run gaussian_3 --steps 2.5": "--steps 2.5: expected a whole number",
    "run gaussian_3 --steps 0": "--steps 0: expected at least 1",
    "run gaussian_3 --batch-size 1": "--batch-size 1: expected at least 2",
    "run gaussian_3 --phase1-share 0": "--phase1-share 0.0: expected over 0, at most 1",
    "run gaussian_3 --optim.lr -1": "--optim.lr -1.0: expected a positive number",
    "run gaussian_3 --optim.lr fast": "--optim.lr fast: expected a number",
    "run gaussian_3 --optim.lr nan": "--optim.lr nan: expected a positive number",
    "run gaussian_3 --optim.betas 0.5": "--optim.betas: a value is missing",
    "run gaussian_3 --k -1": "--k -1.0: expected 0 or more",
    "run gaussian_3 --k abc": "--k abc: expected {None}|FLOAT",
    "run gaussian_3 --ratio 0": "--ratio 0.0: expected at least 1",
    "run gaussian_3 --record.every 0": "--record.every 0: expected at least 1",
    "run gaussian_3 --record.every 2000": "--record.every 2000 leaves 1 records in a phase 1",
    "run gaussian_3 --precision float16": "--precision float16: expected one of ('auto', ",
    "run gaussian_3 --scale huge": "--scale huge: expected one of ('paper', 'cpu', 'smoke')",
    "run gaussian_3 --device gpu": "--device gpu: expected auto, cpu, cuda or mps",
    "run gaussian_3 --device cuda": "--device cuda: there is no CUDA device here",
    "run gaussian_3 --data.sigma -3": "--data.sigma -3.0: expected a positive number",
    "run gaussians25 --data.n 26": "--data.n 26: expected a multiple of 25",
    "run demo --data.n 13000 --device cpu": "--data.n 13000: expected at most 12,900",
    "run demo --data.size 20": "--data.size 20: expected a power of two from 16 to 1024",
    "run gaussian_3 --budget 30m": "--budget goes with --data",
    "run --data . --budget soon": "--budget soon: expected a time such as 90s, 30m or 2h",
    "run --data . --budget 0m": "--budget 0m: expected a time such as",
    "run --data . --budget -5m": "--budget -5m: expected a time such as",
    "run gaussian_3 --data .": "give one of EXPERIMENT, --data PATH and --config FILE",
    "run --data . --config a.json": "give one of EXPERIMENT, --data PATH and --config FILE",
    "run --data nowhere": "'nowhere' does not exist; expected a folder of images",
    "run --config nowhere.json": "cannot read nowhere.json: No such file or directory",
    "demo --scale paper": "--scale paper: expected one of ('cpu', 'smoke')",
    "evaluate": "give the folder of a RUN, or both --real DIR and --fake DIR",
    "evaluate run --real a --fake b": "give the folder of a RUN, or both --real DIR and --fake DIR",
    "evaluate --real a": "give the folder of a RUN, or both --real DIR and --fake DIR",
    "evaluate nowhere": "nowhere is not a run folder: it has no config.json",
    "evaluate --real nowhere --fake b": "nowhere does not exist; expected a folder of images",
    "evaluate nowhere --size 32": "--size goes with --real and --fake; a run has its own",
    "evaluate --real a --fake b --by score": "--arms and --by go with a RUN; of folders the sub-",
    "evaluate --real a --fake b --arms plain": "--arms and --by go with a RUN; of folders the sub-",
    "evaluate nowhere --n 0": "--n goes with the default metrics, at least 1",
    "evaluate nowhere --n 9 --metrics is9": "--n goes with the default metrics, at least 1",
    "evaluate nowhere --resize cubic": "--resize cubic: expected one of ('tf1', 'halfpixel')",
    "weights import nowhere.pth": "nowhere.pth is no weight file that diagan knows",
    "weights fetch resnet": "name resnet: expected one of ('inception', 'vgg16')",
    "diagnose checkpoint nowhere": "nowhere is not a run folder: it has no config.json",
    "diagnose checkpoint --discriminator a:b --data a --fake b --arm plain": "--arm goes",
    "run gaussian_3 --record.mode free --centre median": "--record.mode free keeps moments and no",
    "list all": "all was not expected here",
    "sample": "RUN is missing (The folder of a run)",
    "sample nowhere": "nowhere is not a run folder: it has no config.json",
    "sample nowhere --n 0": "--n 0: expected at least 1",
    "sample nowhere --arm best": "--arm best: expected one of ('auto', 'weighted', ",
    "report nowhere": "nowhere is not a run folder: it has no config.json",
    "diagnose run nowhere": "nowhere is not a run folder: it has no config.json",
    "diagnose run": "RUN is missing (The folder of a run)",
}


@pytest.mark.parametrize("words", WORDS)
def test_words(words: str, here: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert refused(*words.split()).startswith(WORDS[words])
    assert tree(here) == {}


@pytest.mark.parametrize("columns", ["30", "200"])
def test_a_narrow_terminal_changes_no_sentence(
    columns: str, here: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", columns)
    told = refused("run", "gaussian_3", "--stps", "5")
    assert told == "there is no flag --stps; did you mean --steps?"


# --- folders -------------------------------------------------------------------------------------


def empty(folder: Path) -> None:
    folder.mkdir()


def text_named_png(folder: Path) -> None:
    folder.mkdir()
    (folder / "photo.png").write_text("a thousand words")


def one_image(folder: Path) -> None:
    folder.mkdir()
    Image.new("RGB", (40, 40), "red").save(folder / "photo.png")


def no_image_names(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing to see")


def a_file(folder: Path) -> None:
    folder.write_text("not a folder")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (empty, "photos holds no images; expected files that end in .bmp, .gif"),
        (no_image_names, "photos holds no images; expected files that end in"),
        (text_named_png, "photos holds 0 readable images of 1 files; at least 10 are needed"),
        (one_image, "photos holds 1 readable images of 1 files; at least 10 are needed"),
        (a_file, "'photos' is a file; expected a folder of images"),
    ],
)
def test_folders(make: Callable[[Path], None], told: str, here: Path, refused: Refused):
    make(here / "photos")
    before = tree(here)
    assert refused("run", "--data", "photos", "--scale", "smoke").startswith(told)
    assert tree(here) == before


@pytest.mark.slow
def test_a_budget_that_is_too_small(here: Path, refused: Refused):
    (here / "photos").mkdir()
    for shade in range(12):
        Image.new("L", (32, 32), 20 * shade).save(here / "photos" / f"{shade}.png")
    before = tree(here)
    told = refused("run", "--data", "photos", "--scale", "smoke", "--budget", "0.001s")
    assert told.startswith("--budget: even 100 steps take about")
    assert tree(here) == before


@pytest.mark.slow
def test_too_few_sightings_in_a_folder_are_told_before_training(here: Path, refused: Refused):
    """Were told after all of phase 1."""
    (here / "photos").mkdir()
    for shade in range(200):
        Image.new("L", (16, 16), shade).save(here / "photos" / f"{shade}.png")
    words = "run --data photos --scale smoke --record.mode free --centre none --data.size 16 "
    told = refused(*words.split(), "--steps", "20", "--record.start", "5", "--batch-size", "4")
    assert told.startswith("--record.mode free sees each sample 0.")
    assert not (here / "runs").exists()


@pytest.mark.parametrize("out", ["taken", "taken/run"])
def test_an_out_that_cannot_be_a_folder(out: str, here: Path, refused: Refused):
    (here / "taken").write_text("a file")
    told = refused("run", "gaussian_3", "--scale", "smoke", "--out", out)
    assert told.startswith(f"cannot write {out}/provenance.json: ")
    assert tree(here) == {"taken": b"a file"}


# --- config files --------------------------------------------------------------------------------

CONFIGS = {
    "unknown key": ({"stepps": 5}, "config has no key 'stepps'; did you mean steps?"),
    "wrong type": ({"steps": "many"}, "config.steps: expected int, got 'many'"),
    "out of range": ({"steps": -1}, "--steps -1: expected at least 1"),
    "newer format": ({"format": 9}, "config.json has format 9; this diagan reads format 1"),
    "unknown kind": ({"data": {"kind": "imagenet"}}, "config.data: expected a kind of"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_config_files(name: str, here: Path, refused: Refused):
    change, told = CONFIGS[name]
    (here / "c.json").write_text(json.dumps(configs.to_json(POINTS) | change))
    before = tree(here)
    assert refused("run", "--config", "c.json").startswith(told)
    assert tree(here) == before


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"steps": ', "c.json is not valid JSON"),
        (b"", "c.json is not valid JSON"),
        (b"[1, 2]", "c.json holds no config: expected a JSON object"),
        (b"\x89PNG\xff\xfe", "cannot read c.json: it is not a text file"),
    ],
)
def test_files_that_are_no_config(content: bytes, told: str, here: Path, refused: Refused):
    (here / "c.json").write_bytes(content)
    assert refused("run", "--config", "c.json").startswith(told)
    assert list(tree(here)) == ["c.json"]


# --- run folders that something has happened to ---------------------------------------------------


@pytest.fixture
def run(finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a whole tiny run."""
    monkeypatch.setattr("diagan.pipeline.report", lambda run: None)
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def go_on(run: Path) -> tuple[str, ...]:
    """The command that trains the last two steps of the weighted stage again."""
    shutil.rmtree(run / "checkpoints/weighted-000012", ignore_errors=True)
    return "run", "--config", str(run / "config.json"), "--out", str(run)


def test_a_record_with_a_nan(run: Path, refused: Refused):
    values = np.load(run / "record/000004.npy")
    values[[3, 7]] = np.nan
    np.save(run / "record/000004.npy", values)
    before = tree(run)
    told = refused("diagnose", "run", str(run))
    assert "record/000004.npy holds 2 values that are NaN or infinite" in told
    assert tree(run) == before


def test_a_record_whose_length_is_not_the_dataset_s(run: Path, refused: Refused):
    np.save(run / "record/000004.npy", np.zeros(47, np.float32))
    before = tree(run)
    told = refused("diagnose", "run", str(run))
    assert "record/000004.npy has shape (47,), but the dataset has 48 samples" in told
    assert tree(run) == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n": 47}, "is of 47 samples, but the dataset has 48"),
        ({"fingerprint": "0" * 16}, "is of other samples than the dataset holds now"),
        ({"format": 3}, "has record format 3; this diagan reads 1"),
    ],
)
def test_a_record_of_something_else(run: Path, refused: Refused, change: dict, told: str):
    meta = run / "record/meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | change))
    assert told in refused("diagnose", "run", str(run))


def test_no_records(run: Path, refused: Refused):
    for file in (run / "record").glob("*.npy"):
        file.unlink()
    assert refused("diagnose", "run", str(run)).startswith("there are 0 records")


@pytest.mark.parametrize("flag", ["--ratio", "--floor", "--exponent"])
def test_a_diagnosis_out_of_range(run: Path, refused: Refused, flag: str):
    before = tree(run)
    assert refused("diagnose", "run", str(run), flag, "0").startswith(f"{flag} 0.0: expected")
    assert tree(run) == before


@pytest.mark.slow
def test_weights_that_sum_to_zero(run: Path):
    with pytest.raises(UserError, match="all 5 weights are zero"):
        WeightedStream(np.zeros(5), seed=0)
    with pytest.raises(UserError, match="all 5 weights are zero"):
        WeightedSampler(torch.zeros(5))
    # In a run they are made anew from the record before training goes on.
    weights = pq.read_table(run / "samples.parquet")
    place = weights.column_names.index("weight")
    zero = weights.set_column(place, "weight", pa.array(np.zeros(len(weights))))
    pq.write_table(zero, run / "samples.parquet")
    cli.main(list(go_on(run)))
    assert pq.read_table(run / "samples.parquet").equals(weights)


def test_a_checkpoint_of_another_network(run: Path, refused: Refused):
    stored = json.loads((run / "config.json").read_text())
    stored["network"]["width"] = 0.25
    (run / "config.json").write_text(json.dumps(stored))
    told = "holds another network than this config builds: size mismatch for"
    assert told in refused("sample", str(run), "--out", str(run.parent / "out"))
    assert told in refused(*go_on(run))
    assert not (run.parent / "out").exists()


def test_a_checkpoint_of_a_newer_format(run: Path, refused: Refused):
    for state in run.glob("checkpoints/*/state.json"):
        state.write_text(json.dumps(json.loads(state.read_text()) | {"format": FORMAT + 1}))
    told = f"has checkpoint format {FORMAT + 1}; this diagan reads {FORMAT}"
    assert told in refused("sample", str(run), "--out", str(run.parent / "out"))
    assert told in refused(*go_on(run))


@pytest.mark.parametrize("left", [0, 4, 1000])
def test_a_truncated_checkpoint(run: Path, refused: Refused, left: int):
    command = go_on(run)
    file = run / "checkpoints/weighted-000010/D.safetensors"
    file.write_bytes(file.read_bytes()[:left])
    for words in (("sample", str(run), "--out", str(run.parent / "out")), command):
        told = refused(*words)
        assert "checkpoints/weighted-000010 cannot be read" in told
        assert "delete this folder" in told
    assert not (run.parent / "out").exists()


def test_a_checkpoint_with_a_file_missing(run: Path, refused: Refused):
    command = go_on(run)
    (run / "checkpoints/weighted-000010/D.optim.safetensors").unlink()
    told = refused(*command)
    assert "weighted-000010 has no D.optim.safetensors; delete this folder" in told


@pytest.mark.slow
def test_the_advice_for_a_bad_checkpoint_is_good(run: Path, finished_run: Path):
    """Deleted, the run goes on from the one before, to the same end."""
    command = go_on(run)
    shutil.rmtree(run / "checkpoints/weighted-000010")
    cli.main(list(command))
    name = "checkpoints/weighted-000012/critic.optim.safetensors"
    assert (run / name).read_bytes() == (finished_run / name).read_bytes()


def test_a_run_without_the_asked_arm(run: Path, refused: Refused):
    for folder in run.glob("checkpoints/plain-*"):
        shutil.rmtree(folder)
    told = refused("sample", str(run), "--arm", "plain", "--out", str(run.parent / "out"))
    assert told.endswith("has no checkpoint of plain yet; train it first")


def test_samples_where_a_file_is(run: Path, refused: Refused):
    (run.parent / "out").write_text("a file")
    told = refused("sample", str(run), "--n", "2", "--no-drs", "--out", str(run.parent / "out"))
    assert told == f"{run.parent / 'out'} is there already and is not empty; choose another --out"


def test_a_grid_goes_over_no_picture(run: Path, refused: Refused):
    (run.parent / "out.png").write_text("precious")
    told = refused("sample", str(run), "--n", "2", "--no-drs", "--out", str(run.parent / "out"))
    assert told.startswith(f"{run.parent / 'out.png'} is there already, where the grid would go")
    assert not (run.parent / "out").exists()


def test_a_page_for_several_goes_over_nothing(run: Path, refused: Refused):
    place = run.parent / "page.json"
    place.write_text("precious")
    both = ("report", str(run), str(run), "--out")
    assert refused(*both, str(place.with_suffix(".html"))).startswith(f"{place} is there already")
    assert refused(*both, str(place)).endswith("expected the name of an .html file")
    assert {path.name for path in run.parent.iterdir()} == {run.name, "page.json"}


@pytest.mark.parametrize("out", [".", "runs/x", "deeper/in/there"])
def test_nothing_is_written_among_the_images(here: Path, refused: Refused, out: str):
    for i in range(12):
        Image.new("RGB", (32, 32), (i, 0, 0)).save(here / f"{i}.png")
    before = tree(here)
    told = refused("run", "--data", ".", "--out", out)
    assert told.startswith(f"{out} lies in ., among the images that are read")
    for verb in ("filter", "diagnose folders"):
        told = refused(*verb.split(), "--real", str(here), "--fake", ".", "--out", "kept")
        assert told.startswith("kept lies in ")
    assert tree(here) == before


def test_a_folder_is_no_experiment(here: Path, refused: Refused):
    (here / "my photos").mkdir()
    assert refused("run", "my photos").endswith("no experiment: diagan run --data 'my photos'")


def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(here: Path, refused: Refused):
    (here / "data").mkdir()
    assert refused("data", "check", "data/photo").startswith("'data/photo' does not exist")


def test_settings_of_the_score_are_looked_at_before_any_work(here: Path, refused: Refused):
    folders = ("diagnose", "folders", "--real", "a", "--fake", "b")
    assert refused(*folders, "--floor", "-1") == "--floor -1.0: expected a positive number"
    assert refused("diagnose", "record", "a", "--ratio", "0.5").startswith("--ratio 0.5: expected")


def test_rows_of_a_file_that_says_itself(here: Path, refused: Refused):
    np.savez("x.npz", logits=np.zeros((20, 15)))
    told = refused("diagnose", "record", "x.npz", "--rows", "samples")
    assert told.startswith("--rows samples is for a .npy")


def test_other_settings_for_a_run_that_is_there(run: Path, refused: Refused):
    before = tree(run)
    told = refused("run", "--config", str(run / "config.json"), "--out", str(run), "--seed", "5")
    assert told.startswith(f"{run} holds a run with --seed 0, not 5; choose another --out")
    assert tree(run) == before


# --- a full disk ---------------------------------------------------------------------------------


@contextmanager
def no_file_larger_than(n_bytes: int) -> Iterator[None]:
    """The system itself refuses to write more, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
def test_a_full_disk_while_a_checkpoint_is_written(run: Path, finished_run: Path, refused: Refused):
    command = go_on(run)
    old = {path: path.read_bytes() for path in run.glob("checkpoints/*/*")}
    largest = max(len(content) for content in old.values())
    others = [p for p in run.rglob("*") if p.is_file() and p not in old]
    kept = [p for p in others if p.name not in ("report.html", "thumbnails.npz")]
    assert max(p.stat().st_size for p in kept) < largest // 2
    with no_file_larger_than(largest // 2):
        told = refused(*command)
    assert told.startswith("cannot write the checkpoint of step 12: ")
    assert told.endswith("free some disk and run the same command again, it goes on from the "
                         "checkpoint before")  # fmt: skip
    assert {path: path.read_bytes() for path in run.glob("checkpoints/*/*")} == old
    assert list(run.rglob(".*")) == []
    cli.main(list(command))
    name = "checkpoints/weighted-000012/critic.optim.safetensors"
    assert (run / name).read_bytes() == (finished_run / name).read_bytes()
