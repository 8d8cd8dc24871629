from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import conv2d

from diagan.errors import UserError
from diagan.features import BUNDLED, ClassifierFeatures, bundled, extract
from diagan.features.classifier import load_classifier, save_classifier
from diagan.features.train_classifier import (
    Settings,
    Split,
    accuracy,
    load_classes,
    train,
)
from diagan.networks import count_parameters
from diagan.networks.classifier import Classifier, FourierConvolution

ABOUT = {"command": "test", "accuracy": "0.5"}


def some_images(n: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, channels, 32, 32), dtype=np.uint8)


# --- the network ---------------------------------------------------------------------------------


def test_the_fourier_convolution_is_a_convolution_with_its_gradients():
    torch.manual_seed(0)
    layer = FourierConvolution(3, 5)
    x = torch.randn(2, 3, 32, 32, requires_grad=True)
    found = layer(x.permute(2, 3, 1, 0)).permute(3, 2, 0, 1)
    expected = conv2d(x, layer.weight, padding=3)
    weight = torch.randn_like(expected)
    pairs = [(found, expected)]
    inputs = (x, layer.weight)
    pairs += zip(*(torch.autograd.grad(y, inputs, weight) for y in (found, expected)))
    assert len(pairs) == 3
    for mine, reference in pairs:
        assert (mine - reference).abs().max() <= 1e-5 * reference.abs().max()
    layer.freeze()
    assert torch.equal(layer(x.permute(2, 3, 1, 0)).permute(3, 2, 0, 1), found)


def test_the_papers_sizes():
    net = Classifier(3)
    assert count_parameters(net) == 49 * (3 * 16 + 16 * 32 + 32 * 64 + 64 * 128) + 480 + 129 * 20
    features, logits = net(torch.zeros(2, 3, 32, 32))
    assert features.shape == (2, 128) and logits.shape == (2, 20)
    assert torch.allclose(net.logits(features), logits)
    spread = net.convolutions[3].weight.std().item()  # Kaiming, fan-out
    assert spread == pytest.approx((2 / (128 * 49)) ** 0.5, rel=0.02)


# --- the file and the extractor ------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path):
    torch.manual_seed(0)
    net = Classifier(3)
    net(torch.randn(8, 3, 32, 32))  # running statistics of its own
    path = tmp_path / "classifier.safetensors"
    save_classifier(path, net, ABOUT)
    return net.eval(), path


def test_the_file_is_small_and_says_where_it_comes_from(stored):
    net, path = stored
    assert path.stat().st_size < 1.1e6
    loaded, about = load_classifier(path)
    assert about == ABOUT and not loaded.training
    images = torch.randn(4, 3, 32, 32)
    for mine, reference in zip(loaded(images), net(images)):
        assert torch.allclose(mine, reference, rtol=0.02, atol=0.02)  # float16


def test_features_are_the_mean_under_the_last_layer_batch_by_batch(stored):
    extractor = ClassifierFeatures("classifier-colored_mnist", stored[1])
    whole, parts = (list(extract(extractor, some_images(5), size)) for size in (5, 2))
    features = torch.cat([found.features for found in parts])
    assert whole[0].features.shape == (5, extractor.dim)
    assert torch.allclose(whole[0].features, features, atol=1e-5)
    assert whole[0].features.norm(dim=1).std() > 0  # not of length 1
    assert whole[0].logits.shape == (5, 20) and not extractor.published


def test_images_of_another_shape_are_refused(stored):
    extractor = ClassifierFeatures("mine", stored[1])
    for images in (some_images(2, channels=1), some_images(2)[:, :, :16]):
        with pytest.raises(UserError, match="mine reads images of 3 x 32 x 32, and these are of"):
            next(extract(extractor, images))


def test_a_file_of_something_else(tmp_path):
    path = tmp_path / "odd.safetensors"
    with pytest.raises(UserError, match="holds no classifier"):
        load_classifier(path)
    path.write_bytes(b"something else")
    with pytest.raises(UserError, match="holds no classifier"):
        load_classifier(path)


