"""The rules of the verdict, the numbers under them, and what they say of small GANs."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_runs import NASTY, Page, image_run, phase1_run, point_run

from diagan.config import MLP, Config, Optim, Penalty, SingleGaussian
from diagan.engine import launch
from diagan.errors import UserError
from diagan.evaluate import evaluate_images, without_heldout
from diagan.findings import closeness
from diagan.findings.verdict import DROPPED, MIN_GROUP, UNDER, Estimate, Evidence, Group, verdict
from diagan.metrics.shares import wilson
from diagan.report import write_report
from diagan.report.contents import Contents
from diagan.report.sections.verdict import evidence, junk_rows, representative
from diagan.stages import Stage, new_game
from diagan.train import train

FAULTS = {"collapsed", "dropped", "under_represented", "junk"}


def share(value: float, n: int = 10_000) -> Estimate:
    return Estimate(value, *wilson(value, n), n, "metrics.jsonl")


def group(name: str, of_data: float, made: float, n: int = 1_000, **others: float) -> Group:
    arms = {"plain": share(made), **{arm: share(value) for arm, value in others.items()}}
    return Group(name, n, of_data, arms)


def known(*groups: Group, **others) -> Evidence:
    return Evidence(groups=groups, judged="plain", repaired="dia", n_records=50, is_ldr=True,
                    probe_accuracy=1.0, **others)  # fmt: skip


def kinds(e: Evidence) -> list[str]:
    return [finding.kind for finding in verdict(e)]


HEALTHY = known(group("a", 0.6, 0.65), group("b", 0.4, 0.35))


# --- the rules -----------------------------------------------------------------------------------


def test_a_healthy_gan_is_fine_and_says_by_which_number():
    (found,) = verdict(HEALTHY)
    assert found.kind == "fine"
    assert found.number == 0.35 and found.low < 0.35 < found.high
    assert found.threshold == pytest.approx(UNDER * 0.4)
    assert found.confidence == "sure" and found.source == "metrics.jsonl"
    assert "b" in found.groups


@pytest.mark.parametrize(
    ("made", "expected"), [(0.0, "dropped"), (0.004, "under_represented"), (0.0095, "fine")]
)
def test_a_group_of_one_per_cent(made, expected):
    found = verdict(known(group("a", 0.99, 1 - made), group("b", 0.01, made)))[0]
    assert found.kind == expected and found.groups == ("b",)


def test_few_fakes_do_not_tell_dropped_from_rare_nor_rare_from_fine():
    rare = Group("b", 100, 0.01, {"plain": share(0.0, n=1_000)})
    assert kinds(known(group("a", 0.99, 1.0), rare))[0] == "under_represented"
    rare = Group("b", 100, 0.01, {"plain": share(0.005, n=200)})
    found = verdict(known(group("a", 0.99, 0.995), rare))
    assert [f.kind for f in found] == ["not_sure"]
    assert "too few" in found[0].claim


def test_groups_under_ten_samples_get_no_verdict():
    found = verdict(known(group("a", 0.99, 0.99), group("b", 0.01, 0.0, n=MIN_GROUP - 1),
                          group("c", 0.01, 0.01)))  # fmt: skip
    assert [f.kind for f in found] == ["fine", "not_sure"]
    assert found[1].groups == ("b",)


def test_a_probe_that_errs_makes_the_verdict_careful():
    rare = known(group("a", 0.9, 0.95), group("b", 0.1, 0.05))
    assert kinds(rare)[0] == "under_represented"
    assert kinds(replace(rare, probe_accuracy=0.75))[0] == "fine"
    assert kinds(replace(rare, probe_accuracy=0.6)) == ["not_sure"]


def test_a_weak_probe_does_not_end_in_fine_by_way_of_clusters():
    """They may all be made where a class is missing that the probe cannot see."""
    parts = tuple(group(f"kind {i}", 0.1, 0.1) for i in range(10))
    unknown = replace(HEALTHY, groups=(), kinds=parts)
    assert kinds(unknown)[0] == "fine"
    assert "fine" not in kinds(replace(unknown, probe_accuracy=0.2))


def test_samples_that_a_probe_finds_missing_need_no_groups():
    """Two folders of digits, no green among the fakes: it was called fine."""
    parts = (*(group(f"kind {i}", 0.107, 0.111) for i in range(9)), group("green", 0.035, 0.0))
    few = [replace(part, generated={"plain": share(part.generated["plain"].value, n=480)})
           for part in parts]  # fmt: skip
    unknown = replace(HEALTHY, groups=(), kinds=few)
    assert kinds(unknown) == ["not_sure"]
    found = verdict(replace(unknown, missed=share(0.04, n=1_500)))
    assert [f.kind for f in found] == ["dropped"] and found[0].number == 0.04
    assert kinds(replace(HEALTHY, missed=share(9 / 1_500, n=1_500))) == ["fine"]


def test_intervals_hold_for_many_groups_at_once():
    """A share whose own interval just clears the threshold is no finding among 100 groups."""
    limit = UNDER * 0.01
    value = next(v for v in np.arange(limit, 0, -1e-5) if wilson(v, 10_000, z=2.3)[1] < limit)
    one = known(group("a", 0.99, 0.99), group("b", 0.01, value))
    assert kinds(one)[0] == "under_represented"
    others = [group(f"g{i}", 0.01, 0.01) for i in range(99)]
    assert kinds(known(group("b", 0.01, value), *others)) == ["not_sure"]


def test_collapse_by_repetition_or_by_lost_groups():
    repeats = Estimate(60.0, 40.0, 90.0, 1_000, "generated")
    assert kinds(replace(HEALTHY, repetition=repeats))[0] == "collapsed"
    assert kinds(replace(HEALTHY, repetition=Estimate(15.0, 5.0, 40.0))) == ["fine"]
    lost = [group(f"g{i}", 0.2, 0.0) for i in range(4)]
    assert kinds(known(group("a", 0.2, 1.0), *lost))[:2] == ["collapsed", "dropped"]


def test_junk_at_the_ends():
    found = verdict(replace(HEALTHY, junk=Estimate(0.05, 0.035, 0.06, 1_000)))
    assert [f.kind for f in found] == ["junk"]
    assert found[0].claim.startswith("50 training samples look like junk")
    assert kinds(replace(HEALTHY, junk=Estimate(0.005, 0.002, 0.012, 1_000))) == ["fine"]


@pytest.mark.parametrize(
    ("dia", "expected"), [(0.04, "repaired"), (0.012, "improved"), (0.004, "not_repaired")]
)
def test_what_dia_gan_made_of_it(dia, expected):
    e = known(group("a", 0.96, 0.996, dia=1 - dia), group("b", 0.04, 0.004, dia=dia))
    assert kinds(e) == ["under_represented", expected]


def test_too_much_of_a_good_thing_is_told():
    e = known(group("a", 0.96, 1.0, dia=0.9), group("b", 0.04, 0.0, dia=0.1))
    assert "too many" in verdict(e)[1].advice


def test_without_groups_large_kinds_of_samples_are_counted():
    parts = [Group(f"kind {i}", 100, 0.1, {"plain": share(0.1, 1_000)}) for i in range(9)]
    lost = Group("kind 9", 100, 0.1, {"plain": share(0.0, 1_000)})
    less = Group("kind 9", 100, 0.1, {"plain": share(0.05, 1_000)})
    assert kinds(replace(known(), kinds=[*parts, lost])) == ["dropped"]
    found = verdict(replace(known(), kinds=[*parts, less]))  # half: a middling GAN, not a hole
    assert [f.kind for f in found] == ["fine"]
    assert "of small ones nothing is known" in found[0].claim
    assert kinds(replace(HEALTHY, kinds=[*parts, lost])) == ["fine"]  # named groups tell more


def test_scores_that_tell_little_are_told():
    assert kinds(replace(HEALTHY, is_ldr=False)) == ["fine", "not_sure"]
    assert kinds(replace(HEALTHY, n_records=1)) == ["fine", "not_sure"]


def test_what_is_not_known_is_not_claimed():
    assert kinds(Evidence()) == ["not_sure"]
    assert kinds(replace(HEALTHY, d_real=0.999, d_fake=0.001)) == ["not_sure"]
    gap = Estimate(2.0, 1.5, 2.5, 100, "calibration.json")
    assert kinds(replace(HEALTHY, ldr_gap=gap)) == ["fine", "not_sure"]
    assert kinds(replace(HEALTHY, judged="other")) == ["not_sure"]


shares = st.floats(0, 1)
estimates = st.builds(
    lambda value, width: Estimate(value, max(0.0, value - width), value + width, None),
    st.floats(0, 50), st.floats(0, 5),
)  # fmt: skip
groups = st.builds(
    lambda name, n, of_data, made, n_fake: Group(name, n, of_data, {"plain": share(made, n_fake)}),
    st.sampled_from("abcde"), st.integers(1, 40), st.floats(0.001, 1), shares,
    st.sampled_from([100, 10_000]),
)  # fmt: skip
anything = st.builds(
    Evidence, groups=st.lists(groups, max_size=4), judged=st.sampled_from(["plain", None]),
    probe_accuracy=st.none() | shares, n_records=st.none() | st.integers(1, 50),
    is_ldr=st.none() | st.booleans(), d_real=st.none() | shares, d_fake=st.none() | shares,
    repetition=st.none() | estimates, kinds=st.lists(groups, max_size=3),
    junk=st.none() | estimates,
)  # fmt: skip


@given(anything)
@settings(max_examples=200, deadline=None)
def test_there_is_always_a_verdict_and_it_does_not_contradict_itself(e):
    found = verdict(e)
    assert found
    severe = [f for f in found if f.kind in FAULTS]
    assert found[: len(severe)] == severe
    assert not (severe and "fine" in kinds(e))
    for f in found:
        assert f.claim.endswith(".")
        if f.low is not None:
            assert f.low - 1e-9 <= f.number <= f.high + 1e-9
        if f.kind in ("dropped", "under_represented") and f.groups:
            assert all(g.n >= MIN_GROUP for g in e.groups if g.name in f.groups) or len(
                {g.name for g in e.groups}) < len(e.groups)  # fmt: skip


@given(st.floats(0.02, 0.5), shares, shares)
@settings(max_examples=50, deadline=None)
def test_making_less_of_a_group_never_looks_better(of_data, first, second):
    order = ["dropped", "under_represented", "not_sure", "fine"]
    more, less = max(first, second) * of_data, min(first, second) * of_data
    first_kinds = [
        kinds(known(group("a", 1 - of_data, 1 - made), group("b", of_data, made)))[0]
        for made in (less, more)
    ]
    rank = [order.index(kind) for kind in first_kinds]
    assert rank[0] <= rank[1]
    assert DROPPED < UNDER


# --- the numbers under them ----------------------------------------------------------------------


def test_repetition_is_one_for_sets_of_one_origin_and_large_for_a_few_prototypes():
    random = np.random.default_rng(0)
    real, fake = random.normal(size=(2, 600, 4))
    value, low, high = closeness.repetition(real=real, fake=fake)
    assert low < 1 < high and low < value < high
    few = fake[:10][random.integers(10, size=600)] + 0.01 * random.normal(size=(600, 4))
    assert closeness.repetition(real=real, fake=few)[1] > 30
    assert closeness.repetition(real=real, fake=100 * fake)[0] == 0
    with pytest.raises(UserError, match="as many of both"):
        closeness.repetition(real=real, fake=fake[:10])


def test_the_interval_of_repetition_holds_the_truth_as_often_as_it_says():
    random = np.random.default_rng(1)
    n_held = 0
    for _ in range(60):
        real, fake = random.normal(size=(2, 200, 3))
        _, low, high = closeness.repetition(real=real, fake=fake)
        n_held += low <= 1 <= high
    assert n_held >= 52


def test_a_kind_that_is_left_out_has_no_fakes():
    random = np.random.default_rng(3)
    centres = 10 * random.normal(size=(10, 6))
    real = np.repeat(centres, 60, axis=0) + random.normal(size=(600, 6))
    fake = np.repeat(centres[1:], 50, axis=0) + random.normal(size=(450, 6))
    n_real, n_fake = closeness.kinds(real=real, fake=fake)
    assert n_real.sum() == 600 and n_fake.sum() == 450
    assert (n_fake == 0).sum() == 1 and n_real.min() == 60


def test_image_features_are_means_of_blocks():
    images = np.zeros((2, 32, 48, 3), dtype=np.uint8)
    images[0, :2, :3] = 255
    found = closeness.image_features(images)
    assert found.shape == (2, 16 * 16 * 3)
    assert found[0, :3].tolist() == [1, 1, 1] and found[0, 3:].sum() == 0


def test_representative_samples_are_spread_like_the_scores():
    random = np.random.default_rng(4)
    score = random.normal(size=5_000)
    highest = np.argsort(-score)[:1_000]
    index = np.unique(np.r_[highest, random.permutation(5_000)[:1_500]])
    chosen = index[representative(score, index)]
    assert len(chosen) == len(set(chosen)) > 800
    assert abs(np.mean(np.isin(chosen, highest)) - 0.2) < 0.02


# --- small GANs ----------------------------------------------------------------------------------

MODES = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.6]], dtype=np.float32)


def points(shares_of_modes, n=3_000, seed=0):
    """Three Gaussians in the plane: points [n, 2] and their modes."""
    random = np.random.default_rng(seed)
    modes = random.permutation(
        np.repeat(np.arange(3), np.round(np.array(shares_of_modes) * n).astype(int))
    )
    return MODES[modes] + random.normal(0, 0.25, (len(modes), 2)).astype(np.float32), modes


def gan_on(values, steps=300):
    """The points of a GAN of seconds, [2000, 2]."""
    config = Config(
        data=SingleGaussian(n=len(values)), network=MLP(width=48, latent=4), steps=steps,
        phase1_share=1.0, batch_size=128, optim=Optim(lr=3e-3, betas=(0.5, 0.9), decay="linear"),
        penalty=Penalty(r1=0.1), device="cpu", precision="float32",
    )  # fmt: skip
    import torch

    game = new_game(config, without_heldout(values), launch(config), Stage("phase1", 0, steps))
    train(game, steps)
    with torch.no_grad():
        return game.g.net(torch.randn(2_000, 4, generator=torch.Generator().manual_seed(1))).numpy()


def judged(values, modes, fake):
    """The verdict from the points alone, as the page has it from a run's files."""
    data = without_heldout(values, modes, ("left", "right", "top"))
    lines = evaluate_images(real=data, fake=fake, names=["shares2k"])
    made = {line["group"]: {"plain": share(line["value"], 2_000)} for line in lines}
    found = [Group(name, int(np.sum(modes == i)), float(np.mean(modes == i)), made[name])
             for i, name in enumerate(data.group_names)]  # fmt: skip
    repeats = closeness.repetition(real=values[:1_000], fake=fake[:1_000])
    return verdict(known(*found, repetition=Estimate(*repeats)))[0]


