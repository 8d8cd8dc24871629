"""Real processes, really killed: whatever the moment, the same command goes on to the same end.

Importing torch takes seconds, so one process imports everything and forks a child for each run
(`serve`, when this file is run as a script); the child dies at the n-th call of a chosen place.
"""

import contextlib
import importlib
import io
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny import DIGITS

from diagan import pipeline
from diagan.config import Config, ImageFolder, Optim, Score
from diagan.errors import UserError

pytestmark = pytest.mark.slow

FEW = [
    *("--steps", "60", "--phase1-share", "0.5", "--checkpoint-every", "7", "--record.every", "3"),
    *("--record.window", "8", "--log-every", "4", "--grid-every", "10", "--n-evaluate", "64"),
    *("--device", "cpu"),
]
COMMANDS = {
    "mlp": ["run", "gaussian_3", "--scale", "smoke", *FEW],
    "dcgan_bfloat16": ["run", "demo", "--scale", "smoke", "--precision", "bfloat16", *FEW],
}
# In the order in which a run comes to them, with the range that the n-th call is drawn from: 20
# moments for each of the two networks, of which 5 inside a checkpoint write (a safetensors file
# half written, or a folder half pruned), 3 inside a record, 5 at the borders of the phases.
MOMENTS = (
    ("step", 1, 12),
    ("checkpoint", 1, 4),
    ("record", 1, 4),
    ("log", 1, 2),
    ("record", 1, 6),
    ("checkpoint", 1, 4),
    ("record", 1, 2),
    ("prune", 1, 5),
    ("phase 1 is over", 1, 1),
    ("diagnosis", 1, 1),
    ("diagnosed", 1, 1),
    ("stage", 1, 1),  # plain begins
    ("step", 2, 20),
    ("checkpoint", 1, 8),
    ("cut", 1, 1),
    ("stage", 2, 2),  # weighted begins
    ("step", 2, 20),
    ("checkpoint", 1, 12),
    ("metrics", 1, 6),
    ("report", 1, 1),
)


# --- in the forked child -------------------------------------------------------------------------


def before(real: Callable, *args, **kwargs) -> None:
    pass


def after(real: Callable, *args, **kwargs) -> None:
    real(*args, **kwargs)


