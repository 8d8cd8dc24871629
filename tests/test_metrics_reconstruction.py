import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.errors import UserError
from diagan.metrics import reconstruction_error


def test_by_hand():
    real = np.array([[[[0.0, 0.0], [1.0, -1.0]]], [[[0.5, 0.5], [0.5, 0.5]]]])  # [2, 1, 2, 2]
    rebuilt = np.array([[[[0.0, 0.0], [0.0, 1.0]]], [[[0.5, 0.5], [0.5, 0.5]]]])
    errors = reconstruction_error(real=real, rebuilt=rebuilt)
    assert errors == pytest.approx([np.sqrt(1 + 4) / 2, 0])  # sqrt(H W) = 2
    assert errors.dtype == np.float64


def test_channels_are_not_averaged():
    grey, colour = np.zeros((1, 1, 8, 8)), np.zeros((1, 3, 8, 8))
    assert reconstruction_error(real=grey, rebuilt=grey + 0.5) == pytest.approx([0.5])
    assert reconstruction_error(real=colour, rebuilt=colour + 0.5) == pytest.approx(
        [0.5 * np.sqrt(3)]
    )


def test_a_green_digit_rebuilt_as_black():
    """At 32x32 the published code's division by 32: 19 % lit pixels give 0.87 (FACTS 7.1)."""
    real = np.zeros((1, 3, 32, 32), dtype=np.uint8)
    real[0, 1].reshape(-1)[: round(0.19 * 1024)] = 255
    black = np.full(real.shape, -1.0, dtype=np.float32)
    error = reconstruction_error(real=real, rebuilt=black)
    assert error == pytest.approx([np.sqrt(195 * 2**2) / 32])
    assert error == pytest.approx([0.87], abs=0.005)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.sampled_from([1, 3]), st.integers(1, 9), st.integers(1, 9))
def test_laws(seed, channels, height, width):
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 256, (3, 4, channels, height, width), dtype=np.uint8)
    floats = a / 127.5 - 1
    ab = reconstruction_error(real=a, rebuilt=b)
    assert reconstruction_error(real=a, rebuilt=a).tolist() == [0] * 4
    assert ab == pytest.approx(reconstruction_error(real=b, rebuilt=a))
    assert ab == pytest.approx(reconstruction_error(real=floats, rebuilt=b), abs=1e-5)
    by_hand = [np.linalg.norm(x - y / 127.5 + 1) for x, y in zip(floats, b)]
    assert ab == pytest.approx(np.array(by_hand) / np.sqrt(height * width), abs=1e-5)
    through_c = reconstruction_error(real=a, rebuilt=c) + reconstruction_error(real=c, rebuilt=b)
    assert (ab <= through_c + 1e-5).all()
    order = rng.permutation(4)  # each image by itself
    assert reconstruction_error(real=a[order], rebuilt=b[order]).tolist() == ab[order].tolist()


@pytest.mark.parametrize("shape", [(2, 1, 4, 5), (3, 1, 4, 4), (2, 3, 4, 4), (1, 4, 4)])
def test_shapes_that_differ_are_refused(shape):
    with pytest.raises(UserError, match="of one shape"):  # no silent broadcasting
        reconstruction_error(real=np.zeros((2, 1, 4, 4)), rebuilt=np.zeros(shape))


def test_nothing_is_refused():
    with pytest.raises(UserError, match="not empty"):
        reconstruction_error(real=np.zeros((0, 1, 4, 4)), rebuilt=np.zeros((0, 1, 4, 4)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_is_refused(bad):
    rebuilt = np.zeros((3, 1, 4, 4))
    rebuilt[1, 0, 2, 2] = bad
    with pytest.raises(UserError, match="1 of 3 images"):
        reconstruction_error(real=np.zeros((3, 1, 4, 4)), rebuilt=rebuilt)