def test_gans_of_two_dimensions():
    values, modes = points([0.4, 0.35, 0.25])
    assert judged(values, modes, gan_on(values)).kind == "fine"
    lost = judged(values, modes, gan_on(values[modes != 2], steps=200))
    assert (lost.kind, lost.groups) == ("dropped", ("top",))
    alone = np.repeat(values[:1], 300, axis=0)
    assert judged(values, modes, gan_on(alone, steps=100)).kind == "collapsed"


# --- the page ------------------------------------------------------------------------------------


def test_the_page_begins_with_the_verdict_and_report_json_has_it(tmp_path):
    run = image_run(tmp_path / "run", n=400, n_rare=12)
    write_report(run.path)
    stored = json.loads((run.path / "report.json").read_text())["verdict"]
    assert [f["kind"] for f in stored] == ["under_represented", "repaired"]
    assert stored[0]["groups"] == ["green"] and stored[0]["number"] == 0.004
    assert stored[1]["number"] == 0.028  # by rejection, which is what Dia-GAN ends with
    page = Page(run.report.read_text())
    assert page.text.index("Verdict") < page.text.index("LDR map")
    claim = "green is generated more rarely than the data have it: 0.4 % of what is generated, 3 %"
    assert claim in page.text


def test_names_in_the_verdict_are_only_words(tmp_path):
    run = image_run(tmp_path / "run", names=NASTY, n=400, n_rare=12)
    write_report(run.path)
    html = run.report.read_text()
    assert NASTY[1] not in html
    assert f"{NASTY[1]} is generated more rarely" in Page(html).text


