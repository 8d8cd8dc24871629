"""Which samples the report can show closely."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.rundir import RunDir, write_json
from diagan.thumbnails import (
    N_PER_GROUP,
    N_RANKED,
    add_thumbnails,
    by_score,
    choose,
    k_stops,
    keep_thumbnails,
    scored,
    small,
)


def moments(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.gamma(1.0, size=n)


def test_few_samples_are_all_chosen():
    ldrm, ldrv = moments(30)
    ldrv[3] = np.nan
    assert np.array_equal(choose(ldrm, ldrv, [0.0], np.zeros(30, int), n=30), np.arange(30))


@settings(max_examples=15)
@given(st.integers(0, 1_000), st.integers(1, 40), st.booleans())
def test_the_ends_of_every_ranking_are_chosen(seed, n_groups, gaps):
    n, room = 9_000, 4_000
    ldrm, ldrv = moments(n, seed)
    if gaps:
        ldrv[:: 1 + seed % 7] = np.nan
    group = np.random.default_rng(seed).integers(0, n_groups, n)
    stops = k_stops(0.7, ldrm, ldrv)
    chosen = choose(ldrm, ldrv, stops, group, n=room)
    assert len(chosen) == min(room, np.isfinite(ldrv).sum())
    assert np.array_equal(chosen, np.unique(chosen))
    assert np.isfinite(ldrv[chosen]).all()
    for k in stops:
        rows = by_score(scored(ldrm, ldrv, k))
        assert np.isin(rows[:N_RANKED], chosen).all()
        assert np.isin(rows[-N_RANKED:], chosen).all()
    for number in range(n_groups):
        own = np.flatnonzero((group == number) & np.isfinite(ldrv))
        assert np.isin(own, chosen).sum() >= min(len(own), N_PER_GROUP, room // (8 * n_groups))


def test_the_rest_is_spread_over_all_scores():
    n = 50_000
    ldrm, ldrv = np.linspace(0, 1, n), np.zeros(n)
    chosen = choose(ldrm, ldrv, [0.0, 1.0, np.inf], np.zeros(n, int), n=5_000)
    inner = chosen[(chosen > 2_000) & (chosen < n - 2_000)]
    assert np.diff(inner).max() < 3 * np.diff(inner).mean()


def test_flagged_samples_come_before_the_rest():
    ldrm, ldrv = moments(20_000)
    flagged = np.zeros(20_000, bool)
    flagged[7::13] = True
    group = np.zeros(20_000, int)
    chosen = choose(ldrm, ldrv, k_stops(1.0, ldrm, ldrv), group, flagged, n=4_000)
    assert np.isin(np.flatnonzero(flagged), chosen).all()


def test_stops_go_from_zero_to_infinity_through_the_runs_own():
    ldrm, ldrv = moments(100)
    stops = k_stops(0.3, ldrm, ldrv)
    assert stops[0] == 0
    assert np.isinf(stops[-1])
    assert stops[len(stops) // 2] == pytest.approx(0.3)
    assert stops == sorted(stops)
    assert k_stops(0.0, ldrm, ldrv)[7] > 0  # LDRM alone: around the k that balances both
    assert k_stops(0.0, ldrm, np.ones(100))[7] == 1.0


def test_an_infinite_k_ranks_by_the_fluctuation():
    ldrm, ldrv = np.array([5.0, 0.0, 1.0]), np.array([0.1, 0.3, 0.2])
    assert by_score(scored(ldrm, ldrv, np.inf)).tolist() == [1, 2, 0]
    assert by_score(scored(ldrm, ldrv, 0.0)).tolist() == [0, 2, 1]
    assert by_score(scored(ldrm, np.array([0.1, np.nan, 0.2]), 1.0)).tolist() == [0, 2]


def test_large_images_become_small_and_small_ones_stay():
    image = np.random.default_rng(0).integers(0, 255, (3, 20, 30), dtype=np.uint8)
    assert np.array_equal(small(image), image.transpose(1, 2, 0))
    assert small(np.zeros((1, 256, 128), np.uint8)).shape == (64, 32, 1)
    assert small(np.full((3, 256, 256), 9, np.uint8)).tolist() == np.full((64, 64, 3), 9).tolist()


def test_thumbnails_follow_the_files_of_the_run(tmp_path):
    run = RunDir(tmp_path)
    images = np.random.default_rng(0).integers(0, 255, (12, 1, 8, 8), dtype=np.uint8)
    columns = {"ldrm": np.arange(12.0), "ldrv": np.ones(12), "group": ["a"] * 12,
               "flag": pa.array([None, "rare"] + [""] * 10)}  # fmt: skip
    pq.write_table(pa.table(columns), run.samples)
    write_json(run.diagnosis, {"k": 1.0})
    keep_thumbnails(run, images)
    with np.load(run.thumbnails) as stored:
        assert stored["index"].tolist() == list(range(12))
        assert np.array_equal(stored["images"], images.transpose(0, 2, 3, 1))


def test_pictures_can_be_added_and_none_twice(tmp_path):
    run = RunDir(tmp_path)
    images = np.random.default_rng(0).integers(0, 255, (9, 1, 8, 8), dtype=np.uint8)
    add_thumbnails(run, images, [{"modes": [{"examples": [1]}]}])
    assert not run.thumbnails.exists()  # of a run that was not diagnosed
    np.savez(run.thumbnails, index=[2, 5], images=images[[2, 5]].transpose(0, 2, 3, 1))
    add_thumbnails(run, images, [{"modes": [{"examples": [7, 5]}, {"examples": [0, 7]}]}, {}])
    with np.load(run.thumbnails) as stored:
        assert stored["index"].tolist() == [0, 2, 5, 7]
        assert np.array_equal(stored["images"], images[[0, 2, 5, 7]].transpose(0, 2, 3, 1))
