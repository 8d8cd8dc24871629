"""Which training samples the report can show closely, and small pictures of these."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from diagan.ldr import auto_k
from diagan.rundir import RunDir, read_json, replacing

N_CHOSEN = 5_000
N_RANKED = 48  # highest and lowest, for each k
N_PER_GROUP = 24
N_HIGHEST = 1_000
N_FLAGGED = 2_000
SIDE = 64  # pixels at most


def keep_thumbnails(run: RunDir, values: np.ndarray) -> None:
    """thumbnails.npz of images uint8 [N, C, H, W], chosen by samples.parquet and diagnosis.json.

    Call it when these two are written.
    """
    names = pq.read_schema(run.samples).names
    wanted = [name for name in ("ldrm", "ldrv", "group", "flag") if name in names]
    table = pq.read_table(run.samples, columns=wanted)
    ldrm, ldrv = (table[name].cast(pa.float64()).to_numpy() for name in ("ldrm", "ldrv"))
    group = table["group"].combine_chunks().dictionary_encode().indices.to_numpy()
    flag = table["flag"].fill_null("").to_numpy() if "flag" in names else np.full(len(ldrm), "")
    flagged = (flag != "") & (flag != "rare")  # what is rare and clean is there by its score
    stops = k_stops(read_json(run.diagnosis)["k"], ldrm, ldrv)
    index = choose(ldrm, ldrv, stops, group, flagged)
    _write(run, index, np.stack([small(values[i]) for i in index]))


def add_thumbnails(run: RunDir, values: np.ndarray, lines: Sequence[Mapping[str, Any]]) -> None:
    """Pictures of the members of missing modes in some lines of metrics.jsonl."""
    wanted = [i for line in lines for mode in line.get("modes", ()) for i in mode["examples"]]
    if not run.thumbnails.exists():
        return
    with np.load(run.thumbnails) as stored:
        index, images = stored["index"], stored["images"]
    new = np.setdiff1d(np.asarray(wanted, dtype=np.int64), index)
    if len(new):
        index = np.concatenate([index, new])
        images = np.concatenate([images, np.stack([small(values[i]) for i in new])])
        order = np.argsort(index)
        _write(run, index[order], images[order])


def _write(run: RunDir, index: np.ndarray, images: np.ndarray) -> None:
    with replacing(run.thumbnails) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, index=index, images=images)


def k_stops(k: float, ldrm: np.ndarray, ldrv: np.ndarray) -> list[float]:
    """The stops of the report's slider: 0, the run's k less and more often, infinity."""
    k = k or auto_k(ldrm, ldrv) or 1.0
    return [0.0, *(k * 2.0 ** (i / 2) for i in range(-6, 7)), np.inf]


def scored(ldrm: np.ndarray, ldrv: np.ndarray, k: float) -> np.ndarray:
    """LDRM + k sqrt(LDRV) (Eq. 7); for an infinite k its ranks, those of LDRV."""
    values: np.ndarray = np.sqrt(ldrv) if np.isinf(k) else ldrm + k * np.sqrt(ldrv)
    return values


def choose(
    ldrm: np.ndarray,
    ldrv: np.ndarray,
    stops: list[float],
    group: np.ndarray,
    flagged: np.ndarray | None = None,
    n: int = N_CHOSEN,
) -> np.ndarray:
    """At most n of N samples, as rising dataset indices; all where there are no more.

    In this order: the highest and lowest at every stop of k, the flagged, some of each group,
    the highest scored, then the others evenly by score. What has no score is left out.
    """
    if len(ldrm) <= n:
        return np.arange(len(ldrm))
    chosen: dict[int, None] = {}
    for part in _parts(ldrm, ldrv, stops, group, flagged, n):
        chosen |= dict.fromkeys(part.tolist())
    found = np.fromiter(chosen, dtype=np.int64)[:n]
    own_k = by_score(scored(ldrm, ldrv, stops[len(stops) // 2]))
    rest = own_k[~np.isin(own_k, found)]
    evenly = np.linspace(0, len(rest) - 1, min(n - len(found), len(rest)), dtype=np.int64)
    return np.sort(np.concatenate([found, rest[evenly]]))


def _parts(
    ldrm: np.ndarray, ldrv: np.ndarray, stops: list[float], group: np.ndarray,
    flagged: np.ndarray | None, n: int,
) -> Iterator[np.ndarray]:  # fmt: skip
    for k in stops:
        rows = by_score(scored(ldrm, ldrv, k))
        yield np.concatenate([rows[:N_RANKED], rows[::-1][:N_RANKED]])
    rows = by_score(scored(ldrm, ldrv, stops[len(stops) // 2]))  # the run's own k
    if flagged is not None:
        yield rows[flagged[rows]][:N_FLAGGED]
    n_groups = int(group.max()) + 1
    each = max(1, min(N_PER_GROUP, n // (8 * n_groups)))
    members = rows[np.argsort(group[rows], kind="stable")]  # by group, then by falling score
    ends = np.cumsum(np.bincount(group[rows], minlength=n_groups))
    for own in np.split(members, ends[:-1]):
        yield np.concatenate([own[:each], own[::-1][:each], own[:: max(1, len(own) // each)]])
    yield rows[:N_HIGHEST]


def by_score(score: np.ndarray) -> np.ndarray:
    """Rows that have a score, the highest first."""
    rows: np.ndarray = np.argsort(-score, kind="stable")  # NaN last
    return rows[: int(np.isfinite(score).sum())]


def small(image: np.ndarray, side: int = SIDE) -> np.ndarray:
    """uint8 [C, H, W] -> [h, w, C] with at most `side` pixels a side."""
    pixels = image.transpose(1, 2, 0)
    if max(pixels.shape[:2]) <= side:
        return pixels
    picture = Image.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels)
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    return np.asarray(picture).reshape(picture.height, picture.width, -1)
