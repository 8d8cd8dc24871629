import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagan import protocols
from diagan.errors import UserError
from diagan.protocols import Protocol, parse


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fid50k_train", {"family": "fid", "n": 50_000, "split": "train"}),
        ("kid1500_heldout", {"family": "kid", "n": 1_500, "split": "heldout"}),
        ("is50k", {"family": "is", "n": 50_000}),
        ("pr10k_k3", {"family": "pr", "n": 10_000, "k": 3}),
        ("partial_recall10k_k3", {"family": "partial_recall", "n": 10_000, "k": 3}),
        ("partial_fid50k_ends5k", {"family": "partial_fid", "n": 50_000, "ends": 5_000}),
        ("re50k_epochs50", {"family": "re", "n": 50_000, "epochs": 50}),
        ("shares64", {"family": "shares", "n": 64}),
    ],
)
def test_a_name_pins_its_protocol(name, expected):
    assert parse(name) == Protocol(name, **expected)


@pytest.mark.parametrize(
    "name", ["fid", "fid50k", "fid0_train", "fid9_valid", "pr9", "FID9_train", "fid9_train2", ""]
)
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(UserError, match=r"there is no metric .*fid\{n\}_\{split\}.*shares\{n\}"):
        parse(name)


@given(st.integers(1, 10**7))
def test_counts_are_read_as_they_are_written(n):
    assert protocols.count(protocols.short(n)) == n
    assert all(parse(name).n == n for name in protocols.defaults(n, with_groups=True))


def test_names_given_twice_are_measured_once():
    assert [p.name for p in protocols.parse_all(["is5", "is9", "is5"])] == ["is5", "is9"]
