"""Several runs of the same data: do they find the same samples under-represented?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from diagan import diagnosis
from diagan.config import Score
from diagan.diagnosis import Diagnosis
from diagan.errors import UserError
from diagan.foreign import diagnosed
from diagan.metrics.ranks import correlation, overlap, ranks
from diagan.rundata import load_data, read_settings
from diagan.rundir import RunDir, read_json, write_json

FORMAT = 1
TOP = 0.05
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """How alike two runs rank the samples."""

    first: str
    second: str
    spearman: float  # -1 to 1; 1: the same order, 0: nothing in common
    overlap: float  # 0 to 1: share of the one's highest 5 % that is in the other's too


@dataclass(frozen=True)
class Stability:
    """All pairs, and where each run puts each group."""

    pairs: tuple[Pair, ...]
    top: float
    chance: float  # the overlap that two random orders have
    groups: Mapping[str, Mapping[str, float]]  # group -> run -> mean rank, 0 lowest to 1 highest

    @property
    def spearman(self) -> float:
        return float(np.mean([pair.spearman for pair in self.pairs]))

    @property
    def overlap(self) -> float:
        return float(np.mean([pair.overlap for pair in self.pairs]))


def stability(scores: Mapping[str, ArrayLike], groups: ArrayLike, top: float = TOP) -> Stability:
    """Compare the scores [N] of several runs by name; `groups` [N] are names."""
    ranked = {name: ranks(values) for name, values in scores.items()}
    members = np.asarray(groups)
    n_top = max(1, round(top * len(members)))
    pairs = tuple(
        Pair(a, b, correlation(ranked[a], ranked[b]), overlap(ranked[a], ranked[b], n_top))
        for a, b in combinations(ranked, 2)
    )
    by_group = {
        str(group): {name: float(values[members == group].mean())
                     for name, values in ranked.items()}
        for group in np.unique(members)
    }  # fmt: skip
    return Stability(pairs, top, n_top / len(members), by_group)


# --- run folders ---------------------------------------------------------------------------------


def compare_runs(
    paths: Sequence[str], *, out: str | Path, score: Score | None = None
) -> tuple[Stability, Diagnosis]:
    """Compare diagnosed runs, and score the samples by LDRM and LDRV averaged over the runs.

    `out` becomes the folder of a diagnosis with a stability.json in it.
    """
    found_in = [read_samples(Path(path)) for path in paths]
    expect_same_data(paths)
    tables = dict(zip(unique_names(paths), found_in))
    first = next(iter(tables.values()))
    found = stability({name: table["score"] for name, table in tables.items()}, first["group"])
    ldrm, ldrv = (np.mean([t[column] for t in tables.values()], axis=0)
                  for column in ("ldrm", "ldrv"))  # fmt: skip
    group_names, groups = np.unique(first["group"], return_inverse=True)
    about = read_json(RunDir(Path(paths[0])).diagnosis)
    rare = about.get("rare")
    where = group_names.tolist().index(rare) if rare in group_names else None
    grouping = diagnosis.Grouping(groups, group_names.tolist(), where)
    settings = score or Score(clip="floor")
    averaged = diagnosis.from_moments(ldrm, ldrv, len(paths), settings, grouping)
    with diagnosed.making(out) as run:
        diagnosed.write(
            run, averaged, columns={"group": first["group"]}, images=images_of(Path(paths[0])),
            about={"mode": "runs", "is_ldr": about.get("is_ldr"), "runs": list(paths),
                   "first_step": about.get("first_step"), "last_step": about.get("last_step")},
            provenance={"runs": list(paths), "data": data_of(Path(paths[0]))},
        )  # fmt: skip
        write_json(run.path / "stability.json", to_json(found))
    return found, averaged


def to_json(found: Stability) -> dict[str, Any]:
    return {"format": FORMAT, "spearman": found.spearman, "overlap": found.overlap,
            **asdict(found)}  # fmt: skip


def read_samples(path: Path) -> dict[str, NDArray[Any]]:
    run = RunDir(path)
    if not run.samples.is_file():
        raise UserError(f"{path} has no samples.parquet: it is no run, or was not diagnosed yet")
    table = pq.read_table(run.samples, columns=["group", "ldrm", "ldrv", "score"])
    found = {name: table[name].to_numpy() for name in table.column_names}
    if np.isnan(found["score"].astype(np.float64)).any():
        raise UserError(f"{path} has samples without a score: record it in eval mode to compare it")
    return found


def data_of(path: Path) -> dict[str, Any]:
    run = RunDir(path)
    data: dict[str, Any] = (
        read_json(run.provenance).get("data", {}) if run.provenance.exists() else {}
    )
    return data


def images_of(path: Path) -> NDArray[np.uint8] | None:
    """The images of a run, where it is one."""
    run = RunDir(path)
    if not run.config.is_file():
        return None
    data = load_data(run, read_settings(run))
    return data.values if data.is_image else None


def expect_same_data(paths: Sequence[str]) -> None:
    prints = {path: data_of(Path(path)).get("fingerprint") for path in paths}
    first = prints[paths[0]]
    for path, mine in prints.items():
        if mine != first:
            raise UserError(f"{path} and {paths[0]} are runs of different data: their samples "
                            "cannot be compared one by one")  # fmt: skip


def unique_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path, or the whole where two end alike."""
    last = [Path(path).resolve().name for path in paths]
    names = last if len(set(last)) == len(last) else list(paths)
    if len(set(names)) < len(names):
        raise UserError("the same run was given twice; give different ones")
    return names


def table_of(found: Stability) -> str:
    """What a person sees: a line a pair, then a line a group."""
    lines = [f"{'runs':40} {'Spearman':>9} {f'top {found.top:.0%}':>9}"]
    lines += [f"{f'{p.first}, {p.second}':40} {p.spearman:9.3f} {p.overlap:9.1%}"
              for p in found.pairs]  # fmt: skip
    lines += [f"{'mean':40} {found.spearman:9.3f} {found.overlap:9.1%}",
              f"{'by chance':40} {0:9.3f} {found.chance:9.1%}"]  # fmt: skip
    lines += [f"{p.first} and {p.second} rank all alike: runs of one seed say nothing of stability"
              for p in found.pairs if p.spearman > 1 - 1e-9]  # fmt: skip
    if len(found.groups) > 1:
        lines += ["", "mean rank (0 lowest, 1 highest)"]
        lines += [f"{group:40} " + "  ".join(f"{rank:.3f}" for rank in by_run.values())
                  for group, by_run in found.groups.items()]  # fmt: skip
    return "\n".join(lines)
