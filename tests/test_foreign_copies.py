import io

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from diagan.foreign.copies import families, reduced


def smooth(seed, n=60, side=32):
    """Pictures with large forms, as photographs have."""
    coarse = np.random.default_rng(seed).integers(0, 256, (n, 5, 5, 3), np.uint8)
    sized = [Image.fromarray(c).resize((side, side), Image.Resampling.BICUBIC) for c in coarse]
    return np.stack([np.asarray(image).transpose(2, 0, 1) for image in sized])


def jpeg(image):
    buffer = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0)).save(buffer, "JPEG", quality=85)
    return np.asarray(Image.open(buffer)).transpose(2, 0, 1)


def rescaled(image):
    picture = Image.fromarray(image.transpose(1, 2, 0))
    return np.asarray(picture.resize((45, 45)).resize((32, 32))).transpose(2, 0, 1)


def test_different_images_are_no_family():
    assert len(set(families(smooth(0)))) == 60


def test_exact_copies_are_found_across_sets():
    ours, theirs = smooth(0), smooth(1)
    found = families(ours, theirs, ours[[7, 3]])
    assert found[120] == found[7] and found[121] == found[3]
    assert len(set(found.tolist())) == 120


def test_encoded_anew_and_rescaled_are_near_copies():
    images = smooth(2)
    for change in (jpeg, rescaled):
        found = families(images, np.stack([change(image) for image in images]))
        assert np.mean(found[:60] == found[60:]) > 0.9
        assert len(set(found[:60].tolist())) == 60  # and nobody else's


def test_another_colour_is_no_copy():
    grey = np.zeros((2, 3, 32, 32), np.uint8)
    grey[0, 0, 8:24, 12:20] = 255  # the same digit in red and in green
    grey[1, 1, 8:24, 12:20] = 255
    assert len(set(families(grey))) == 2


def test_a_flat_image_many_times_is_one_family():
    flat = np.full((50, 1, 16, 16), 90, np.uint8)
    assert len(set(families(flat))) == 1


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9))
def test_reduced_keeps_the_mean_of_equal_parts(height, width, side):
    image = np.random.default_rng(height).integers(0, 256, (1, 2, height, width), np.uint8)
    small = reduced(image, side)
    assert small.shape[2] == min(side, height) and small.shape[3] == min(side, width)
    if height % side == 0 and width % side == 0:
        np.testing.assert_allclose(small.mean((2, 3)), image.mean((2, 3)), rtol=1e-4)
