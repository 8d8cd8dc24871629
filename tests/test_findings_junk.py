"""Junk that is known to be junk, among digits and points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.config import DemoDigits, DrawnFaces
from diagan.data import load_dataset
from diagan.findings import highscored
from diagan.findings.junk import (
    FLAGS,
    K,
    blank,
    copies,
    find_junk,
    high_scored,
    nearest,
    roughness,
    small_pixels,
)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Digits of 16 x 16, 8 % of them green; and which those are."""
    data = load_dataset(DemoDigits(n=1_000, majority=0.92, size=16), seed=0)
    return data.values, data.groups == 1


def flags(values: np.ndarray, is_high: np.ndarray, **more) -> np.ndarray:
    """The flag of each sample where these score high and the others do not."""
    scores = np.where(is_high, 5.0, 0.0) + np.random.default_rng(0).random(len(values))
    return highscored.mark(scores, values, **more)[0]["flag"]


def test_the_highest_tenth():
    scores = np.arange(95.0)
    scores[90] = np.nan
    assert high_scored(scores).tolist() == [94, 93, 92, 91, 89, 88, 87, 86, 85, 84]
    assert high_scored(np.full(7, np.nan)).tolist() == []
    assert len(high_scored(np.zeros(200_000))) == 10_000


def test_a_rare_group_is_clean(digits):
    values, green = digits
    found = flags(values, green)
    assert np.mean(found[green] == "rare") > 0.97
    assert set(found) <= {"", *FLAGS}
    assert np.sum(found != "") == 100


@pytest.mark.slow
def test_a_thin_group_of_much_the_same_pictures_is_clean():
    """Was called junk: faces are much alike, and those of a rare skin twice as far apart."""
    faces = load_dataset(DrawnFaces(n=2_000), seed=0)
    pale = faces.attributes["pale"] == 1
    assert np.mean(flags(faces.values, pale)[pale] == "rare") > 0.97


def junk_of(kind: str, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    shape = (8, *values.shape[1:])
    if kind == "noise":
        return rng.integers(0, 256, shape, dtype=np.uint8)
    if kind == "flat":
        return np.broadcast_to(rng.integers(0, 256, (8, 3, 1, 1), dtype=np.uint8), shape)
    half = values[:8].copy()
    half[:, :, 8:] = 0 if kind == "black half" else 90
    return half


@pytest.mark.parametrize("kind", ["noise", "flat", "black half", "grey half"])
def test_what_shows_nothing_is_corrupt(digits, kind):
    values, green = digits
    more = junk_of(kind, values, np.random.default_rng(1))
    found = flags(np.concatenate([values, more]), np.append(green, np.ones(8, bool)))
    assert set(found[-8:]) == {"corrupt"}
    assert np.mean(found[:-8][green] == "rare") > 0.95


def test_strangers_are_outliers(digits):
    values, green = digits
    smooth = np.random.default_rng(2).random((8, 3, 3, 3))  # blurred colours all over the picture
    up = np.kron(smooth, np.ones((6, 6)))[:, :, 1:17, 1:17]
    ramp = np.linspace(0.6, 1, 16)
    strangers = (255 * up * ramp * ramp[:, None]).astype(np.uint8)
    found = flags(np.concatenate([values, strangers]), np.append(green, np.ones(8, bool)))
    assert set(found[-8:]) == {"outlier"}


def test_copies_are_duplicates(digits):
    values, green = digits
    one = values[green][:1]
    nearly = np.clip(values[green][1:2].astype(int) + 1, 0, 255).astype(np.uint8)
    found = flags(np.concatenate([values, one, nearly]), np.append(green, [True, True]))
    assert found[-2:].tolist() == ["duplicate", "duplicate"]
    assert found[:-2][green][:2].tolist() == ["duplicate", "duplicate"]
    assert "duplicate" not in found[:-2][green][2:]


def test_what_is_common_is_how_the_data_are(digits):
    values = digits[0].copy()
    values[:, :, 8:] = 0  # all of them are half blank
    found = flags(values, digits[1])
    assert "corrupt" not in found
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (200, 1, 8, 8), dtype=np.uint8)
    assert "corrupt" not in flags(noise, np.arange(200) < 10)


def test_order_and_scale_do_not_matter(digits):
    values, green = digits
    rng = np.random.default_rng(3)
    scores, order = rng.normal(size=len(values)) + 3 * green, rng.permutation(len(values))
    plain = highscored.mark(scores, values)[0]["flag"]
    assert np.array_equal(plain[order], highscored.mark(scores[order], values[order])[0]["flag"])
    assert np.array_equal(plain, highscored.mark(np.exp(scores), values)[0]["flag"])


