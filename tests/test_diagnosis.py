import json
from math import sqrt

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan import diagnosis
from diagan.config import Score
from diagan.diagnosis import Grouping, diagnose, from_moments, read_weights
from diagan.errors import UserError
from diagan.record import LdrRecord
from diagan.rundir import RunDir

# Three records of four samples. Means 1, 2, 3, -1; variances (ddof 1) 0, 1, 4, 0.
RECORDS = [np.array(r, dtype=np.float32) for r in ([1, 1, 1, -1], [1, 2, 3, -1], [1, 3, 5, -1])]
GROUPING = Grouping(np.array([0, 0, 1, 0]), ["red", "green"], rare=1)


def test_by_hand():
    found = diagnose(RECORDS, Score(k=2.0))
    assert found.n_records == 3
    assert found.ldrm.tolist() == [1, 2, 3, -1]
    assert found.ldrv.tolist() == [0, 1, 4, 0]
    assert found.score.tolist() == [1, 4, 7, -1]  # Eq. 7
    # Floored at 0.01, so the cap is 50 x 0.01: 0.5, 0.5, 0.5, 0.01
    assert found.weights == pytest.approx(np.array([0.5, 0.5, 0.5, 0.01]) / 1.51)


def test_what_may_be_no_logits_is_asked():
    probabilities = [1 / (1 + np.exp(-r)) for r in RECORDS]
    (asked, *_) = diagnose(probabilities).warnings
    assert asked.startswith("all recorded values lie between 0 and 1: are they probabilities?")
    (said, *_) = diagnose([np.full(4, value) for value in (1.0, 2.0)]).warnings
    assert said.startswith("every record has the same value for all samples")
    told = " ".join(diagnose(RECORDS).warnings)
    assert "probabilities" not in told and "same value" not in told


def test_the_other_clip_rule_and_the_exponent_by_hand():
    found = diagnose(RECORDS, Score(k=2.0, clip="floor", exponent=2.0))
    # 1, 16, 49, 0.0001, and nothing under 49 / 50
    assert found.weights == pytest.approx(np.array([1, 16, 49, 0.98]) / 66.98)


def test_centring_takes_each_records_own_offset_off():
    drifting = [r + shift for r, shift in zip(RECORDS, (0, 10, -3))]
    for how in ("mean", "median"):
        straight, moved = (diagnose(r, Score(k=2.0, centre=how)) for r in (RECORDS, drifting))
        assert np.allclose(straight.score, moved.score)
    assert not np.allclose(diagnose(drifting, Score(k=2.0)).score, [1, 4, 7, -1])


def test_k_of_its_own():
    found = diagnose(RECORDS, Score())
    sd_ldrm = np.std([1, 2, 3, -1])
    assert found.k == pytest.approx(sd_ldrm / np.std([0, 1, 2, 0]))
    assert diagnosis.summary(found)["k_is_auto"] is True
    assert diagnosis.summary(diagnose(RECORDS, Score(k=2.0)))["k_is_auto"] is False


def test_records_are_read_one_at_a_time(tmp_path):
    record = LdrRecord(tmp_path, 4)
    for step, logits in enumerate(RECORDS):
        record.add(step, logits)
    assert np.array_equal(diagnose(record).weights, diagnose(iter(RECORDS)).weights)


def test_groups():
    found = diagnose(RECORDS, Score(k=2.0, clip="floor"), GROUPING)
    red, green = found.groups
    assert (red.name, red.n, red.share) == ("red", 3, 0.75)
    assert red.ldrm == pytest.approx(2 / 3)
    assert red.ldrv == pytest.approx(1 / 3)
    assert red.score == pytest.approx(4 / 3)
    assert green.score == pytest.approx(7)
    assert red.weight_share + green.weight_share == pytest.approx(1)
    assert green.weight_share == pytest.approx(7 / (1 + 4 + 7 + 0.14))
    assert found.rare == "green"
    assert found.auc == {"ldrm": 1.0, "ldrv": 1.0, "score": 1.0}


