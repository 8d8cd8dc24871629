"""The drawn faces: exact rates, one attribute at a time, the same for the same seed."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from diagan import config as configs
from diagan.attributes import fit_small, measure
from diagan.config import DCGAN, Config, DrawnFaces
from diagan.data import load_dataset
from diagan.data.faces import NAMES, Face
from diagan.errors import UserError

FEW = DrawnFaces(n=100, size=32, hat=0.1, glasses=0.5, moustache=0, pale=1, bald=0.25)


def face(seed, size=32, **has):
    random = np.random.default_rng(seed)
    return np.asarray(Face(random, dict.fromkeys(NAMES, False) | has).draw(size)).astype(int)


def test_every_attribute_has_its_share_exactly():
    data = load_dataset(FEW, seed=0)
    assert data.values.shape == (100, 3, 32, 32) and data.values.dtype == np.uint8
    counts = {name: int(has.sum()) for name, has in data.attributes.items()}
    assert counts == {"hat": 10, "glasses": 50, "moustache": 0, "pale": 100, "bald": 25}
    held = {name: int(has.sum()) for name, has in data.heldout_attributes.items()}
    assert len(data.heldout) == 10
    assert held == {"hat": 1, "glasses": 5, "moustache": 0, "pale": 10, "bald": 2}
    assert data.notes == ("100 drawn faces: 10 hat, 50 glasses, 0 moustache, 100 pale, 25 bald",)


@pytest.mark.parametrize("name", NAMES)
def test_one_attribute_makes_the_groups_and_changes_no_pixel(name):
    data = load_dataset(replace(FEW, attribute=name), seed=0)
    assert data.group_names == (f"not {name}", name)
    assert np.array_equal(data.groups, data.attributes[name])
    assert np.array_equal(data.heldout_groups, data.heldout_attributes[name])
    assert np.array_equal(data.values, load_dataset(FEW, seed=0).values)


def test_the_smaller_group_is_rare():
    assert load_dataset(FEW, seed=0).rare == 1
    assert load_dataset(replace(FEW, attribute="glasses"), seed=0).rare is None
    assert load_dataset(replace(FEW, hat=0.95), seed=0).rare == 0


def test_the_seed_is_all_that_chance_depends_on():
    first, again, other = (load_dataset(FEW, seed=seed) for seed in (0, 0, 1))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert not np.array_equal(first.groups, other.groups)
    assert len({value.tobytes() for value in (*first.values, *first.heldout)}) == 110


@pytest.mark.parametrize("name", NAMES)
def test_an_attribute_is_seen_on_nearly_every_face(name):
    changes = [np.abs(face(seed, 32) - face(seed, 32, **{name: True})).max(axis=2) > 8
               for seed in range(60)]  # fmt: skip
    assert np.mean([changed.mean() > 0.01 for changed in changes]) > 0.9


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(NAMES), size=st.sampled_from([16, 32, 64]))
@example(seed=332238, name="moustache", size=64)  # a small face: 0.98 % of the pixels
def test_an_attribute_changes_its_place_and_nothing_else(seed, name, size):
    changed = np.abs(face(seed, size) - face(seed, size, **{name: True})).max(axis=2) > 8
    rows = np.flatnonzero(changed.any(axis=1)) / size
    assert changed.mean() < 0.6
    assert changed.mean() > 0.01 or name == "moustache"  # may be dark hair on dark skin
    if name == "hat":
        assert rows.max() < 0.6
    if name == "glasses":
        assert rows.min() > 0.3 and rows.max() < 0.7
    if name == "moustache" and len(rows):
        assert rows.min() > 0.45 and rows.max() < 0.8


def test_a_larger_face_is_the_same_face():
    small, large = face(3), face(3, 64)
    halved = large.reshape(32, 2, 32, 2, 3).mean(axis=(1, 3))
    assert np.abs(halved - small).mean() < 3
    assert face(3, 256).shape == (256, 256, 3)


@pytest.mark.slow
def test_a_classifier_can_learn_the_smallest_attribute():
    config = DrawnFaces(n=400, hat=0, glasses=0.2, moustache=0.5, pale=0.2, bald=0)
    data, others = (load_dataset(replace(config, n=n), seed=n) for n in (400, 200))
    net = fit_small("moustache", data.values, data.attributes["moustache"], seed=0, epochs=3)
    assert measure(net, others.values, others.attributes["moustache"]).accuracy > 0.85


def test_rates_beyond_one_are_refused():
    config = Config(data=DrawnFaces(bald=1.5), network=DCGAN())
    with pytest.raises(UserError, match=r"--data\.bald 1\.5: expected between 0 and 1"):
        configs.check(config)
    assert configs.check(replace(config, data=DrawnFaces(bald=1)))


def test_attributes_are_columns_of_the_samples():
    data = load_dataset(DrawnFaces(n=60), seed=0)
    assert set(data.columns) >= {"group", "attribute:hat", "attribute:bald"}
    assert data.columns["attribute:hat"].tolist() == data.attributes["hat"].tolist()
    assert pa.table(data.columns).num_rows == 60
