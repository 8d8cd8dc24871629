import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import DIGITS, data_of

from diagan.data import load_dataset
from diagan.evaluate import count_groups, wilson
from diagan.groups import GroupProbe
from diagan.rundir import RunDir, read_lines
from diagan.sample import load_generator


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    [
        # worked with (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), z = 1.96
        (0.5, 100, 0.403830, 0.596170),
        (0.1, 50, 0.043475, 0.213605),
        (0.0, 100, 0.0, 0.036995),
        (1.0, 100, 0.963005, 1.0),
    ],
)
def test_wilson_by_hand(share, n, low, high):
    assert wilson(share, n) == pytest.approx((low, high), abs=1e-6)


@settings(max_examples=50)
@given(st.integers(1, 10_000), st.floats(0, 1))
def test_an_interval_holds_its_share(n, part):
    share = round(part * n) / n
    low, high = wilson(share, n)
    assert 0 <= low <= share + 1e-12 and share - 1e-12 <= high <= 1
    assert wilson(share, 4 * n)[1] - wilson(share, 4 * n)[0] < high - low


def test_shares_of_groups(tmp_path):
    run, data = RunDir(tmp_path), data_of(DIGITS)
    count_groups(run, np.array([0, 0, 1, 0]), data, {"arm": "plain", "drs": False})
    red, green = read_lines(run.metrics)
    assert (red["group"], red["value"], green["group"], green["value"]) == (
        *("red", 0.75),
        *("green", 0.25),
    )
    assert (green["low"], green["high"]) == pytest.approx(wilson(0.25, 4))
    assert green["arm"] == "plain" and green["metric"] == "group_share"


def test_metrics_of_a_whole_run(finished_run):
    lines = read_lines(RunDir(finished_run).metrics)
    shares = [line for line in lines if line["metric"] == "group_share"]
    arms = {(line["arm"], line["drs"]) for line in shares}
    assert arms == {("plain", False), ("weighted", False), ("weighted", True)}
    for arm in arms:
        own = [line for line in shares if (line["arm"], line["drs"]) == arm]
        assert [line["group"] for line in own] == ["red", "green"]
        assert sum(line["value"] for line in own) == pytest.approx(1)
        assert all(line["low"] <= line["value"] <= line["high"] for line in own)
        # A share says from what, and how far its probe can be trusted.
        assert all(line["n_fake"] == 64 and 0 <= line["probe_accuracy"] <= 1 for line in own)
        assert {line["checkpoint"] for line in own} == {f"{arm[0]}-000012"}
    (rate,) = [line for line in lines if line["metric"] == "acceptance_rate"]
    assert 0 < rate["value"] < 1 and rate["rejects_by"] == "critic"


def test_a_share_is_that_of_the_samples_that_the_seed_draws(finished_run):
    """What is in metrics.jsonl can be counted again from the checkpoint."""
    data = load_dataset(DIGITS.data, seed=DIGITS.seed)
    probe = GroupProbe.fit(data.values, data.groups, 2, seed=DIGITS.seed)
    fake = load_generator(finished_run, "plain").sample(64, seed=DIGITS.seed, drs=False)
    mine = float(np.mean(probe.predict(fake) == 1))
    lines = read_lines(RunDir(finished_run).metrics)
    (theirs,) = [x for x in lines if x["arm"] == "plain" and x.get("group") == "green"]
    assert theirs["value"] == mine


def test_pictures_of_every_arm(finished_run):
    found = {path.name for path in (finished_run / "generated").glob("*.png")}
    assert found == {"plain.png", "weighted.png", "weighted_drs.png"}