def test_groups_may_be_any_mask_of_the_right_length():
    mask = torch.tensor([False, False, True, False])
    found = diagnose(RECORDS, Score(k=2.0), Grouping(mask, ["common", "rare"], rare=1))
    assert found.auc["score"] == 1.0 and found.groups[1].n == 1
    with pytest.raises(UserError, match=r"the groups have shape \(3,\), but there are 4 samples"):
        diagnose(RECORDS, Score(k=2.0), Grouping(mask[:3], ["common", "rare"]))


def test_an_auc_needs_both_kinds():
    alone = Grouping(np.zeros(4, dtype=int), ["red", "green"], rare=1)
    found = diagnose(RECORDS, Score(k=2.0), alone)
    assert found.auc is None and found.rare == "green"
    assert found.groups[1].n == 0 and found.groups[1].ldrm == 0
    assert diagnose(RECORDS, Score(k=2.0), Grouping(np.zeros(4, int), ["red"])).rare is None


def test_a_sample_without_a_variance_has_a_middling_weight():
    ldrm, ldrv = np.array([1.0, 2.0, 3.0, np.nan]), np.array([0.0, 1.0, 4.0, np.nan])
    found = from_moments(ldrm, ldrv, 5, Score(k=2.0), GROUPING)
    assert found.weights[3] == pytest.approx(found.weights[:3].mean())
    assert found.weights.sum() == pytest.approx(1)
    assert "1 samples were seen too rarely for a variance" in found.warnings
    assert found.groups[0].ldrm == pytest.approx(1.5)  # of those that are known
    assert found.auc["score"] == 1.0


def test_too_few_sightings_are_refused():
    with pytest.raises(UserError, match=r"LDRV is refused for 75% of the samples, .* fewer than 4"):
        from_moments(np.ones(4), np.array([1, np.nan, np.nan, np.nan]), 2, Score())


def test_one_record_is_refused():
    with pytest.raises(UserError, match="there are 1 records"):
        diagnose(RECORDS[:1])


def test_weights_that_came_out_uniform_are_told():
    """The paper's cap at work (FACTS 12): one low score, and all others saturate."""
    noise = np.random.default_rng(0).normal(5, 0.5, (10, 1000))
    noise[:, 0] = -10
    found = diagnose(noise, Score(k=3.0))
    assert any("nearly uniform" in text for text in found.warnings)
    assert any("have the maximum weight" in text for text in found.warnings)
    assert not diagnose(noise[:, 1:] ** 2, Score(k=3.0, clip="floor", exponent=2)).warnings


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.sampled_from(["cap", "floor"]), st.floats(0, 10))
def test_weights_follow_the_score(seed, clip, k):
    records = np.random.default_rng(seed).normal(0, 2, (6, 40))
    found = diagnose(records, Score(k=k, clip=clip))
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights.max() <= 50 * found.weights.min() * (1 + 1e-9)
    order = np.argsort(found.score)
    assert (np.diff(found.weights[order]) >= 0).all()


def test_files(tmp_path):
    run = RunDir(tmp_path)
    with pytest.raises(UserError, match="it was not diagnosed yet"):
        read_weights(run)
    ldrv = np.array([0.0, 1.0, 4.0, np.nan])
    found = from_moments(np.array([1.0, 2.0, 3.0, np.nan]), ldrv, 5, Score(k=2.0), GROUPING)
    diagnosis.write(run, found, {"group": ["red", "red", "green", "red"]}, {"mode": "free"})
    table = pq.read_table(run.samples).to_pydict()
    assert list(table) == ["index", "group", "ldrm", "ldrv", "score", "weight"]
    assert table["index"] == [0, 1, 2, 3]
    assert table["ldrv"] == [0, 1, 4, None]  # refused, not a number that is none
    assert table["ldrm"] == [1, 2, 3, None]
    assert table["score"] == pytest.approx([1, 4, 7, None])
    assert np.array_equal(read_weights(run), found.weights)
    about = json.loads(run.diagnosis.read_text())
    assert (about["format"], about["mode"], about["k"], about["n"]) == (1, "free", 2.0, 4)
    assert about["groups"][1]["name"] == "green" and about["clip"] == "cap"


def test_sqrt_is_of_the_variance():
    """A slip between LDRV and its root would not show where both are 0 and 1."""
    found = from_moments(np.zeros(2), np.array([2.0, 9.0]), 3, Score(k=1.0))
    assert found.score == pytest.approx([sqrt(2), 3])