def half_a_file(real: Callable, content: object, path: Path) -> None:
    real(content, path)
    os.truncate(path, path.stat().st_size // 2)


def half_an_array(real: Callable, file: io.BufferedWriter, values: np.ndarray) -> None:
    whole = io.BytesIO()
    real(whole, values)
    file.write(whole.getvalue()[: whole.tell() // 2])
    file.flush()


def half_a_line(real: Callable, path: Path, obj: dict) -> None:
    text = json.dumps(obj)
    with path.open("a") as file:
        file.write(text[: len(text) // 2])


PLACES = {
    "step": ("diagan.train", "play_step", before),
    "checkpoint": ("diagan.checkpoint", "save_file", half_a_file),
    "prune": ("os", "unlink", after),  # as shutil.rmtree calls it
    "record": ("numpy", "save", half_an_array),
    "log": ("diagan.observers", "append_line", half_a_line),
    "phase 1 is over": ("diagan.pipeline", "diagnose_run", before),
    "diagnosis": ("pyarrow.parquet", "write_table", half_a_file),
    "diagnosed": ("diagan.diagnosis", "write_json", before),
    "stage": ("diagan.stages", "restore", before),
    "cut": ("diagan.stages", "cut_lines", after),
    "metrics": ("diagan.evaluate", "append_line", half_a_line),
    "report": ("diagan.pipeline", "report", before),
}


def be_hit(moment: str, nth: int, signals: list[int]) -> None:
    """From now on the n-th call of a place, half done, sends signals to this very process."""
    module, name, deed = PLACES[moment]
    home = importlib.import_module(module)
    real, calls = getattr(home, name), itertools.count(1)

    def watched(*args, **kwargs):
        counts = moment != "prune" or "dir_fd" in kwargs
        if counts and next(calls) == nth:
            deed(real, *args, **kwargs)
            for number in signals:
                os.kill(os.getpid(), number)
        return real(*args, **kwargs)

    setattr(home, name, watched)


def child(request: dict, said: str) -> int:
    from diagan import cli, pipeline

    target = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(target, 1)
    os.dup2(target, 2)
    pipeline.report = lambda run: None  # as long as all of the rest, and not compared
    if request["moment"]:
        be_hit(request["moment"], request["nth"], request["signals"])
    try:
        cli.main(request["argv"])
        return 0
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def serve() -> None:
    """A request a line: fork, wait or kill after a while, and answer how it ended."""
    for module in ("diagan.pipeline", "diagan.report", "torch.utils.tensorboard"):
        importlib.import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os._exit(child(request, request["said"]))
        if request["after"] is not None:
            time.sleep(request["after"])
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"code": code, "seconds": time.monotonic() - began}), flush=True)


# --- in the test ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class End:
    code: int  # of the process; -9: killed
    said: str
    seconds: float


class Nursery:
    """The process that forks runs."""

    def __init__(self, folder: Path) -> None:
        self.said = folder / "said.txt"
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | single,
        )  # fmt: skip

    def run(
        self, argv: list[str], moment: str = "", nth: int = 1,
        signals: tuple[int, ...] = (signal.SIGKILL,), after: float | None = None,
    ) -> End:  # fmt: skip
        request = {"argv": argv, "moment": moment, "nth": nth, "signals": signals,
                   "after": after, "said": str(self.said)}  # fmt: skip
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return End(answer["code"], self.said.read_text(), answer["seconds"])


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.process.stdin.close()
    assert made.process.wait(timeout=30) == 0


@pytest.fixture(scope="module", params=COMMANDS)
def whole(
    request: pytest.FixtureRequest, nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], Path, float]:
    """A command, the folder that it fills when nothing happens, and how long that takes."""
    folder = tmp_path_factory.mktemp(request.param) / "run"
    end = nursery.run([*COMMANDS[request.param], "--out", str(folder)])
    assert end.code == 0, end.said
    return COMMANDS[request.param], folder, end.seconds


def contents(run: Path) -> dict[str, object]:
    """All that a run leaves behind, by name, hidden names too; without clocks."""
    files = [path for path in run.rglob("*") if path.is_file()]
    names = {path.relative_to(run).as_posix(): path for path in files}
    found: dict[str, object] = {
        name: path.read_bytes()
        for name, path in names.items()
        if name not in ("provenance.json", "log.jsonl") and not name.startswith("tensorboard/")
    }
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    clocks = ("time", "steps_per_second")
    found["log.jsonl"] = [{k: v for k, v in line.items() if k not in clocks} for line in lines]
    return found


