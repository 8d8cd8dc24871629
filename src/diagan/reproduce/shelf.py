"""The runs whose small files lie in results/: what a table reads of them, each file once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from diagan import config
from diagan.config import Config
from diagan.errors import UserError
from diagan.reproduce.plan import Job
from diagan.reproduce.store import STORE, Line, is_of_pixels
from diagan.rundir import read_json, read_lines


@dataclass(frozen=True)
class StoredRun:
    """A run's folder in results/."""

    folder: Path

    @cached_property
    def provenance(self) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self.folder / "provenance.json")
        return found

    @cached_property
    def settings(self) -> Config | None:
        """None where they are of another format, or half a file."""
        file = self.folder / "config.json"
        try:
            return anywhere(config.loads(file.read_text(), str(file)))
        except (OSError, UserError):
            return None

    @cached_property
    def warnings(self) -> list[tuple[str, str]]:
        """A stage, and what was said in it."""
        lines = read_lines(self.folder / "log.jsonl")
        return [(x["stage"], x["warning"]) for x in lines if "warning" in x]

    @cached_property
    def _lines(self) -> dict[tuple[str, str, str, str], list[Line]]:
        found: dict[tuple[str, str, str, str], list[Line]] = {}
        for x in read_lines(self.folder / "metrics.jsonl"):
            arm = x["arm"] + "+drs" * x["drs"]
            key = x["metric"], x.get("protocol", ""), arm, x.get("group", "")
            found.setdefault(key, []).append(x)
        return found

    def lines(self, metric: str, protocol: str, arm: str, group: str) -> list[Line]:
        """A metric by a protocol, of an arm and a group; one for each extractor."""
        return self._lines.get((metric, protocol, arm, group), [])

    def is_of(self, job: Job) -> bool:
        """Whether it is the run that a table means, whatever machine it ran on."""
        return self.settings == anywhere(job.config)

    def ratio(self) -> float | None:
        """Actual over estimated seconds of its units that have ended."""
        units = list(self.provenance.get("units", {}).values())
        if "units" not in self.provenance and "seconds" in self.provenance:  # of `diagan run`
            estimate = self.provenance["estimate"]["seconds"]
            units = [{"estimate": estimate, "seconds": self.provenance["seconds"]}]
        ended = [unit for unit in units if unit.get("ended", True)]
        estimated = sum(unit["estimate"] for unit in ended)
        return sum(unit["seconds"] for unit in ended) / estimated if estimated else None


def anywhere(c: Config) -> Config:
    """Without what the machine decides."""
    return replace(c, device="auto", precision="auto", data_root=None)


class Shelf:
    """All stored runs of a results folder."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self.runs = [StoredRun(p.parent) for p in sorted((results / STORE).glob("*/config.json"))]
        self._seeds: dict[str, dict[int, StoredRun]] = {}
        for run in self.runs:
            name, word, seed = run.folder.name.rpartition("seed")
            if seed.isdigit():
                self._seeds.setdefault(name + word, {})[int(seed)] = run

    def seeds(self, job: Job) -> dict[int, StoredRun]:
        """A job's runs over all seeds that are stored, in order."""
        return dict(sorted(self._seeds.get(job.name.removesuffix(str(job.seed)), {}).items()))

    def ratios(self) -> dict[str, float]:
        """Actual over estimated seconds of every run."""
        found = {run.folder.name: run.ratio() for run in self.runs}
        return {name: ratio for name, ratio in found.items() if ratio is not None}

    def median_ratio(self) -> float | None:
        """None where nothing is stored."""
        found = list(self.ratios().values())
        return float(np.median(found)) if found else None


def of_one_extractor(found: Mapping[int, list[Line]]) -> dict[int, Line]:
    """By seed, the lines that were measured in the features in which most seeds were, and last:
    numbers of different ones, as those of each run's own D are, are not to be averaged."""
    counts = Counter(features_in(x) for lines in found.values() for x in lines)
    most = max(reversed(counts), key=lambda name: counts[name], default=None)
    return {seed: x for seed, lines in found.items() for x in lines if features_in(x) == most}


def features_in(line: Line) -> tuple[str, str]:
    if is_of_pixels(line):
        return "", ""
    return line.get("extractor", ""), line.get("extractor_version", "")