def test_six_samples_of_a_group_get_no_verdict(tmp_path):
    run = image_run(tmp_path / "run")
    found = verdict(evidence(Contents(run)))
    assert [f.kind for f in found] == ["not_sure", "not_sure"]
    assert "No verdict on green: under 10 samples." in [f.claim for f in found]


def test_evidence_of_points_comes_from_their_shares(tmp_path):
    run = point_run(tmp_path / "run")
    found = evidence(Contents(run))
    assert len(found.groups) == 25 and found.repetition is None
    assert [f.kind for f in verdict(found)] == ["not_sure"]


def test_folders_that_hold_little_have_a_verdict_too(tmp_path):
    alone = phase1_run(tmp_path / "alone")  # no diagnosis, nothing measured
    assert [f.kind for f in verdict(evidence(Contents(alone)))] == ["not_sure"]
    foreign = image_run(tmp_path / "foreign", n=400, n_rare=12)
    foreign.config.unlink()
    assert verdict(evidence(Contents(foreign)))[0].kind == "under_represented"


def test_pictures_of_reals_and_fakes_are_compared(tmp_path):
    """A thousand fakes that are eight pictures: collapsed, whatever the groups are."""
    random = np.random.default_rng(5)
    run = image_run(tmp_path / "run", n=400, n_rare=12)
    images = random.integers(0, 256, (400, 16, 16, 3), dtype=np.uint8)
    np.savez(run.thumbnails, index=np.arange(400), images=images)
    np.savez(run.generated / "plain.npz", images=images[random.integers(8, size=1_000)])
    found = evidence(Contents(run))
    assert found.repetition.low > 10 and found.repetition.source.endswith("generated/plain.npz")
    assert len(found.kinds) == 10
    assert verdict(found)[0].kind == "collapsed"
    np.savez(run.generated / "plain.npz", images=images[random.permutation(400)])
    assert evidence(Contents(run)).repetition.high < 10


def test_junk_at_the_low_end_is_found_and_shown(tmp_path):
    """The flags know the high scores alone; a smooth D gives junk the lowest LDR."""
    random = np.random.default_rng(6)
    run = image_run(tmp_path / "run", n=400, n_rare=12)
    images = np.full((400, 16, 16, 3), 40, dtype=np.uint8)
    images[:, 4:12, 4:12] = random.integers(80, 200, (400, 2, 2, 3)).repeat(4, 1).repeat(4, 2)
    images[:20] = random.integers(0, 256, (20, 16, 16, 3))  # rows of the lowest scores: noise
    np.savez(run.thumbnails, index=np.arange(400), images=images)
    table = pq.read_table(run.samples)
    flags = np.where(np.arange(400) >= 360, "rare", "")
    pq.write_table(table.append_column("flag", pa.array(flags)), run.samples)
    contents = Contents(run)
    rows, n_looked = junk_rows(contents)
    assert sorted(rows) == list(range(20)) and n_looked == 80
    assert "junk" in [f.kind for f in verdict(evidence(contents))]
    write_report(run.path)
    page = run.report.read_text()
    assert "20 training samples look like junk" in page
