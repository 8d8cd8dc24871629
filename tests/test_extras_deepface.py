"""Against a stand-in: the package itself brings TensorFlow, and is not installed here."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from diagan.errors import UserError
from diagan.extras.deepface import deepface


@pytest.fixture
def asked(monkeypatch):
    """Calls of a deepface for which blue faces are Women and others Men."""
    calls = []

    def analyze(img_path, actions, enforce_detection, silent):
        calls.append((img_path, actions, enforce_detection))
        woman = 100.0 * (img_path[0, 0, 0] > 127)  # the first channel: deepface takes BGR
        gender = {"Woman": woman, "Man": 100 - woman}
        return [{"gender": gender, "dominant_gender": max(gender, key=gender.get)}]

    module = ModuleType("deepface")
    module.DeepFace = SimpleNamespace(analyze=analyze)
    monkeypatch.setitem(sys.modules, "deepface", module)
    return calls


def test_blue_and_red(asked):
    images = np.zeros((3, 3, 8, 10), dtype=np.uint8)
    images[1, 2] = 255  # blue
    images[2, 0] = 255  # red
    classifier = deepface("gender", "Woman")
    assert classifier.name == "gender=Woman"
    assert classifier.predict(images).tolist() == [0, 1, 0]
    assert deepface("gender", "Man").predict(images).tolist() == [1, 0, 1]
    image, actions, enforce = asked[0]
    assert image.shape == (8, 10, 3) and image.dtype == np.uint8 and image.flags.c_contiguous
    assert actions == ["gender"] and enforce is False


def test_grey(asked):
    images = np.array([255, 0], dtype=np.uint8)[:, None, None, None] * np.ones((8, 8), np.uint8)
    assert deepface("gender", "Woman").predict(images).tolist() == [1, 0]
    assert asked[0][0].shape == (8, 8, 3)


@pytest.mark.usefixtures("asked")
def test_an_unknown_value_is_refused_with_those_that_are_known():
    with pytest.raises(UserError, match="no gender 'woman': Woman, Man"):
        deepface("gender", "woman").predict(np.zeros((2, 3, 8, 8), np.uint8))


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "deepface", None)
    with pytest.raises(UserError, match=r'pip install "diagan\[deepface\]"'):
        deepface("race", "indian")
