import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import DIGITS, data_of

from diagan.errors import UserError
from diagan.features import InceptionFeatures, by_name, extract
from diagan.networks.inception import N_FEATURES, Inception, resize_tf1, shapes

RESIZES = ("tf1", "halfpixel")


def synthetic(key: str, shape: torch.Size) -> torch.Tensor:
    """The weights of the golden values: a function of the key."""
    r = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(key.encode())))
    if key.endswith("running_mean"):
        return 0.1 * r
    if key.endswith("running_var"):
        return (1 + 0.1 * r).abs()
    if key.endswith(".bn.weight"):
        return 1 + 0.1 * r
    if key.endswith("bias"):
        return 0.1 * r
    return r * (2 / r[0].numel()) ** 0.5


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    return {key: synthetic(key, shape) for key, shape in shapes().items()}


@pytest.fixture(scope="module")
def extractors(weights) -> dict[str, InceptionFeatures]:
    return {r: InceptionFeatures(weights, "ab" * 32, known=True, resize=r) for r in RESIZES}


def test_names_and_shapes_are_those_of_the_public_file(golden):
    listed = (golden / "inception_keys.txt").read_text().split("\n")
    assert sorted(f"{key} {list(shape)}" for key, shape in shapes().items()) == listed[:-1]


@pytest.mark.slow
@pytest.mark.parametrize("size", [32, 64, 299])
@pytest.mark.parametrize("resize", RESIZES)
def test_golden_values(extractors, golden, resize, size):
    stored = np.load(golden / "inception.npz", allow_pickle=False)
    extractor = extractors[resize]
    found = extractor(torch.from_numpy(stored[f"images_{size}"]))
    with_bias = extractor.net.fc(found.features).detach()
    arrays = {"pool3": found.features, "logits_unbiased": found.logits, "logits": with_bias}
    compared = 0
    for name, array in arrays.items():
        if f"{name}_{resize}_{size}" in stored:
            expected = stored[f"{name}_{resize}_{size}"]
            assert np.abs(array.numpy() - expected).max() <= 1e-4 * np.abs(expected).max()
            compared += 1
    assert compared == (3 if resize == "tf1" else 1)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 700), (1, 2000, 1500)])
def test_images_of_any_size_and_grey_ones(extractors, shape):
    images = torch.randint(0, 256, (2, *shape), dtype=torch.uint8)
    for extractor in extractors.values():
        seen = extractor.prepare(images)
        assert seen.shape == (2, 3, 299, 299)
        assert seen.min() >= -1 and seen.max() <= 1
        if shape[0] == 1:
            assert torch.equal(seen[:, 0], seen[:, 2])


@pytest.mark.slow
def test_batches_change_nothing(extractors):
    images = np.random.default_rng(0).integers(0, 256, (3, 1, 8, 8), dtype=np.uint8)
    whole, parts = (list(extract(extractors["tf1"], images, size)) for size in (3, 2))
    assert [len(batch.features) for batch in parts] == [2, 1]
    joined = torch.cat([batch.features for batch in parts])
    assert whole[0].features.shape == (3, N_FEATURES)
    assert torch.allclose(whole[0].features, joined, rtol=1e-4, atol=1e-5)


@given(n=st.integers(1, 40), size=st.integers(1, 40))
@settings(max_examples=30)
def test_tf1_resize_looks_up_the_corner_and_goes_straight_between(n, size):
    ramp = torch.arange(float(n)).view(1, 1, n, 1).expand(1, 1, n, n)
    found = resize_tf1(ramp, size)[0, 0]
    expected = (torch.arange(size) * n / size).clamp(max=n - 1)
    assert torch.allclose(found, expected[:, None].expand(size, size), atol=1e-4)
    assert torch.equal(resize_tf1(ramp, n), ramp)


@pytest.mark.slow
def test_only_the_public_weights_as_published_are_comparable(weights):
    def make(known, resize):
        return InceptionFeatures(weights, "ab" * 32, known=known, resize=resize)

    assert make(True, "tf1").published
    assert not make(True, "halfpixel").published
    assert not make(False, "tf1").published
    assert make(True, "tf1").version != make(True, "halfpixel").version


@pytest.mark.slow
def test_a_file_of_any_name_with_the_right_tensors(weights, tmp_path):
    path = tmp_path / "mine.pth"
    torch.save(weights, path)
    extractor = by_name("inception", data_of(DIGITS), weights=path)
    assert isinstance(extractor.net, Inception) and extractor.dim == N_FEATURES
    assert not extractor.published


def test_without_weights_both_commands_are_named():
    with pytest.raises(UserError, match=r"diagan weights fetch inception.*diagan weights import"):
        by_name("inception", data_of(DIGITS))