def test_points_have_outliers_too():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1_000, 2)).astype(np.float32)
    points[:5] = [[30, 0], [0, 30], [-30, 0], [0, -30], [30, 30]]
    points[5] = points[6]
    found = flags(points, np.arange(1_000) < 40)
    assert found[:7].tolist() == ["outlier"] * 5 + ["duplicate"] * 2
    assert np.mean(found[7:40] == "rare") > 0.9


def test_features_can_be_given(digits):
    values, _ = digits
    place = np.random.default_rng(0).normal(size=(len(values), 4))
    place[7] += 100
    scores = np.where(np.arange(len(values)) == 7, 2.0, 0.0)
    assert find_junk(scores, values, features=place).flag[0] == "outlier"


@pytest.mark.parametrize("n", [1, 2, K, K + 1, 20])
def test_few_samples_make_no_claim(n):
    points = np.arange(2.0 * n).reshape(n, 2)
    columns, summary = highscored.mark(np.arange(float(n)), points)
    assert set(columns["flag"]) <= {"", "rare"}
    assert summary["high_scored"]["n_high"] == -(-n // 10)
    assert summary["high_scored"]["far"] is None


def test_no_scores_no_flags():
    columns, summary = highscored.mark(np.full(30, np.nan), np.zeros((30, 2)))
    assert set(columns["flag"]) == {""} and set(columns["cluster"]) == {-1}
    assert summary["high_scored"]["n_high"] == summary["high_scored"]["n_clusters"] == 0


def test_the_summary_counts_the_columns(digits):
    values, green = digits
    columns, summary = highscored.mark(green + 0.0, values, seed=4)
    found = summary["high_scored"]
    assert {name: found[name] for name in FLAGS} == {
        name: int(np.sum(columns["flag"] == name)) for name in FLAGS
    }
    assert found["n_clusters"] == len(np.unique(columns["cluster"][columns["flag"] == "rare"]))
    assert np.array_equal(columns["cluster"] >= 0, columns["flag"] == "rare")


@settings(max_examples=20)
@given(st.integers(K + 1, 40), st.integers(1, 6), st.integers(0, 100))
def test_nearest_is_what_brute_force_finds(n, dim, seed):
    x = np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)
    x[-1] = x[0]
    distances = np.sqrt(((x[:, None] - x) ** 2).sum(axis=2))
    np.fill_diagonal(distances, np.inf)
    found = nearest(x, np.arange(n), K)
    assert np.allclose(found, np.sort(distances, axis=1)[:, :K], atol=1e-5)
    assert found[0, 0] == found[-1, 0] == 0


def test_copies_by_hand():
    distances = np.array([[0, 5], [0.2, 5], [0.3, 5], [0, 0]], dtype=np.float32)
    assert copies(distances, n_dim=16).tolist() == [True, True, False, True]
    assert copies(distances, n_dim=2).tolist() == [True, False, False, True]


def test_blank_by_hand():
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 10, 10), dtype=np.uint8)
    images[1] = 7
    images[2, :, :5] = 3  # the upper half
    images[3, :, :, 4:] = np.array([1, 200, 30])[:, None, None]  # six columns on the right
    images[4, :, 3:7] = 3  # a band in the middle is no half
    assert blank(images) == pytest.approx([0, 1, 0.5, 0.6, 0])


def test_roughness_of_noise_and_of_a_ramp():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (4, 1, 64, 64), dtype=np.uint8)
    ramp = np.broadcast_to(np.arange(64, dtype=np.uint8) * 4, (1, 1, 64, 64))
    faint = rng.integers(0, 2, (1, 3, 64, 64), dtype=np.uint8)  # a level of grain on black
    assert roughness(noise) == pytest.approx(np.ones(4), abs=0.05)
    assert roughness(ramp)[0] < 0.05
    assert roughness(faint)[0] < 0.85


def test_small_pixels_average_blocks():
    images = np.zeros((2, 1, 16, 16), dtype=np.uint8)
    images[1, 0, :2, :2] = [[0, 255], [255, 0]]
    found = small_pixels(images, np.array([1, 0]))
    assert found.shape == (2, 64)
    assert found[0, 0] == pytest.approx(0.5) and found.sum() == pytest.approx(0.5)
    assert small_pixels(np.zeros((1, 3, 30, 20), np.uint8), np.array([0])).shape == (1, 3 * 10 * 10)
