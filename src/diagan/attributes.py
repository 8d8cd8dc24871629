"""How often an attribute occurs among images, by a classifier whose mistakes are known."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate

from diagan.data import as_input
from diagan.errors import UserError
from diagan.fitting import Images, OnEpoch, check_images, fit, initialised
from diagan.metrics.shares import rogan_gladen, wilson
from diagan.networks import vgg
from diagan.sampling import Indices

SIDE = 64
BATCH = 128
MIN_ACCURACY = 0.95  # below it the paper does not count an attribute (Section 5.3)

Labels = NDArray[np.int64]  # [N], 1: has the attribute


@dataclass(frozen=True)
class AttributeClassifier:
    """Says of each image whether it has an attribute.

    `answer` maps uint8 [B, C, H, W] to 0 or 1, or to booleans, [B]: a network's or anyone's own.
    """

    name: str
    answer: Callable[[Images], ArrayLike]

    def predict(self, images: Images) -> Labels:
        """1 where an image has the attribute, else 0, [N]."""
        check_images(images)
        parts = (images[i : i + BATCH] for i in range(0, len(images), BATCH))
        return np.concatenate([self._checked_answer(part) for part in parts])

    def _checked_answer(self, images: Images) -> Labels:
        answer = np.asarray(self.answer(images))
        if answer.shape != (len(images),) or not np.isin(answer, (0, 1)).all():
            raise UserError(
                f"the classifier of {self.name} answers {len(images)} images with shape "
                f"{answer.shape}, {answer.dtype}: it must give one 0 or 1 for each"
            )
        return answer.astype(np.int64)


# --- classifiers of our own ----------------------------------------------------------------------


def of_network(name: str, net: nn.Module) -> AttributeClassifier:
    """The larger of a network's two logits; the network sees 3 x 64 x 64 in [-1, 1]."""

    def answer(images: Images) -> ArrayLike:
        net.eval()  # the published count leaves VGG's dropout on (FACTS 7.3)
        with torch.no_grad():
            logits: Tensor = net(_as_seen(images))  # [B, 2]
        return logits.argmax(dim=1).numpy()

    return AttributeClassifier(name, answer)


def fit_vgg(
    name: str,
    images: Images,
    labels: Labels,
    state: dict[str, Tensor],
    *,
    seed: int,
    epochs: int = 10,
    on_epoch: OnEpoch | None = None,
) -> AttributeClassifier:
    """The paper's: VGG16's three linear layers trained on top of its ImageNet convolutions.

    `state` is that of the public weight file. The frozen convolutions see each image once, not
    once an epoch; what they make of it takes two thirds of its memory.
    """
    truth = _checked_labels(images, labels)
    net = initialised(lambda: vgg.pretrained(state, n_classes=2), seed)
    with torch.no_grad():
        parts = (images[i : i + BATCH] for i in range(0, len(images), BATCH))
        maps = torch.cat([net.features(_as_seen(part)) for part in parts])  # [N, 512, 2, 2]

    def loss(indices: Indices) -> Tensor:
        return cross_entropy(net.head(maps[indices]), truth[indices])

    sgd = torch.optim.SGD(net.classifier.parameters(), lr=1e-3, momentum=0.9)
    fit(net, sgd, loss, len(images), epochs=epochs, batch_size=128, seed=seed, on_epoch=on_epoch)
    return of_network(name, net)


def fit_small(
    name: str,
    images: Images,
    labels: Labels,
    *,
    seed: int,
    epochs: int = 10,
    on_epoch: OnEpoch | None = None,
) -> AttributeClassifier:
    """A classifier of our own that needs no weight file: four small convolutions."""
    truth = _checked_labels(images, labels)
    net = initialised(_small_network, seed)

    def loss(indices: Indices) -> Tensor:
        return cross_entropy(net(_as_seen(images[indices])), truth[indices])

    adam = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    fit(net, adam, loss, len(images), epochs=epochs, batch_size=64, seed=seed, on_epoch=on_epoch)
    return of_network(name, net)


