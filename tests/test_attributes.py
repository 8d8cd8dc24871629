import numpy as np
import pytest
import torch
from test_networks_vgg import narrow, random_state  # noqa: F401

from diagan import attributes
from diagan.attributes import (
    BATCH,
    AttributeClassifier,
    Quality,
    fit_small,
    fit_vgg,
    measure,
    occurrence,
    occurrences,
    of_network,
)
from diagan.config import DemoDigits
from diagan.data import load_dataset
from diagan.errors import UserError
from diagan.metrics.shares import wilson


def squares(n, seed=0, side=16, channels=3):
    """Noise with a bright square: on the left (0), or on the right (1)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    images = rng.integers(0, 100, (n, channels, side, side), dtype=np.uint8)
    for image, label in zip(images, labels):
        x = label * side // 2 + rng.integers(0, side // 4 + 1)
        y = rng.integers(0, side // 2)
        image[:, y : y + side // 4, x : x + side // 4] = 255
    return images, labels


def bright(images):
    """Anyone's own classifier: whether the first pixel is bright."""
    return images[:, 0, 0, 0] > 127


def coded(labels):
    """Images whose first pixel says what `bright` answers."""
    images = np.zeros((len(labels), 1, 8, 8), dtype=np.uint8)
    images[:, 0, 0, 0] = np.asarray(labels) * 255
    return images


# --- classifiers ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("side", "channels"), [(16, 3), (8, 1)])
def test_a_small_classifier_learns(side, channels):
    classifier = fit_small("right", *squares(300, 0, side, channels), seed=0, epochs=3)
    quality = measure(classifier, *squares(100, 1, side, channels))
    assert classifier.name == "right"
    assert quality.accuracy >= 0.95
    assert quality.balanced_accuracy >= 0.95


@pytest.mark.slow
@pytest.mark.usefixtures("narrow")
def test_vgg_learns_with_its_convolutions_frozen(monkeypatch):
    made = []
    make = attributes.vgg.pretrained
    monkeypatch.setattr(
        attributes.vgg, "pretrained", lambda *a, **kw: made.append(make(*a, **kw)) or made[-1]
    )
    state, told = random_state(), []
    images, labels = squares(128, side=64)
    images[labels == 1] ^= 255  # negatives: something that random convolutions do see
    classifier = fit_vgg("negative", images, labels, state, seed=0, epochs=150,
                         on_epoch=lambda *a: told.append(a))  # fmt: skip
    assert len(told) == 150 and told[-1][1] < 0.7 * told[0][1]
    assert measure(classifier, images, labels).accuracy > 0.95
    learned = made[0].state_dict()
    same = {name for name in state if learned[name].shape == state[name].shape
            and torch.equal(learned[name], state[name])}  # fmt: skip
    assert same == {name for name in state if name.startswith("features")}


@pytest.mark.usefixtures("narrow")
def test_the_head_learns_as_if_the_convolutions_had_run_each_time(monkeypatch):
    """One SGD step on the mean cross-entropy, done again by hand."""
    images, labels = squares(20, side=64)
    nets = []
    monkeypatch.setattr(attributes, "of_network", lambda name, net: nets.append(net))
    monkeypatch.setattr(torch.nn.Dropout, "forward", lambda self, x: x)
    state = random_state()
    fit_vgg("x", images, labels, state, seed=3, epochs=1)
    other = attributes.initialised(lambda: attributes.vgg.pretrained(state, 2), 3)
    logits = other(torch.tensor(images) / 127.5 - 1)
    torch.nn.functional.cross_entropy(logits, torch.tensor(labels)).backward()
    for i in (0, 3, 6):
        expected = other.classifier[i].weight - 1e-3 * other.classifier[i].weight.grad
        assert torch.allclose(nets[0].classifier[i].weight, expected, atol=1e-6)
        assert other.classifier[i].weight.grad.abs().max() * 1e-3 > 1e-5  # else nothing is shown


@pytest.mark.usefixtures("narrow")
def test_settings_of_vgg_are_the_papers(monkeypatch):
    fitted = []
    monkeypatch.setattr(attributes, "fit", lambda *a, **how: fitted.append((*a, how)))
    fit_vgg("x", *squares(5, side=64), random_state(), seed=0)
    net, sgd, _, n, how = fitted[0]
    group = sgd.param_groups[0]
    assert type(sgd) is torch.optim.SGD
    assert (group["lr"], group["momentum"], group["weight_decay"]) == (1e-3, 0.9, 0)
    assert [id(p) for p in group["params"]] == [id(p) for p in net.classifier.parameters()]
    assert (n, how["epochs"], how["batch_size"]) == (5, 10, 128)


@pytest.mark.slow
@pytest.mark.usefixtures("narrow")
def test_dropout_is_off_when_counting():
    net = attributes.vgg.pretrained(random_state(), n_classes=2)
    images, _ = squares(200, side=64)
    classifier = of_network("any", net.train())
    first = classifier.predict(images)
    net.train()  # as the published count has it (FACTS 7.3)
    assert np.array_equal(classifier.predict(images), first)
    with torch.no_grad():
        answers = [net.train()(attributes._as_seen(images)).argmax(1) for _ in range(2)]
    assert not torch.equal(*answers)  # with dropout it would have differed


def test_the_seed_decides():
    images, labels = squares(40)
    told = []
    for seed in (0, 0, 1):
        fit_small("x", images, labels, seed=seed, epochs=1, on_epoch=lambda *a: told.append(a))
    assert told[0] == told[1] != told[2]


