"""The run folder: its names, atomic writes, JSON lines and provenance."""

import json
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from diagan.errors import Busy, UserError

try:
    import fcntl
except ImportError:  # Windows: runs are not locked there
    fcntl = None  # type: ignore[assignment]


def refuse_inside(out: Path, images: str) -> None:
    """What is written into a folder of images would be taken for one of them the next time."""
    place = Path(images).expanduser()
    if place.is_dir() and out.resolve().is_relative_to(place.resolve()):
        raise UserError(f"{out} lies in {images}, among the images that are read; give an --out "
                        "that does not")  # fmt: skip


@dataclass(frozen=True)
class RunDir:
    """Where everything of a run lies. The verbs meet here and nowhere else."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def provenance(self) -> Path:
        return self.path / "provenance.json"

    @property
    def log(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def curves(self) -> Path:
        return self.path / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def record(self) -> Path:
        return self.path / "record"

    @property
    def kept(self) -> Path:
        return self.path / "kept"

    @property
    def samples(self) -> Path:
        return self.path / "samples.parquet"

    @property
    def diagnosis(self) -> Path:
        return self.path / "diagnosis.json"

    @property
    def thumbnails(self) -> Path:
        return self.path / "thumbnails.npz"

    @property
    def generated(self) -> Path:
        return self.path / "generated"

    @property
    def calibration(self) -> Path:
        return self.path / "calibration.npz"

    @property
    def report(self) -> Path:
        return self.path / "report.html"


def open_run(path: str | Path) -> RunDir:
    """An existing run, or a sentence that says there is none."""
    run = RunDir(Path(path))
    if not run.config.is_file():
        raise UserError(f"{path} is not a run folder: it has no config.json")
    return run


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` that takes its place once written, or goes away."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            yield temporary
            sync(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """The folder of `path` is there; a full disk or a read-only one is told in a sentence."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def locked(run: RunDir) -> Iterator[None]:
    """One process at a time writes a run; the lock goes with the process that holds it."""
    with writing(run.config):
        folder = os.open(run.path, os.O_RDONLY)
    try:
        _lock(folder, run)
        yield
    finally:
        os.close(folder)


def _lock(descriptor: int, run: RunDir) -> None:
    try:
        if fcntl:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Busy(
            f"another process is at work in {run.path}; wait for it, or choose another folder"
        ) from None


def sweep(run: RunDir) -> None:
    """Remove the temporary names that a killed process left; call it before writing."""
    progress = run.generated / "progress"
    for folder in (run.path, run.checkpoints, run.record, run.kept, run.generated, progress):
        for left in folder.glob(".*.tmp"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, obj: Any) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(obj, indent=2, allow_nan=False) + "\n")


def refuse_filled(folder: Path) -> None:
    """What is new must not mix with what was there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already and is not empty; choose another --out")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON: {error}") from None


def append_line(path: Path, obj: Mapping[str, Any]) -> None:
    """One object, one line, one write."""
    with writing(path), path.open("a") as file:
        file.write(json.dumps(obj, allow_nan=False) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines; what a crash left of a last one is not there."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]


def cut_lines(path: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
    """Drop the lines that `keep` does not hold for, and a torn last line."""
    if path.exists():
        lines = [json.dumps(line) + "\n" for line in read_lines(path) if keep(line)]
        with replacing(path) as temporary:
            temporary.write_text("".join(lines))


def versions() -> dict[str, str]:
    """What the numbers of this run were made with."""
    names = ("diagan", "torch", "numpy", "lightning-fabric", "datasets", "pillow", "pyarrow")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: version(name) for name in names},
    }


def command_line() -> str:
    program = Path(sys.argv[0])
    # By `python -m diagan` or torchrun it is src/diagan/__main__.py.
    name = program.parent.name if program.name == "__main__.py" else program.name
    return shlex.join([name, *sys.argv[1:]])
