"""The run folder: files appear whole or not at all, and torn lines are never read."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.rundir import (
    RunDir,
    append_line,
    command_line,
    cut_lines,
    locked,
    open_run,
    read_json,
    read_lines,
    replacing,
    sweep,
    write_json,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path):
    file = tmp_path / "sub" / "a.txt"
    with replacing(file) as temporary:
        temporary.write_text("old")
    with replacing(file) as temporary:
        temporary.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert names(file.parent) == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    file = tmp_path / "a.txt"
    file.write_text("old")
    with pytest.raises(ValueError, match="stop"), replacing(file) as temporary:
        temporary.write_text("ne")
        raise ValueError("stop")
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_what_the_disk_says_is_a_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*file/a.json: (File exists|Not a dir)"):
        write_json(tmp_path / "file" / "a.json", {})
    with pytest.raises(UserError, match=r"cannot write .*: Is a directory"):
        append_line(tmp_path, {})
    if (full := Path("/dev/full")).exists():
        with pytest.raises(UserError, match="cannot write /dev/full: No space left on device"):
            append_line(full, {})


def test_no_json_that_others_cannot_read(tmp_path: Path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"value": float("nan")})
    assert names(tmp_path) == []


def test_json_that_cannot_be_read_is_named(tmp_path: Path):
    (tmp_path / "a.json").write_text('{"a": ')
    with pytest.raises(UserError, match=r"a\.json is not valid JSON"):
        read_json(tmp_path / "a.json")
    with pytest.raises(UserError, match=r"cannot read .*b\.json: No such file"):
        read_json(tmp_path / "b.json")


line = st.dictionaries(
    st.text(max_size=5),
    st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.integers(),
)


@settings(max_examples=30)
@given(lines=st.lists(line, max_size=5), torn=st.integers(0, 30))
def test_lines_come_back_and_a_torn_one_does_not(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict], torn: int
):
    file = tmp_path_factory.mktemp("lines") / "log.jsonl"
    for obj in lines:
        append_line(file, obj)
    half = json.dumps({"a": "half of a line that was never finished"})[:torn]
    with file.open("a") as opened:
        opened.write(half)
    assert read_lines(file) == lines
    cut_lines(file, lambda obj: True)
    append_line(file, {"next": 1})
    assert read_lines(file) == [*lines, {"next": 1}]


def test_cut_keeps_what_it_is_told_to(tmp_path: Path):
    file = tmp_path / "log.jsonl"
    cut_lines(file, lambda obj: True)
    assert not file.exists()
    for step in range(6):
        append_line(file, {"step": step, "loss": 0.1 * step})
    before = file.read_text().splitlines()
    cut_lines(file, lambda obj: obj["step"] <= 3)
    assert file.read_text().splitlines() == before[:4]


def test_sweep_takes_only_what_killed_processes_left(tmp_path: Path):
    run = RunDir(tmp_path)
    for folder in (run.checkpoints, run.record, run.generated / "progress"):
        (folder / "kept").mkdir(parents=True)
        (folder / ".left.12.tmp").write_text("half")
    (run.checkpoints / ".phase1-000002.tmp").mkdir()
    (run.checkpoints / ".phase1-000002.tmp" / "G.safetensors").write_text("half")
    (tmp_path / "notes.tmp").write_text("a person's own")
    (tmp_path / "own" / ".mine.tmp").mkdir(parents=True)
    sweep(run)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    folders = {"checkpoints", "record", "generated", "generated/progress", "own"}
    kept = {"checkpoints/kept", "record/kept", "generated/progress/kept"}
    assert found == folders | kept | {"notes.tmp", "own/.mine.tmp"}


def test_a_folder_without_a_config_is_no_run(tmp_path: Path):
    with pytest.raises(UserError, match=r"is not a run folder: it has no config\.json"):
        open_run(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert open_run(str(tmp_path)) == RunDir(tmp_path)


def test_one_process_at_a_time(tmp_path):
    """The lock is another process's until that process is gone, killed or not."""
    code = (
        "import sys; from pathlib import Path; from diagan.rundir import RunDir, locked\n"
        "with locked(RunDir(Path(sys.argv[1]))): print('mine', flush=True); sys.stdin.read()"
    )
    run = RunDir(tmp_path / "run")
    other = subprocess.Popen([sys.executable, "-c", code, str(run.path)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)  # fmt: skip
    try:
        assert other.stdout.readline() == "mine\n"
        with pytest.raises(UserError, match="another process is at work"), locked(run):
            pass
    finally:
        other.kill()
        other.wait()
    with locked(run):
        pass


@pytest.mark.parametrize("program", ["/a/bin/diagan", "/a/src/diagan/__main__.py"])
def test_the_command_is_as_a_person_types_it(program, monkeypatch):
    """`python -m diagan` was told as __main__.py."""
    monkeypatch.setattr("sys.argv", [program, "run", "demo", "--out", "my run", "--seed", "3"])
    assert command_line() == "diagan run demo --out 'my run' --seed 3"
