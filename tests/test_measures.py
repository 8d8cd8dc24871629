import numpy as np
import pytest
import torch

from diagan import metrics
from diagan.data import Dataset
from diagan.errors import UserError
from diagan.features import Features, Own, Pixels
from diagan.measures import N_PICTURES, Fakes, Reals, Subset, measure, watch
from diagan.protocols import parse, parse_all


def images(n, seed, level=128):
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal(level, 40, (n, 1, 4, 4)), 0, 255).astype(np.uint8)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """60 dark images and 20 bright ones, and 12 held out."""
    monkeypatch.setenv("DIAGAN_CACHE", str(tmp_path))
    values = np.concatenate([images(60, 1, 90), images(20, 2, 200)])
    groups = np.repeat([0, 1], [60, 20])
    return Dataset(values, groups, ("dark", "bright"), images(12, 3), np.zeros(12, int), "print-1")


@pytest.fixture
def real(data):
    subsets = [
        Subset(name, np.flatnonzero(data.groups == i)) for i, name in enumerate(data.group_names)
    ]
    return Reals(data, Pixels((1, 4, 4)), 0, subsets, scores=data.values.mean(axis=(1, 2, 3)))


def found(name, real, fake):
    protocol = parse(name)
    return list(measure(protocol, real=real, fake=watch([fake], real.extractor, [protocol])))


def flat(values):
    return values.reshape(len(values), -1).astype(np.float32) / 255


def test_fid_is_that_of_the_features(data, real):
    fake = images(50, 4)
    (line,) = found("fid50_train", real, fake)
    assert line["value"] == pytest.approx(metrics.fid(real=flat(data.values), fake=flat(fake)))
    assert (line["n_real"], line["split"]) == (80, "train")
    with pytest.warns(UserWarning, match="singular"):
        (line,) = found("fid50_heldout", real, fake)
    assert line["n_real"] == 12


def test_only_the_first_n_fakes_count(real):
    fake = images(60, 4)
    protocols = parse_all(["fid40_train", "kid50_train", "pr30_k3"])
    once = watch([fake[:33], fake[33:]], real.extractor, protocols)
    for protocol in protocols:
        alone = watch([fake[: protocol.n]], real.extractor, [protocol])
        for mine, theirs in zip(measure(protocol, real=real, fake=once),
                                measure(protocol, real=real, fake=alone)):  # fmt: skip
            assert mine["value"] == pytest.approx(theirs["value"], rel=1e-9)


def test_what_streams_is_not_kept(real):
    protocols = parse_all(["fid1200_train", "kid50_train"])
    fakes = watch([images(1_200, 5)], real.extractor, protocols)
    assert len(fakes.features) == 50 and len(fakes.samples) == N_PICTURES


def test_only_what_a_metric_needs_is_looked_at(real):
    """The autoencoder of 50,000 images needs their pixels, and not 50,000 times the extractor."""
    seen = []

    class Counting(Pixels):
        def __call__(self, batch):
            seen.append(len(batch))
            return super().__call__(batch)

    extractor, fake = Counting((1, 4, 4)), images(3_000, 6)
    fakes = watch([fake[:1_700], fake[1_700:]], extractor, parse_all(["re3k_epochs1"]))
    assert sum(seen) == N_PICTURES and fakes.n == 3_000
    assert np.array_equal(fakes.samples, fake)
    seen.clear()
    watch([fake[:1_700], fake[1_700:]], extractor, parse_all(["re3k_epochs1", "fid2k_train"]))
    assert sum(seen) == 2_000


def test_precision_and_recall_tell_a_collapse(real):
    collapsed = np.repeat(images(1, 1, 90), 40, axis=0) + (np.arange(40) % 3).astype(
        np.uint8
    ).reshape(-1, 1, 1, 1)
    precision, recall = found("pr40_k3", real, collapsed)
    assert (precision["metric"], recall["metric"]) == ("precision", "recall")
    assert precision["value"] > 0.9 and recall["value"] < 0.1


def test_partial_recall_by_group(data, real):
    dark, bright = found("partial_recall40_k3", real, images(40, 6, 90))
    # at most as many reals as fakes
    assert [(x["group"], x["n_real"]) for x in (dark, bright)] == [("dark", 40), ("bright", 20)]
    assert dark["value"] > 0.7 and bright["value"] < 0.1
    mine = metrics.partial_recall(
        real=flat(data.values), fake=flat(images(40, 6, 90)), subset=np.arange(40)
    )
    assert dark["value"] == mine and dark["low"] <= mine <= dark["high"]


def test_a_group_of_few_has_no_interval(data, real):
    few = Reals(data, real.extractor, 0, [Subset("few", np.arange(9))])
    (line,) = found("partial_recall40_k3", few, images(40, 6, 90))
    assert "low" not in line and line["n_real"] == 9
    assert found("group_fid40", few, images(40, 6, 90)) == []


