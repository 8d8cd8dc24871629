"""Logits whose truth is known: two Gaussians of the same spread, whose LDR is linear."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.findings import calibration
from diagan.findings.calibration import calibrate, effective_share, fit_line, reliability, train_gap


def true_ldrs(n: int = 20_000, mu: float = 0.7, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Real ~ N(mu, 1), fake ~ N(-mu, 1): log-density ratio 2 mu x, of each."""
    rng = np.random.default_rng(seed)
    return 2 * mu * rng.normal(mu, 1, n), 2 * mu * rng.normal(-mu, 1, n)


def test_a_log_density_ratio_needs_no_temperature():
    real, fake = true_ldrs()
    found = calibrate(heldout=real, fake=fake)
    assert found.line.low < 1 < found.line.high
    assert found.line.high - found.line.low < 0.1
    assert abs(found.line.offset) < 0.05
    assert found.mass == pytest.approx(1, abs=0.1)
    assert found.error < 0.02
    assert found.warnings == ()
    assert found.gap is None


@pytest.mark.parametrize("times, word", [(2.0, "over-confident"), (0.5, "timid")])
def test_a_wrong_size_is_found_and_said(times, word):
    real, fake = (times * x for x in true_ldrs())
    found = calibrate(heldout=real, fake=fake)
    assert found.line.low < times < found.line.high
    assert found.error > 0.03
    assert [word in text for text in found.warnings] == [True]


def test_the_interval_holds_the_truth_as_often_as_it_says():
    inside = 0
    for seed in range(100):
        line = fit_line(real=(x := true_ldrs(300, seed=seed))[0], fake=x[1])
        inside += line.low <= 1 <= line.high
    assert 87 <= inside <= 100  # 95 expected, sd 2.2


@settings(max_examples=25)
@given(st.floats(0.2, 5), st.floats(-3, 3), st.integers(0, 5))
def test_scale_and_offset_laws(scale, shift, seed):
    real, fake = true_ldrs(200, seed=seed)
    line = fit_line(real=real, fake=fake)
    scaled = fit_line(real=scale * real, fake=scale * fake)
    shifted = fit_line(real=real + shift, fake=fake + shift)
    assert scaled.temperature == pytest.approx(scale * line.temperature, rel=1e-4)
    assert scaled.offset == pytest.approx(line.offset, abs=1e-4)
    assert shifted.temperature == pytest.approx(line.temperature, rel=1e-4)
    assert shifted.offset == pytest.approx(line.offset - shift / line.temperature, abs=1e-3)


def test_ten_times_the_fakes_change_nothing():
    real, fake = true_ldrs(2_000)
    _, more = true_ldrs(20_000, seed=1)
    few, many = fit_line(real=real, fake=fake), fit_line(real=real, fake=more)
    assert many.temperature == pytest.approx(few.temperature, rel=0.15)
    assert many.offset == pytest.approx(few.offset, abs=0.1)


def test_what_is_separated_has_no_ratio_and_ends_all_the_same():
    found = calibrate(heldout=np.linspace(1, 2, 50), fake=np.linspace(-2, -1, 50))
    assert found.auc == 1
    assert 0 < found.line.temperature < 1
    assert any("without a mistake" in text for text in found.warnings)
    assert any("only 50 held-out" in text for text in found.warnings)


def test_logits_that_say_nothing_raise_no_alarm():
    rng = np.random.default_rng(0)
    same = calibrate(heldout=np.zeros(500), fake=np.zeros(500))
    assert same.warnings == () and len(same.bins) == 1 and same.mass == 1
    noise = calibrate(heldout=rng.normal(0, 0.01, 500), fake=rng.normal(0, 0.01, 500))
    assert noise.warnings == ()


def test_a_backward_d_has_an_infinite_temperature():
    real, fake = true_ldrs()
    found = calibrate(heldout=-real, fake=-fake)
    assert found.line.temperature == np.inf
    assert any("over-confident" in text for text in found.warnings)


