import numpy as np
import pytest
import torch

from diagan.data import as_input
from diagan.errors import UserError
from diagan.features.patches import GRAIN, SIDE, learn_features


@pytest.fixture(scope="module", autouse=True)
def few_patches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("diagan.features.patches.N_PATCHES", 500)
        yield


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (40, 3, 32, 32), np.uint8)


def test_features_have_a_row_an_image_and_do_not_depend_on_the_batch(images):
    features = learn_features(images, n_filters=8, seed=0)
    found = features(images)
    # two levels (32 and 16 pixels), 8 filters up and down, 2 x 2 parts; 4 x 4 colours
    assert found.shape == (40, 2 * 8 * 2 * 4 + 3 * 16)
    torch.testing.assert_close(features(images[5:7]), found[5:7], rtol=1e-4, atol=1e-5)


def test_the_same_seed_gives_the_same_filters(images):
    one, same, other = (learn_features(images, n_filters=4, seed=s) for s in (1, 1, 2))
    assert torch.equal(one.levels[0].filters, same.levels[0].filters)
    assert not torch.equal(one.levels[0].filters, other.levels[0].filters)


def test_a_filter_answers_as_if_the_patch_had_been_normalised(images):
    level = learn_features(images, n_filters=4, seed=0).levels[0]
    x = as_input(torch.from_numpy(images[:1]))
    patch = x[0, :, :SIDE, :SIDE]
    flat = (patch - patch.mean()) / (patch.var(correction=0) + GRAIN).sqrt()
    answers = (level.filters * flat).sum(dim=(1, 2, 3)) - level.bias
    # one place only: the average over it is the answer itself, less the shrinkage
    found = level(x[:, :, :SIDE, :SIDE]).view(2, 4, 4)
    torch.testing.assert_close(found[0, :, 0], (answers - 0.25).relu(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found[1, :, 0], (-answers - 0.25).relu(), rtol=1e-3, atol=1e-4)


def test_too_small_images_are_refused():
    with pytest.raises(UserError, match="too small"):
        learn_features(np.zeros((4, 1, 8, 8), np.uint8), n_filters=2, seed=0)