def _small_network() -> nn.Module:
    layers: list[nn.Module] = []
    for n_in, n_out in ((3, 16), (16, 32), (32, 64), (64, 64)):  # 64 x 64 -> 4 x 4
        layers += [nn.Conv2d(n_in, n_out, 3, stride=2, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(n_out), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4 * 4, 2))


def _as_seen(images: Images) -> Tensor:
    """Float [B, 3, 64, 64] in [-1, 1]: grey three times over, other sizes resized."""
    pixels = torch.from_numpy(np.array(images))  # a copy: the array may be read-only
    if pixels.shape[2:] != (SIDE, SIDE):
        pixels = interpolate(pixels, (SIDE, SIDE), mode="bilinear", antialias=True)
    return as_input(pixels).expand(-1, 3, -1, -1)


def _checked_labels(images: Images, labels: Labels) -> Tensor:
    """The labels as a tensor; both answers must occur."""
    check_images(images)
    if labels.shape != (len(images),) or not np.isin(labels, (0, 1)).all():
        raise UserError(
            f"{len(images)} images with labels of shape {labels.shape}: give a 0 or 1 for each"
        )
    if labels.min() == labels.max():
        raise UserError(
            f"all {len(labels)} labels are {int(labels[0])}: give images with and without"
        )
    return torch.from_numpy(labels.astype(np.int64))


# --- how good it is, and how often the attribute occurs ------------------------------------------


@dataclass(frozen=True)
class Quality:
    """How a classifier does on images with known labels; every figure 0 to 1, more is better."""

    confusion: tuple[tuple[int, int], tuple[int, int]]  # counts by [truth][answer]

    @property
    def accuracy(self) -> float:
        (tn, fp), (fn, tp) = self.confusion
        return (tn + tp) / (tn + fp + fn + tp)

    @property
    def sensitivity(self) -> float:
        """The share of images with the attribute in which it is seen."""
        fn, tp = self.confusion[1]
        return tp / (fn + tp)

    @property
    def specificity(self) -> float:
        """The share of images without the attribute in which none is seen."""
        tn, fp = self.confusion[0]
        return tn / (tn + fp)

    @property
    def balanced_accuracy(self) -> float:
        return (self.sensitivity + self.specificity) / 2


class Occurrence(NamedTuple):
    """The share of n images that a classifier says have the attribute, with its 95 % interval.

    `corrected`: the share that this count stands for, given how often the classifier errs on
    images like those it was measured on; None if it is no better than guessing.
    """

    n: int
    share: float
    low: float
    high: float
    corrected: float | None


class Occurrences(NamedTuple):
    """By attribute; `left_out` holds a sentence for each that was not counted."""

    counted: dict[str, Occurrence]
    left_out: dict[str, str]


def measure(classifier: AttributeClassifier, images: Images, labels: Labels) -> Quality:
    """Compare a classifier's answers with the truth, on images that it was not trained on."""
    truth = _checked_labels(images, labels).numpy()
    counts = np.bincount(2 * truth + classifier.predict(images), minlength=4).tolist()
    return Quality(((counts[0], counts[1]), (counts[2], counts[3])))


def occurrence(classifier: AttributeClassifier, fake: Images, quality: Quality) -> Occurrence:
    """How often a classifier of known quality sees its attribute among generated images."""
    share = float(classifier.predict(fake).mean())
    corrected = rogan_gladen(
        share, sensitivity=quality.sensitivity, specificity=quality.specificity
    )
    return Occurrence(len(fake), share, *wilson(share, len(fake)), corrected)


def occurrences(
    classifiers: Iterable[tuple[AttributeClassifier, Quality]], fake: Images
) -> Occurrences:
    """Count every attribute whose classifier is at least 95 % accurate."""
    counted: dict[str, Occurrence] = {}
    left_out: dict[str, str] = {}
    for classifier, quality in classifiers:
        if quality.accuracy >= MIN_ACCURACY:
            counted[classifier.name] = occurrence(classifier, fake, quality)
        else:
            left_out[classifier.name] = (
                f"{classifier.name} is left out: its classifier is {quality.accuracy:.1%} accurate "
                f"(balanced {quality.balanced_accuracy:.1%}), under the {MIN_ACCURACY:.0%} that "
                "counting needs; train it on more images or for longer"
            )
    return Occurrences(counted, left_out)
