import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.config import Gaussians25, SingleGaussian
from diagan.data import as_input, load_dataset
from diagan.data.dataset import fingerprint
from diagan.errors import UserError


@pytest.mark.parametrize(("sigma", "minor"), [(3.0, 657), (2.5, 198), (2.0, 22)])
def test_single_gaussian_has_the_derived_share_of_minor_points(sigma, minor):
    data = load_dataset(SingleGaussian(sigma=sigma), seed=0)
    counts = dict(zip(data.group_names, np.bincount(data.groups, minlength=3)))
    assert data.values.shape == (10_000, 2)
    assert data.values.dtype == np.float32
    assert abs(counts["minor"] - minor) < 4 * minor**0.5  # FACTS 1.2
    assert data.group_names[data.rare] == "minor"
    radius = np.linalg.norm(data.values, axis=1)
    assert radius[data.groups == data.rare].min() > 7
    assert radius[data.groups == data.group_names.index("major")].max() < 2


def test_gaussians25_modes_are_exact_shares_around_their_centres():
    data = load_dataset(Gaussians25(), seed=1)
    assert np.bincount(data.groups).tolist() == [400] * 25
    assert data.rare is None
    for mode in (0, 7, 24):
        x, y = divmod(mode, 5)
        points = data.values[data.groups == mode] * 2.828
        assert np.abs(points.mean(0) - [2 * (x - 2), 2 * (y - 2)]).max() < 0.02
        assert np.abs(points.std(0) - 0.05).max() < 0.008
    assert len(np.unique(data.groups[:25])) > 5  # shuffled


def test_gaussians25_wants_a_multiple_of_25():
    with pytest.raises(UserError, match="multiple of 25"):
        load_dataset(Gaussians25(n=1_001), seed=0)


def test_sigma_must_be_positive():
    with pytest.raises(UserError, match="sigma"):
        load_dataset(SingleGaussian(sigma=0.0), seed=0)


@pytest.mark.parametrize("config", [SingleGaussian(n=1_000), Gaussians25(n=1_000)])
def test_the_draw_is_the_seeds_and_heldout_is_fresh(config):
    first, again, other = (load_dataset(config, seed=s) for s in (0, 0, 1))
    assert first.fingerprint == again.fingerprint
    assert np.array_equal(first.heldout, again.heldout)
    assert first.fingerprint != other.fingerprint
    assert first.heldout.shape == (1_000, 2)
    assert not set(map(tuple, first.heldout)) & set(map(tuple, first.values))
    assert (first.n, first.shape, first.is_image) == (1_000, (2,), False)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 255), min_size=1, max_size=8), st.integers(0, 7))
def test_fingerprint_sees_every_byte_and_the_shape(levels, where):
    array = np.array(levels, dtype=np.uint8)
    changed = array.copy()
    changed[where % len(levels)] ^= 1
    assert fingerprint(array) == fingerprint(array.copy())
    assert fingerprint(array) != fingerprint(changed)
    assert fingerprint(array) != fingerprint(array[None])
    assert fingerprint(array) != fingerprint(array.astype(np.int64))


def test_as_input_maps_bytes_to_minus_one_to_one_and_leaves_points():
    pixels = torch.tensor([0, 51, 255], dtype=torch.uint8)
    assert torch.allclose(as_input(pixels), torch.tensor([-1.0, -0.6, 1.0]))
    assert as_input(pixels).dtype == torch.float32
    points = torch.tensor([[3.0, -7.0]])
    assert torch.equal(as_input(points), points)