def curves(run: Path) -> dict[str, list[tuple[int, float]]]:
    """TensorBoard's points, as it shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    points = {}
    for stage in (run / "tensorboard").iterdir():
        events = EventAccumulator(str(stage), size_guidance={"scalars": 0}).Reload()
        for tag in events.Tags()["scalars"]:
            points[f"{stage.name}/{tag}"] = [(e.step, e.value) for e in events.Scalars(tag)]
    return points


def assert_same_end(run: Path, reference: Path) -> None:
    """Weights, Adam, records, diagnosis, metrics, log, grids: bit for bit; and nothing else."""
    found, expected = contents(run), contents(reference)
    assert sorted(found) == sorted(expected)
    assert [name for name in found if found[name] != expected[name]] == []
    assert curves(run) == curves(reference)


def test_the_reference_is_not_empty(whole):
    _, reference, _ = whole
    found = contents(reference)
    for stage, step in (("phase1", 30), ("plain", 60), ("weighted", 60)):
        for name in ("G", "D", "G.optim", "D.optim"):
            assert f"checkpoints/{stage}-{step:06d}/{name}.safetensors" in found
    assert "checkpoints/weighted-000060/critic.optim.safetensors" in found
    assert {"record/000009.npy", "record/000030.heldout.npy", "samples.parquet"} < set(found)
    assert [line["step"] for line in found["log.jsonl"][:3]] == [4, 8, 12]
    assert curves(reference)["weighted/loss_critic"][-1][0] == 60


def test_kill_at_chosen_moments(whole, nursery: Nursery, tmp_path: Path):
    command, reference, _ = whole
    command = [*command, "--out", str(tmp_path / "run")]
    draw = random.Random(f"kill {command[1]}")
    for moment, low, high in MOMENTS:
        nth = draw.randint(low, high)
        end = nursery.run(command, moment, nth)
        assert end.code == -signal.SIGKILL, f"{moment} {nth}: {end.said}"
    assert nursery.run(command).code == 0
    assert_same_end(tmp_path / "run", reference)


def test_kill_by_the_clock(whole, nursery: Nursery, tmp_path: Path):
    command, reference, seconds = whole
    command = [*command, "--out", str(tmp_path / "run")]
    draw = random.Random(f"clock {command[1]}")
    ends = [nursery.run(command, after=draw.uniform(0.1, 0.4) * seconds) for _ in range(5)]
    assert any(end.code == -signal.SIGKILL for end in ends)
    assert nursery.run(command).code == 0
    assert_same_end(tmp_path / "run", reference)


def test_the_other_ways_to_train_resume_too(nursery: Nursery, tmp_path: Path):
    """Records in train mode, running moments, several D updates, the critic as published."""
    ways = (
        ["--record.mode", "train", "--n-dis", "2", "--critic.fakes", "own"],
        ["--record.mode", "free", "--data.n", "100", "--critic.stream", "published"],
        ["--critic.fakes", "reals", "--critic.forward", "joint"],
    )
    for number, way in enumerate(ways):
        command = [*COMMANDS["mlp"], *way, "--batch-size", "32"]
        whole, killed = tmp_path / f"whole{number}", tmp_path / f"killed{number}"
        assert nursery.run([*command, "--out", str(whole)]).code == 0
        for nth in (16, 13, 40):  # in the window, in it again, in phase 2
            end = nursery.run([*command, "--out", str(killed)], "step", nth)
            assert end.code == -signal.SIGKILL, end.said
        assert nursery.run([*command, "--out", str(killed)]).code == 0
        assert_same_end(killed, whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("moment", "nth"), [("stage", 1), ("step", 10), ("step", 45)])
def test_asked_to_stop(nursery: Nursery, whole_mlp: Path, tmp_path: Path, number, moment, nth):
    """Saved, told in a sentence, and the same command goes on; also before the first step."""
    command = [*COMMANDS["mlp"], "--out", str(tmp_path / "run")]
    end = nursery.run(command, moment, nth, signals=(number,))
    assert end.code == 130
    last = end.said.splitlines()[-1]
    assert last == f"diagan: stopped and saved; the same command goes on: {tmp_path / 'run'}"
    assert "Traceback" not in end.said
    assert nursery.run(command).code == 0
    assert_same_end(tmp_path / "run", whole_mlp)


def test_asked_twice_it_stops_at_once(nursery: Nursery, whole_mlp: Path, tmp_path: Path):
    command = [*COMMANDS["mlp"], "--out", str(tmp_path / "run")]
    end = nursery.run(command, "step", 20, signals=(signal.SIGTERM, signal.SIGINT))
    assert end.code == 130
    assert end.said.splitlines()[-1] == "diagan: stopped"
    assert nursery.run(command).code == 0
    assert_same_end(tmp_path / "run", whole_mlp)


# --- without a kill: a run that is brought back to an earlier state ------------------------------


@pytest.fixture
def unfinished(finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a whole tiny run, to be brought back to an earlier state."""
    monkeypatch.setattr("diagan.pipeline.report", lambda run: None)
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


def forget(run: Path, *checkpoints: str) -> None:
    for pattern in checkpoints:
        for folder in (run / "checkpoints").glob(pattern):
            shutil.rmtree(folder)


def go_on(run: Path) -> None:
    pipeline.run(DIGITS, run)


def assert_as_before(run: Path, finished: Path) -> None:
    found, expected = contents(run), contents(finished)
    differ = [name for name in expected if found.get(name) != expected[name]]
    assert [name for name in differ if not name.startswith("report.")] == []
    assert sorted(found) == sorted(expected)


