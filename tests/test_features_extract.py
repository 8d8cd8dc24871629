from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import DIGITS, POINTS, data_of
from torch import nn

from diagan.checkpoint_diagnosis import diagnose_checkpoint
from diagan.config import DCGAN, ColoredMnist, Methods, Record, to_json
from diagan.data.dataset import fingerprint
from diagan.errors import UserError
from diagan.features import (
    NAMES,
    DiscriminatorFeatures,
    Own,
    Pixels,
    best_for,
    by_name,
    cached_features,
    extract,
)
from diagan.networks import build
from diagan.rundir import RunDir, open_run, write_json

IMAGES = np.random.default_rng(0).integers(0, 256, (7, 3, 16, 16), dtype=np.uint8)
SHAPE = IMAGES.shape[1:]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DIAGAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def features_of(extractor, images=IMAGES, batch_size=3):
    return torch.cat([found.features for found in extract(extractor, images, batch_size)])


# --- running images through an extractor ---------------------------------------------------------


def test_batches_and_parts_change_nothing():
    whole = features_of(Pixels(SHAPE), IMAGES, 100)
    assert whole.dtype == torch.float32
    assert torch.equal(features_of(Pixels(SHAPE), IMAGES, 2), whole)
    assert torch.equal(features_of(Pixels(SHAPE), iter([IMAGES[:4], IMAGES[4:]]), 3), whole)


def test_extraction_is_a_stream():
    def parts():
        yield IMAGES[:2]
        raise AssertionError("read ahead")

    assert len(next(extract(Pixels(SHAPE), parts(), 2)).features) == 2


@pytest.mark.parametrize(
    "images", [IMAGES / 255, IMAGES[0], IMAGES[:, :2], IMAGES[:, :, :0], IMAGES.astype(np.int64)]
)
def test_what_is_no_image_is_refused(images):
    with pytest.raises(UserError, match=r"expected images as uint8 \[N, C, H, W\]"):
        next(extract(Pixels(SHAPE), images))


def test_pixels():
    assert Pixels(SHAPE).dim == 768
    found = features_of(Pixels(SHAPE)).numpy()
    assert np.allclose(found, IMAGES.reshape(7, -1) / 255)


# --- a discriminator's features ------------------------------------------------------------------