@pytest.mark.parametrize("shape", [(2, 1, 8, 8), (2, 3, 64, 64), (1, 3, 600, 900)])
def test_what_a_network_sees(shape):
    images = np.full(shape, 255, dtype=np.uint8)
    images[:, :, :, : shape[3] // 2] = 0
    seen = attributes._as_seen(images)
    assert seen.shape == (shape[0], 3, 64, 64)
    assert torch.equal(seen[:, 0], seen[:, 2])
    assert (seen[..., :24] == -1).all() and (seen[..., -24:] == 1).all()


def test_anyones_function():
    labels = np.arange(BATCH + 30) % 3 == 0
    sizes = []

    def answer(images):
        sizes.append(len(images))
        return torch.tensor(bright(images)).int()

    predicted = AttributeClassifier("bright", answer).predict(coded(labels))
    assert sizes == [BATCH, 30]
    assert predicted.dtype == np.int64
    assert predicted.tolist() == labels.astype(int).tolist()


@pytest.mark.parametrize(
    "answer",
    [
        lambda images: np.full(len(images), 2),
        lambda images: np.full(len(images), 0.7),
        lambda images: np.full(len(images), np.nan),
        lambda images: np.zeros((len(images), 2)),
        lambda images: np.zeros(3),
    ],
)
def test_answers_that_are_none_are_refused(answer):
    with pytest.raises(UserError, match=r"odd answers 5 images.*one 0 or 1 for each"):
        AttributeClassifier("odd", answer).predict(coded([0] * 5))


def test_bad_labels_are_refused():
    images = coded([0, 1, 1])
    with pytest.raises(UserError, match="3 images with labels of shape"):
        fit_small("x", images, np.array([0, 1]), seed=0)
    with pytest.raises(UserError, match="a 0 or 1 for each"):
        fit_small("x", images, np.array([0, 1, 2]), seed=0)
    with pytest.raises(UserError, match="all 3 labels are 1"):
        measure(AttributeClassifier("x", bright), images, np.array([1, 1, 1]))
    with pytest.raises(UserError, match="no images"):
        AttributeClassifier("x", bright).predict(images[:0])


# --- quality and occurrence ----------------------------------------------------------------------


def test_quality_by_hand():
    truth = np.array([0] * 6 + [1] * 4)
    answers = [0, 0, 0, 0, 1, 1, 1, 1, 1, 0]
    quality = measure(AttributeClassifier("x", bright), coded(answers), truth)
    assert quality.confusion == ((4, 2), (1, 3))
    assert quality.accuracy == 0.7
    assert quality.sensitivity == 0.75
    assert quality.specificity == pytest.approx(4 / 6)
    assert quality.balanced_accuracy == pytest.approx((0.75 + 4 / 6) / 2)


def test_occurrence_by_hand():
    classifier = AttributeClassifier("x", bright)
    found = occurrence(classifier, coded([1] * 30 + [0] * 170), Quality(((95, 5), (20, 80))))
    assert (found.n, found.share) == (200, 0.15)
    assert (found.low, found.high) == wilson(0.15, 200)
    assert found.corrected == pytest.approx((0.15 - 0.05) / (0.8 - 0.05))


def test_the_correction_finds_the_true_share():
    """A classifier that misses a third and sees 3 % too many, on 20,000 images, 10 % with it."""
    rng = np.random.default_rng(0)

    def answers(truth):
        return np.where(truth == 1, rng.random(len(truth)) > 1 / 3, rng.random(len(truth)) < 0.03)

    truth, unknown = (np.arange(20_000) % 2, (np.arange(20_000) % 10 == 0).astype(int))
    classifier = AttributeClassifier("x", bright)
    quality = measure(classifier, coded(answers(truth)), truth)
    found = occurrence(classifier, coded(answers(unknown)), quality)
    assert not found.low <= 0.1 <= found.high  # the count itself is off
    assert found.corrected == pytest.approx(0.1, abs=0.008)


def test_a_guess_has_no_correction():
    found = occurrence(AttributeClassifier("x", bright), coded([0, 1]), Quality(((5, 5), (5, 5))))
    assert found.corrected is None
    assert found.share == 0.5


def test_attributes_under_95_percent_are_left_out_with_a_sentence():
    classifiers = [
        (AttributeClassifier("Bald", bright), Quality(((94, 4), (1, 1)))),  # 95 % to the digit
        (AttributeClassifier("Big Nose", bright), Quality(((50, 10), (10, 30)))),
        (AttributeClassifier("Hat", bright), Quality(((50, 0), (5, 45)))),
    ]
    counted, left_out = occurrences(classifiers, coded([0, 1, 1, 1]))
    assert {name: o.share for name, o in counted.items()} == {"Bald": 0.75, "Hat": 0.75}
    assert list(left_out) == ["Big Nose"]
    assert left_out["Big Nose"].startswith("Big Nose is left out: its classifier is 80.0% accurate")
    assert "balanced 79.2%" in left_out["Big Nose"] and "95%" in left_out["Big Nose"]


@pytest.mark.slow
def test_real_digits():
    """Zeros and ones told apart, in either colour."""
    data = load_dataset(DemoDigits(n=4000, majority=0.5), seed=0)
    chosen = np.isin(data.labels, (0, 1))
    images, labels = data.values[chosen], data.labels[chosen]
    classifier = fit_small("one", images[:400], labels[:400], seed=0, epochs=4)
    assert measure(classifier, images[400:], labels[400:]).accuracy >= 0.97