def test_reliability_counts_everyone_once_and_weighs_the_kinds_alike():
    real, fake = true_ldrs(500)
    bins = reliability(real=real, fake=np.concatenate([fake, fake]))
    assert sum(b.n for b in bins) == 1500
    assert len(bins) == 10
    assert all(b.low <= b.real <= b.high for b in bins)
    assert [b.said for b in bins] == sorted(b.said for b in bins)
    once = reliability(real=np.repeat([0.0, 1.0], [30, 10]), fake=np.repeat([0.0, 1.0], [20, 60]))
    assert [(b.n, b.real) for b in once] == [
        (50, pytest.approx(0.75 / (0.75 + 0.25))),
        (70, pytest.approx(0.25 / (0.25 + 0.75))),
    ]


@pytest.mark.parametrize(("n_real", "n_fake"), [(1_000, 1_000), (300, 10_000), (10_000, 300)])
def test_intervals_hold_the_truth_whatever_the_sizes(n_real, n_fake):
    """Logits of two Gaussians a deviation apart, which are exact: what is said is true."""
    rng = np.random.default_rng(0)
    covered, errors = [], []
    for _ in range(40):
        real, fake = rng.normal(0.5, 1, n_real), rng.normal(-0.5, 1, n_fake)
        found = calibrate(heldout=real, fake=fake)
        covered += [b.low <= b.said <= b.high for b in found.bins]
        errors.append(found.error)
        assert sum(b.mass for b in found.bins) == pytest.approx(1)
        assert max(b.mass for b in found.bins) < 0.11
    assert np.mean(covered) > 0.92
    assert np.mean(errors) < 0.04


def test_the_gap_of_a_d_that_knows_its_data_by_heart():
    real, fake = true_ldrs(1_000)
    low, gap, high = train_gap(train=real + 1, heldout=real)
    assert low < gap < high and gap == pytest.approx(1)
    found = calibrate(heldout=real, fake=fake, train=real + 1)
    assert (found.gap_low, found.gap, found.gap_high) == (low, gap, high)
    assert any("by heart" in text for text in found.warnings)
    again, _ = true_ldrs(1_000, seed=1)
    assert calibrate(heldout=real, fake=fake, train=again).warnings == ()


def test_effective_share():
    assert effective_share(np.full(7, 3.0)) == pytest.approx(1)
    assert effective_share([0, 1e3, 0, 0]) == pytest.approx(1 / 4)
    assert effective_share([0.0, np.log(3)]) == pytest.approx(16 / 10 / 2)  # weights 1 and 3
    x = np.random.default_rng(0).normal(size=50)
    assert effective_share(x) == pytest.approx(effective_share(x + 1000))


@pytest.mark.parametrize("bad", [np.zeros(5), np.full(30, np.nan), np.full(30, np.inf)])
def test_what_cannot_be_judged_is_refused(bad):
    with pytest.raises(UserError, match=r"at least|NaN"):
        calibrate(heldout=np.zeros(30), fake=bad)
    with pytest.raises(UserError, match=r"at least|NaN"):
        calibrate(heldout=np.zeros(30), fake=np.zeros(30), train=bad)


def test_files_there_and_back(tmp_path):
    real, fake = true_ldrs(100)
    file = tmp_path / "calibration.npz"
    written = calibration.write(file, heldout=-real, fake=-fake, train=-real, about={"judge": "me"})
    logits, about = calibration.read(file)
    assert set(logits) == {"heldout", "fake", "train"}
    assert np.array_equal(logits["heldout"], (-real).astype(np.float32))
    assert about["judge"] == "me" and about["n_heldout"] == 100
    assert about["line"]["temperature"] is None  # infinite
    assert about["gap"] == written.gap == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "calibration.json",
        "calibration.npz",
    ]


def test_other_formats_and_torn_files_are_refused_by_name(tmp_path):
    real, fake = true_ldrs(100)
    file = tmp_path / "calibration.npz"
    calibration.write(file, heldout=real, fake=fake, about={})
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(UserError, match=r"calibration\.npz cannot be read"):
        calibration.read(file)
    (tmp_path / "calibration.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(UserError, match="format 2"):
        calibration.read(file)