def small_d(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return build(DCGAN(width=0.125), SHAPE)[1]


def test_the_logit_follows_from_the_features_in_eval_mode():
    d = small_d()
    extractor = DiscriminatorFeatures(d, SHAPE)
    found = features_of(extractor)
    assert found.shape == (7, extractor.dim) and not extractor.published
    assert torch.equal(features_of(extractor), found)  # no dropout
    assert d.training  # the caller's own is left alone
    logits = d.eval()(torch.from_numpy(IMAGES).float() / 127.5 - 1).logits
    assert torch.allclose(d.logit(found)[:, 0], logits, atol=1e-5)


@pytest.mark.parametrize("norm", ["batch", "spectral"])
def test_its_version_is_its_weights(norm):
    d = build(DCGAN(width=0.125, d_norm=norm), SHAPE)[1]
    extractor = DiscriminatorFeatures(d, SHAPE)
    before = features_of(extractor)
    assert DiscriminatorFeatures(d, SHAPE).version == extractor.version
    with torch.no_grad():
        next(d.parameters()).add_(1)  # trains on
    assert DiscriminatorFeatures(d, SHAPE).version != extractor.version
    assert torch.equal(features_of(extractor), before)


# --- anyone's own --------------------------------------------------------------------------------


def test_a_network_of_ones_own_in_eval_mode():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.dropout = nn.Dropout()

        def forward(self, images):
            return self.dropout(images.double().mean(dim=(2, 3)))

    net = Net()
    extractor = Own(net, "means", IMAGES[:2])
    assert extractor.dim == 3 and net.training
    assert np.allclose(features_of(extractor), IMAGES.mean(axis=(2, 3)))


def test_a_callable_that_speaks_numpy():
    extractor = Own(lambda x: x.numpy().mean(axis=(2, 3), dtype=np.float32), "means", IMAGES[:2])
    assert extractor.dim == 3 and features_of(extractor).shape == (7, 3)


@pytest.mark.parametrize(
    "wrong", [lambda x: x.float(), lambda x: x.flatten(1), lambda x: torch.zeros(1, 3)]
)
def test_what_gives_no_features_is_refused(wrong):
    with pytest.raises(UserError, match=r"extractor odd gave .* expected floats \[2, F\]"):
        Own(wrong, "odd", IMAGES[:2])


def test_nan_features_name_the_extractor():
    extractor = Own(lambda x: x.flatten(1) / 0.0, "odd", IMAGES[:2])  # 0 / 0 and x / 0
    with pytest.raises(UserError, match="extractor odd gave NaN or infinite features"):
        features_of(extractor)


def test_a_name_that_could_leave_the_cache():
    with pytest.raises(UserError, match="expected letters"):
        Own(lambda x: x.flatten(1).float(), "../odd", IMAGES[:2])


# --- the cache -----------------------------------------------------------------------------------


class Counting(Pixels):
    """Pixels, and how many images were ever computed."""

    def __init__(self, version="1"):
        super().__init__(SHAPE)
        self.version, self.n = version, 0

    def __call__(self, images):
        self.n += len(images)
        return super().__call__(images)


def test_the_second_call_computes_nothing(cache):
    extractor, heard = Counting(), []
    key = fingerprint(IMAGES)
    first = cached_features(extractor, IMAGES, key, batch_size=2, on_batch=heard.append)
    assert extractor.n == 7 and heard == [2, 2, 2, 1]
    assert first.dtype == np.float32 and np.array_equal(first, features_of(Pixels(SHAPE)).numpy())
    second = cached_features(extractor, IMAGES, key, batch_size=5)
    assert extractor.n == 7 and np.array_equal(first, second)
    assert isinstance(second, np.memmap)
    assert {p.parent.name for p in cache.rglob("*.npy")} == {"features"}


def test_everything_that_matters_is_in_the_key(cache):
    cached_features(Counting(), IMAGES, "data")

    def computes(extractor, *args, **kwargs):
        cached_features(extractor, *args, **kwargs)
        return extractor.n

    assert computes(Counting(), IMAGES, "data") == 0
    assert computes(Counting(version="2"), IMAGES, "data") == 7
    assert computes(Counting(), IMAGES, "other data") == 7
    assert computes(Counting(), IMAGES, "data", indices=np.array([1, 2])) == 2
    assert computes(Counting(), IMAGES, "data", indices=np.array([2, 1])) == 2
    assert computes(Counting(), IMAGES[:5], "data") == 5
    renamed = Counting()
    renamed.name = "other"
    assert computes(renamed, IMAGES, "data") == 7


def test_chosen_images_in_the_order_given(cache):
    chosen = np.array([5, 0, 5])
    found = cached_features(Pixels(SHAPE), IMAGES, "data", indices=chosen)
    assert np.array_equal(found, features_of(Pixels(SHAPE), IMAGES[chosen]).numpy())


def test_a_garbled_copy_is_computed_again(cache):
    first = np.array(cached_features(Counting(), IMAGES, "data"))
    (path,) = cache.rglob("*.npy")
    path.write_bytes(path.read_bytes()[:-5] + b"wrong")
    extractor = Counting()
    assert np.array_equal(cached_features(extractor, IMAGES, "data"), first)
    assert extractor.n == 7


def test_without_a_version_nothing_is_cached(cache):
    extractor = Counting(version="")
    for _ in range(2):
        found = cached_features(extractor, IMAGES, "data")
        assert np.array_equal(found, features_of(Pixels(SHAPE)).numpy())
    assert extractor.n == 14 and not cache.exists()


def test_bad_features_are_not_cached(cache):
    extractor = Own(lambda x: x.flatten(1) / 0.0, "odd", IMAGES[:2], version="1")
    with pytest.raises(UserError, match="odd gave NaN"):
        cached_features(extractor, IMAGES, "data")
    assert not list(cache.rglob("*.npy"))


# --- by name, and the one to fall back to --------------------------------------------------------


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(UserError, match=f"no extractor 'vgg'; expected one of {', '.join(NAMES)}"):
        by_name("vgg", data_of(DIGITS))
    with pytest.raises(UserError, match="no extractor 'colored_mnist'"):
        by_name("colored_mnist", data_of(DIGITS))
    with pytest.raises(UserError, match="need a run folder"):
        by_name("discriminator", data_of(DIGITS))


def test_without_weights_a_run_falls_back_to_its_own_d(finished_run):
    run, data = open_run(finished_run), data_of(DIGITS)
    extractor = best_for(data, run)
    assert extractor.name == "discriminator" and not extractor.published
    assert features_of(extractor, data.values[:5]).shape == (5, extractor.dim)


def test_the_mnist_sets_fall_back_to_their_classifier(tmp_path, monkeypatch):
    monkeypatch.setattr("diagan.features.ClassifierFeatures", lambda name, path: (name, path.name))
    run = RunDir(tmp_path)
    write_json(run.config, to_json(replace(DIGITS, data=ColoredMnist(n=48))))
    name = "classifier-colored_mnist"
    assert best_for(data_of(DIGITS), run) == (name, f"{name}.safetensors")


def test_a_d_that_looks_at_several_images_has_no_features_of_one(tmp_path):
    run = RunDir(tmp_path)
    packed = replace(DIGITS, methods=Methods(packing=2), record=Record(mode="none"),
                     weighted_arm=False)  # fmt: skip
    write_json(run.config, to_json(packed))
    assert best_for(data_of(DIGITS), run).name == "patches"
    with pytest.raises(UserError, match="looks at 2 images at once and has no"):
        by_name("discriminator", data_of(DIGITS), run=run)
    with pytest.raises(UserError, match="looks at 2 images at once; there is no logit of one"):
        diagnose_checkpoint(run.path)


def test_points_have_no_features_but_themselves():
    with pytest.raises(UserError, match="points need no extractor"):
        best_for(data_of(POINTS), None)