def test_partial_fid_of_the_highest_and_the_lowest_scored(data, real):
    fake = images(60, 6, 90)
    with pytest.warns(UserWarning, match="singular"):
        high, low = found("partial_fid60_ends15", real, fake)
    assert (high["group"], low["group"]) == ("highest scored", "lowest scored")
    assert high["value"] > low["value"] and high["low"] < high["value"] < high["high"]
    order = np.argsort(real.scores)
    with pytest.warns(UserWarning, match="singular"):
        assert high["value"] == pytest.approx(
            metrics.fid(real=flat(data.values[order[-15:]]), fake=flat(fake))
        )
    scores = np.where(np.arange(data.n) % 4, real.scores, np.nan)  # some were seen too seldom
    some = Reals(data, real.extractor, 0, scores=scores)
    order = order[np.isfinite(scores[order])]
    with pytest.warns(UserWarning, match="singular"):
        _, low = found("partial_fid60_ends15", some, fake)
        assert low["value"] == pytest.approx(
            metrics.fid(real=flat(data.values[order[:15]]), fake=flat(fake))
        )
    with pytest.raises(UserError, match="needs scores"):
        found("partial_fid60_ends15", Reals(data, real.extractor, 0), fake)


def test_shares_by_a_probe_on_features(real):
    dark, bright = found("shares40", real, np.concatenate([images(30, 7, 90), images(10, 8, 200)]))
    assert (dark["value"], bright["value"]) == (0.75, 0.25)
    assert bright["low"] < 0.25 < bright["high"] and bright["probe_accuracy"] > 0.95


def test_missing_modes_name_training_samples(tmp_path, monkeypatch):
    monkeypatch.setenv("DIAGAN_CACHE", str(tmp_path))
    values = np.concatenate([images(700, 1, 60), images(100, 2, 220)])
    data = Dataset(values, np.repeat([0, 1], [700, 100]), ("dark", "bright"), values[:0],
                   np.zeros(0, int), "print-3")  # fmt: skip
    (line,) = found("missing600", Reals(data, Pixels((1, 4, 4)), 0), images(600, 3, 60))
    (mode,) = line["modes"]
    assert (line["value"], line["n_real"]) == (1, 600)
    assert min(mode["examples"]) >= 700 and mode["fake_share"] < 0.01 < mode["real_share"]


@pytest.mark.slow
def test_reconstruction_error_is_larger_for_what_is_not_generated(tmp_path, monkeypatch):
    monkeypatch.setenv("DIAGAN_CACHE", str(tmp_path))
    rng = np.random.default_rng(0)
    darks, brights = (rng.integers(a, a + 30, (128, 1, 8, 8), np.uint8) for a in (10, 215))
    dark, bright = darks[:20], brights[:20]
    data = Dataset(np.concatenate([dark, bright]), np.repeat([0, 1], 20), ("dark", "bright"),
                   dark[:0], np.zeros(0, int), "print-2")  # fmt: skip
    subsets = [Subset("dark", np.arange(20)), Subset("bright", np.arange(20, 40))]
    real = Reals(data, Pixels((1, 8, 8)), 0, subsets)
    *published, first, second = found("re128_epochs15", real, darks)
    assert first["metric"] == "reconstruction_error" and first["value"] < second["value"] / 2
    assert [x["metric"] for x in published] == ["reconstruction_error_as_published"] * 2
    assert published[0]["value"] != first["value"]
    assert first["precision"] in ("bfloat16", "float32")


def test_inception_score_needs_classes(real):
    fake, protocols = images(20, 9), parse_all(["is20"])
    with pytest.raises(UserError, match="no classes"):
        watch([fake], real.extractor, protocols)
    fakes = Fakes(protocols)
    fakes.add(fake, Features(torch.zeros(20, 3), torch.zeros(20, 7)))
    (line,) = measure(protocols[0], real=real, fake=fakes)
    assert line["value"] == pytest.approx(1)


def test_real_features_are_computed_once(data):
    calls = []

    def net(batch):
        calls.append(len(batch))
        return batch.flatten(1).float()

    own = Own(net, "own", data.values[:1], version="1")
    calls.clear()
    for _ in range(2):
        found("fid30_train", Reals(data, own, 0), images(30, 1))
    assert sum(calls) == 80 + 30 + 30  # the second time from the cache


def test_points_are_their_own_features():
    points = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    data = Dataset(points, np.zeros(300, int), ("all",), points[:0], np.zeros(0, int), "points")
    (line,) = found("fid300_train", Reals(data, None, 0), points + np.float32([1, 0]))
    assert line["value"] == pytest.approx(1, rel=1e-4)
    with pytest.raises(UserError, match="no held-out"):
        found("fid300_heldout", Reals(data, None, 0), points)
