"""Two layers of the bundled classifier, with a gradient, for Inclusive GAN."""

from dataclasses import replace

import pytest
import torch
from tiny import DIGITS, data_of

from diagan import config as configs
from diagan.config import DCGAN, ColoredMnist, Inclusive, Methods
from diagan.data import Dataset
from diagan.engine import launch
from diagan.errors import UserError
from diagan.features.classifier import BUNDLED, bundled, load_classifier
from diagan.features.slim import SlimClassifier
from diagan.stages import Stage, new_game
from diagan.train import train

WITH_CLASSIFIER = replace(
    DIGITS,
    data=ColoredMnist(n=24),
    network=DCGAN(width=1 / 16, latent=8),
    methods=Methods(inclusive=Inclusive(10.0, 4.0, passes=0.5, extractor="classifier")),
)


@pytest.fixture(scope="module", params=BUNDLED)
def nets(request):
    net, _ = load_classifier(bundled(request.param))
    return net, SlimClassifier(net)


def some_images(n, channels):
    return torch.rand(n, channels, 32, 32, generator=torch.Generator().manual_seed(0)) * 2 - 1


def test_it_is_the_beginning_of_the_classifier(nets):
    net, slim = nets
    images = some_images(3, net.channels)
    x = images.permute(2, 3, 1, 0)  # [H, W, C, B]
    with torch.no_grad():
        for convolution, norm in list(zip(net.convolutions, net.norms))[:2]:
            x = convolution(x)
            x = norm(x.flatten(0, 1)).relu().view_as(x)
    expected = x.permute(3, 2, 0, 1)[:, :, ::2, ::2]
    torch.testing.assert_close(slim.maps(images), expected, rtol=1e-3, atol=1e-4)
    cell = expected[1, 5, 4:8, 8:12].mean() / 512**0.5
    features = slim(images)
    assert features.shape == (3, 512) and features.dtype == torch.float32
    torch.testing.assert_close(features[1].view(32, 4, 4)[5, 1, 2], cell, rtol=1e-3, atol=1e-5)


def test_gradients_reach_the_images_and_not_the_weights(nets):
    net, slim = nets
    images = some_images(4, net.channels).requires_grad_()
    slim(images).square().sum().backward()
    assert (images.grad.flatten(1).abs().max(dim=1).values > 0).all()
    assert not list(slim.parameters()) and all(p.grad is None for p in net.parameters())


def some_digits() -> Dataset:
    """In the layout of Colored MNIST."""
    small = data_of(replace(DIGITS, data=replace(DIGITS.data, n=24)))
    values = small.values.repeat(2, axis=2).repeat(2, axis=3)  # 16x16 -> 32x32
    return replace(small, values=values, heldout=values[:4])


def test_a_game_with_it():
    data = some_digits()
    game = new_game(WITH_CLASSIFIER, data, launch(WITH_CLASSIFIER), Stage("phase1", 0, 6))
    names = [term.name for term in game.parts.g_terms]
    assert names == ["reconstruction", "interpolation"]
    assert train(game, until=3)
    assert game.parts.state["inclusive.n_searches"] >= 1
    assert game.parts.state["inclusive.latents"].abs().sum(dim=1).min() > 0
    assert all(p.isfinite().all() for p in game.g.net.parameters())


def test_where_there_is_no_classifier_it_is_refused():
    assert configs.check(WITH_CLASSIFIER) is WITH_CLASSIFIER
    for data in (DIGITS.data, ColoredMnist(size=64)):
        with pytest.raises(UserError, match=r"inclusive\.extractor classifier: .*; take pixels"):
            configs.check(replace(WITH_CLASSIFIER, data=data))