@pytest.mark.slow
@pytest.mark.parametrize("dataset", BUNDLED)
def test_what_ships_knows_its_classes(dataset, data_root):
    if not bundled(dataset).exists():
        pytest.skip(f"{bundled(dataset).name} is not there")
    net, about = load_classifier(bundled(dataset))
    _, test = load_classes(Settings(dataset, bundled(dataset), data_root))
    some = Split(test.images[:300], test.classes[:300])
    assert accuracy(net, some)["accuracy"] > float(about["accuracy"]) - 0.04


# --- training ------------------------------------------------------------------------------------


def easy(n: int = 24) -> Split:
    """Dark images are class 0, light ones class 13."""
    images = torch.from_numpy(some_images(n, channels=1)) // 2
    images[::2] += 128
    classes = torch.zeros(n, dtype=torch.int64)
    classes[::2] = 13
    return Split(images, classes)


@pytest.fixture
def settings(tmp_path):
    return Settings("mnist_fmnist", tmp_path / "out.safetensors", epochs=4, batch_size=8)


@pytest.mark.slow
def test_it_learns_and_measures(settings):
    data = easy()
    net, epochs, minutes = train(settings, data)
    assert epochs == 4 and minutes > 0
    assert accuracy(net, data) == {"accuracy": 1, "accuracy_major": 1, "accuracy_minor": 1}
    wrong = Split(data.images, torch.where(data.classes == 13, 12, 0))
    assert accuracy(net, wrong)["accuracy"] == 0.5


@pytest.mark.slow
def test_it_goes_on_from_the_last_epoch_to_the_same_weights(settings):
    data, settings = easy(8), replace(settings, epochs=2)
    whole, _, _ = train(settings, data)
    (last,) = settings.out.parent.glob("*.partial/*-000002")
    for file in last.iterdir():
        file.unlink()
    last.rmdir()
    again, _, minutes = train(settings, data)
    for mine, reference in zip(again.state_dict().values(), whole.state_dict().values()):
        assert torch.equal(mine, reference)
    assert train(settings, data)[1:] == (2, pytest.approx(minutes))  # nothing is left to do


def test_it_goes_on_from_an_earlier_file(settings, stored):
    net, path = stored
    now = replace(settings, start=path, minutes=1e-9)  # nothing is left of these
    again, _, _ = train(now, Split(torch.zeros(8, 3, 32, 32, dtype=torch.uint8), torch.zeros(8)))
    weights = again.convolutions[0].weight
    assert torch.allclose(weights, net.convolutions[0].weight, atol=1e-3)
    assert "--start" in now.command


def test_it_stops_in_time(settings):
    _, epochs, _ = train(replace(settings, epochs=1000, minutes=1 / 60 / 4), easy())
    assert 0 < epochs < 1000


def test_the_rate_rises_and_falls_or_is_the_papers(settings):
    cycle = [settings.rate(done) for done in (0, 0.1, 0.2, 0.6, 1)]
    assert cycle == pytest.approx([0, 1.5e-3, 3e-3, 1.5e-3, 0])
    fall = replace(settings, schedule="fall")
    assert [fall.rate(done) for done in (0, 0.5, 1)] == pytest.approx([1e-3, 5e-4, 0])
    paper = replace(settings, schedule="paper")
    assert [paper.rate(done) for done in (0, 0.83, 0.84, 0.99)] == [1e-3, 1e-3, 1e-4, 1e-4]


@pytest.mark.parametrize("bad", [{"epochs": 0}, {"batch_size": 1}, {"minutes": 0.0}])
def test_settings_out_of_range(settings, bad):
    with pytest.raises(UserError, match="expected --epochs from 1"):
        train(replace(settings, **bad), easy())


@pytest.mark.slow
def test_twenty_classes_half_of_either_group(settings, data_root):
    training, test = load_classes(replace(settings, data_root=data_root))
    assert len(training.images) == 60_000 and len(test.images) == 10_000
    for data in (training, test):
        assert data.images.shape[1:] == (1, 32, 32)
        assert torch.bincount(data.classes).shape == (20,)
        assert (data.classes >= 10).float().mean() == 0.5