def test_log_and_record_beyond_the_resumed_step_are_cut(unfinished: Path, finished_run: Path):
    forget(unfinished, "phase1-000006", "plain-*", "weighted-*")
    beyond = {"stage": "phase1", "step": 5, "loss_D": 9.0}
    with (unfinished / "log.jsonl").open("a") as file:
        file.write(json.dumps(beyond) + '\n{"stage": "pha')
    np.save(unfinished / "record/000005.npy", np.zeros(48, np.float32))
    go_on(unfinished)
    assert_as_before(unfinished, finished_run)


def test_a_later_stage_goes_on_from_its_own_checkpoint(unfinished: Path, finished_run: Path):
    forget(unfinished, "weighted-000012")
    (unfinished / "metrics.jsonl").write_text('{"arm": "weighted", "drs": false}\n{"arm": "weig')
    go_on(unfinished)
    assert_as_before(unfinished, finished_run)


def test_what_a_killed_process_left_is_swept(unfinished: Path, finished_run: Path):
    forget(unfinished, "weighted-000012")
    (unfinished / "checkpoints/.weighted-000012.tmp").mkdir()
    (unfinished / "checkpoints/.weighted-000012.tmp/G.safetensors").write_bytes(b"half")
    (unfinished / "record/.000006.npy.123.tmp").write_bytes(b"half")
    (unfinished / ".log.jsonl.123.tmp").write_bytes(b"half")
    go_on(unfinished)
    assert_as_before(unfinished, finished_run)


@pytest.mark.parametrize("gone", [("weighted-*",), ("phase1-000006", "plain-*", "weighted-*")])
def test_a_diagnosis_in_between_changes_nothing(
    unfinished: Path, finished_run: Path, gone: tuple[str, ...]
):
    """The run's weights are those of its config, whatever `diagnose run` was asked meanwhile."""
    forget(unfinished, *gone)
    weights = (unfinished / "samples.parquet").read_bytes()
    pipeline.diagnose_again(unfinished, Score(k=7.0, exponent=2.0))
    assert (unfinished / "samples.parquet").read_bytes() != weights
    go_on(unfinished)
    assert_as_before(unfinished, finished_run)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (replace(DIGITS, steps=14), "--steps 12"),
        (replace(DIGITS, seed=1), "--seed 0"),
        (replace(DIGITS, optim=Optim(lr=2e-3)), "--optim.lr 0.001"),
        (replace(DIGITS, score=Score(k=1.0)), "--k None"),
    ],
)
def test_other_settings_are_refused(unfinished: Path, other: Config, named: str):
    before = contents(unfinished)
    with pytest.raises(UserError, match=f"holds a run with {named}, .*another --out") as told:
        pipeline.run(other, unfinished)
    assert "\n" not in str(told.value)
    assert contents(unfinished) == before


def test_other_data_are_refused(unfinished: Path):
    forget(unfinished, "weighted-*")
    provenance = json.loads((unfinished / "provenance.json").read_text())
    provenance["data"]["fingerprint"] = "0123456789abcdef"
    (unfinished / "provenance.json").write_text(json.dumps(provenance))
    before = contents(unfinished)
    with pytest.raises(UserError, match="the data are not those"):
        go_on(unfinished)
    assert contents(unfinished) == before


def test_data_that_were_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for i, image in enumerate(np.random.default_rng(0).integers(0, 256, (40, 32, 32), np.uint8)):
        Image.fromarray(image).save(tmp_path / "mine" / f"{i}.png")
    few = replace(DIGITS, data=ImageFolder(path="mine"))
    pipeline.run(few, "run", stage="phase1")
    (tmp_path / "mine").rename("there")
    with pytest.raises(UserError, match=r"moved, tell the run: .* --data.path PLACE"):
        pipeline.diagnose_again("run", Score())
    pipeline.run(replace(few, data=ImageFolder(path="there")), "run")
    assert json.loads((tmp_path / "run" / "config.json").read_text())["data"]["path"] == "there"
    assert (tmp_path / "run" / "report.html").exists()


@pytest.fixture(scope="module")
def whole_mlp(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole_mlp") / "run"
    assert nursery.run([*COMMANDS["mlp"], "--out", str(folder)]).code == 0
    return folder


if __name__ == "__main__":
    serve()
