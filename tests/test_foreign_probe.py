from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from diagan import ldr
from diagan.errors import UserError
from diagan.findings.calibration import Line
from diagan.foreign.probe import (
    Layer,
    Probed,
    ProbeSettings,
    Ratio,
    at_least,
    cross_fit,
    density_ratio,
    generated_shares,
    power,
    prepare,
    share_intervals,
    split,
    tail,
)


def fitted(real, fake, s=None, seed=0):
    s = s or QUICK
    return cross_fit(prepare(real=real, fake=fake, settings=s, seed=seed), s, seed)


QUICK = ProbeSettings(n_filters=12, n_records=6, window=4)


def squares(n, seed, bright):
    """Grey images 16x16: a square at a random place, bright in a share of them, else dim."""
    rng = np.random.default_rng(seed)
    is_bright = np.arange(n) < round(bright * n)
    images = rng.integers(0, 40, (n, 1, 16, 16)).astype(np.uint8)
    for image, shines in zip(images, is_bright):
        y, x = rng.integers(0, 9, size=2)
        image[0, y : y + 7, x : x + 7] += 200 if shines else 80
    return images, is_bright.astype(np.int64)


@pytest.fixture(scope="module")
def missing():
    """A tenth of the reals is bright, none of the fakes."""
    real, groups = squares(600, 0, 0.1)
    fake, _ = squares(500, 1, 0.0)
    return fitted(real, fake), groups


def test_what_the_fakes_lack_scores_highest(missing):
    found, groups = missing
    assert ldr.auc(found.centred()[found.window].mean(axis=0), groups == 1) > 0.97


def test_its_generated_share_is_estimated_lower_than_in_the_data(missing):
    """Not as low as it is: from 30 bright squares a fold the probe does not become sure."""
    found, groups = missing
    value, low, high = share_intervals(density_ratio(found), groups, 2, seed=0)
    assert value[1] < 0.06 and low[1] <= value[1] <= high[1] < 0.1
    assert value.sum() == pytest.approx(1)


def test_no_claim_where_both_sets_are_alike():
    (real, groups), (fake, _) = squares(600, 2, 0.1), squares(600, 3, 0.1)
    found = fitted(real, fake)
    value, _, high = share_intervals(density_ratio(found), groups, 2, seed=0)
    assert value[1] > 0.07 and high[1] > 0.09
    assert found.loss > 0.67  # ln 2 less what chance may give


def test_a_few_that_are_missing_fill_the_tail():
    """They hardly move the AUC, and nothing of the kind is claimed where both sets are alike."""
    (real, _), (fake, _) = squares(600, 40, 0.08), squares(600, 41, 0.0)
    found = fitted(real, fake)
    looks = found.looks
    is_real = np.arange(1_200) < 600
    assert ldr.auc(np.concatenate([looks["heldout"], looks["fake"]]), is_real) < 0.55
    highest = tail(found)
    assert highest.real >= 0.9 * highest.n and highest.chance < 1e-3
    alike = [tail(fitted(squares(600, seed, 0.1)[0], squares(600, seed + 1, 0.1)[0]))
             for seed in (10, 20, 30)]  # fmt: skip
    assert all(t.chance > 1e-2 for t in alike)


@given(st.integers(1, 30), st.floats(0.05, 0.95), st.integers(0, 30))
def test_the_chance_of_so_many_hits(n, share, k):
    k = min(k, n)
    assert at_least(k, n, share) == pytest.approx(binom.sf(k - 1, n, share), rel=1e-6, abs=1e-12)


@pytest.mark.slow
def test_whether_an_absence_would_be_noticed():
    """Bright squares are seen; a group that is nothing but a number is not."""
    real, bright = squares(600, 0, 0.2)
    fake, _ = squares(300, 1, 0.0)
    between = prepare(real=real, fake=fake, settings=QUICK, seed=0)
    by_chance = (np.random.default_rng(0).random(600) < 0.2).astype(np.int64)
    seen, unseen = (power(between, groups, 1, QUICK, 0) for groups in (bright, by_chance))
    assert seen > 0.5 > 0.2 > unseen
    assert power(between, np.zeros(600, np.int64), 0, QUICK, 0) is None  # nobody would be left


def test_each_record_is_centred_on_the_fakes_of_its_fold(missing):
    found, _ = missing
    centred = found.centred()
    for fold in (0, 1):
        ours, theirs = found.real_fold == fold, found.fake_fold == fold
        off = found.real[:, ours] - centred[:, ours]
        means = found.fake[:, theirs].mean(axis=1)[:, None]
        np.testing.assert_allclose(off, np.broadcast_to(means, off.shape), atol=1e-5)


def test_a_layer_learns_from_its_own_half_alone():
    """What lies in the other half, which it will score, can be anything."""
    x = torch.randn(60, 5, generator=torch.Generator().manual_seed(0)).half()
    learnt = np.arange(0, 60, 2)
    changed = x.clone()
    changed[1::2] = 7
    layers = [Layer(values, learnt, 40, QUICK, seed=3) for values in (x, changed)]
    for layer in layers:
        layer.go_on(30)
    assert torch.equal(layers[0].weights, layers[1].weights)
    assert layers[0].weights.abs().min() > 0
    # and more decay leaves smaller weights
    assert layers[0].weights.norm(dim=0).diff().min() > 0


