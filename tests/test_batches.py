from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagan.batches import PIXELS, at_once


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2,), 500),
        ((3, 16, 16), 500),
        ((1, 32, 32), 500),  # as before there was a bound
        ((3, 64, 64), 128),
        ((3, 256, 256), 8),
        ((3, 1024, 1024), 1),
    ],
)
def test_fewer_where_there_are_more_pixels(shape, expected):
    assert at_once(shape, most=500) == expected


@settings(max_examples=50)
@given(channels=st.integers(1, 4), side=st.integers(1, 2_000), most=st.integers(1, 1_000))
def test_bounded_and_never_none(channels, side, most):
    n = at_once((channels, side, side), most)
    assert 1 <= n <= most
    assert n == 1 or n * prod((side, side)) <= PIXELS
