"""What the scripts beside share: arguments, and pages that are made of stored numbers alone."""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diagan.rundir import replacing

HERE = Path(__file__).parent
Stored = dict[str, Any]  # what results/NAME.json holds


def arguments(script: str | None) -> argparse.ArgumentParser:
    """A parser that knows where run folders lie; `script` is its docstring."""
    parser = argparse.ArgumentParser(description=script)
    parser.add_argument("--runs", type=Path, default=Path(os.environ.get("DIAGAN_RUNS", "runs")))
    return parser


def about(command: str, **more: str) -> Stored:
    """What a file begins with, in words: how it was made, when, and at which scale."""
    return {"command": f"python results/{command}".strip(), "date": time.strftime("%F"), **more}


def head(title: str, stored: Stored) -> list[str]:
    """The first lines of a page: its title, and what the file says in words."""
    words = (f"- {key}: {value}" for key, value in stored.items() if isinstance(value, str))
    return [f"# {title}", "", *words, ""]


def read(name: str) -> Stored:
    file = HERE / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def keep(name: str, stored: Stored, page: Callable[[Stored], str]) -> None:
    """results/NAME.json, and the page that it gives."""
    texts = {"json": json.dumps(stored, indent=1) + "\n", "md": page(stored)}
    for ending, text in texts.items():
        with replacing(HERE / f"{name}.{ending}") as temporary:
            temporary.write_text(text)
    print(texts["md"])


def add_runs(
    name: str, script: str | None, measure: Callable[[Path], Any],
    scale: Callable[[Stored], str], page: Callable[[Stored], str],
) -> None:  # fmt: skip
    """For a script that reads runs: those named on the command line, beside what is stored by then,
    by a second process too."""
    parser = arguments(script)
    parser.add_argument("names", nargs="+", metavar="RUN")
    asked = parser.parse_args()
    for run in asked.names:
        found = measure(asked.runs / run)
        runs = read(name).get("runs", {}) | {run: found}
        told = about(f"{name}.py {' '.join(runs)}", scale=scale(runs))
        keep(name, {**told, "runs": runs}, page)