def test_going_on_in_parts_is_the_same_as_at_once():
    x = torch.randn(60, 5, generator=torch.Generator().manual_seed(0)).half()
    one, other = (Layer(x, np.arange(60), 40, QUICK, seed=3) for _ in range(2))
    one.go_on(20)
    for until in (3, 11, 20):
        other.go_on(until)
    assert torch.equal(one.weights, other.weights)


def test_training_reals_score_no_less_than_held_out_ones(missing):
    looks = missing[0].looks
    assert looks["train"].mean() > looks["heldout"].mean() - 0.05


@pytest.mark.slow
def test_the_same_seed_gives_the_same_record():
    (real, _), (fake, _) = squares(60, 6, 0.1), squares(50, 7, 0.0)
    quick = replace(QUICK, n_records=2, window=2)
    one, same, other = (fitted(real, fake, quick, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.real, same.real) and not np.array_equal(one.real, other.real)


def test_copies_share_a_fold_across_the_sets():
    (real, _), (fake, _) = squares(80, 8, 0.5), squares(80, 9, 0.5)
    fake[:20] = real[:20]
    real[70:] = real[:10]
    ours, theirs = split(real=real, fake=fake, seed=0)
    assert np.array_equal(ours[:20], theirs[:20]) and np.array_equal(ours[70:], ours[:10])
    assert abs(ours.mean() - 0.5) < 0.1 and abs(theirs.mean() - 0.5) < 0.1


def test_too_few_and_unlike_images_are_refused():
    real, _ = squares(60, 10, 0.1)
    with pytest.raises(UserError, match="at least 20"):
        fitted(real, real[:5])
    with pytest.raises(UserError, match="same size"):
        fitted(real, np.zeros((60, 1, 12, 12), np.uint8))
    with pytest.raises(UserError, match="copies of one image"):
        fitted(np.repeat(real[:1], 60, axis=0), real)


# --- the ratio -----------------------------------------------------------------------------------


def probed(real, fake, real_fold, fake_fold):
    rows = [np.stack([v, v]).astype(np.float32) for v in (real, fake, real[:10])]
    return Probed(np.array([1, 2]), rows[0], rows[1], real_fold, fake_fold, rows[2],
                  slice(0, 2), 0.01)  # fmt: skip


def test_what_is_hardly_ever_made_is_told_by_the_ratio_and_not_by_the_distance_to_the_fakes():
    """Logits of N(1.2, 2.4) and N(-1.2, 2.4) are their own LDR: over ln 10 are 24 % of the first.

    Measured from the mean of the fakes, which is no ratio of 1, it was 53 %.
    """
    rng = np.random.default_rng(0)
    real, fake = rng.normal(1.2, 2.4**0.5, 20_000), rng.normal(-1.2, 2.4**0.5, 20_000)
    fold = np.arange(20_000) % 2
    found = density_ratio(probed(real, fake, fold, fold))
    assert found.n_under(0.1) / 20_000 == pytest.approx(0.238, abs=0.02)


def test_ratios_average_one_over_the_fakes_of_each_fold():
    rng = np.random.default_rng(0)
    real, fake = rng.normal(0.5, 1, 400), rng.normal(-0.5, 1, 300)
    folds = np.arange(400) % 2, np.arange(300) % 2
    fake[folds[1] == 1] += 3  # a fold whose layer has another offset
    real[folds[0] == 1] += 3
    found = density_ratio(probed(real, fake, *folds))
    for fold in (0, 1):
        assert np.exp(found.fake[folds[1] == fold]).mean() == pytest.approx(1)


def test_a_probe_that_learnt_the_contrary_counts_for_nothing():
    rng = np.random.default_rng(0)
    real, fake = rng.normal(-1, 1, 200), rng.normal(1, 1, 200)
    found = density_ratio(probed(real, fake, np.arange(200) % 2, np.arange(200) % 2))
    assert np.allclose(found.fake, 0) and np.allclose(found.real, 0)


def test_shares_from_a_known_ratio():
    """p has 10 % of group 1, q 2 %: LDR log 5 there, log(90/98) elsewhere."""
    groups = (np.arange(1000) < 100).astype(np.int64)
    ratio = np.where(groups == 1, np.log(0.10 / 0.02), np.log(0.90 / 0.98))
    np.testing.assert_allclose(generated_shares(ratio, groups, 2), [0.98, 0.02])


@settings(max_examples=25)
@given(st.lists(st.floats(-5, 5), min_size=12, max_size=40), st.floats(-9, 9))
def test_shares_sum_to_one_and_no_offset_matters(values, offset):
    ratio = np.array(values)
    groups = np.arange(len(ratio)) % 3
    shares = generated_shares(ratio, groups, 3)
    assert shares.sum() == pytest.approx(1) and (shares >= 0).all()
    np.testing.assert_allclose(generated_shares(ratio + offset, groups, 3), shares, atol=1e-9)


def test_intervals_narrow_with_more_fakes():
    groups = np.arange(400) % 4
    line = Line(1, 1, 1, 0)
    few, many = (
        share_intervals(Ratio(np.zeros(400), np.zeros(m), line), groups, 4, seed=0)
        for m in (50, 50_000)
    )
    assert np.all(few[2] - few[1] > many[2] - many[1])
