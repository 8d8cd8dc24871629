"""Images -> features: Inception, a classifier, pixels, a discriminator, or anyone's own network."""

from pathlib import Path

from diagan.config import ColoredMnist, MnistFmnist
from diagan.data import Dataset
from diagan.errors import UserError
from diagan.features.cache import cached_features
from diagan.features.classifier import BUNDLED, ClassifierFeatures, bundled
from diagan.features.common import Extractor, Features, expect_images, extract
from diagan.features.inception import InceptionFeatures, Resize
from diagan.features.own import DiscriminatorFeatures, Own, Pixels
from diagan.features.patches import SMALLEST, Patches
from diagan.networks.classifier import SIZE
from diagan.rundata import read_settings
from diagan.rundir import RunDir
from diagan.sample import load_generator
from diagan.weights import find_weights, load_weights

__all__ = [
    "NAMES",
    "ClassifierFeatures",
    "DiscriminatorFeatures",
    "Extractor",
    "Features",
    "InceptionFeatures",
    "Own",
    "Patches",
    "Pixels",
    "best_for",
    "by_name",
    "cached_features",
    "expect_images",
    "extract",
]

NAMES = ("inception", *(f"classifier-{dataset}" for dataset in BUNDLED), "pixels", "discriminator")


def by_name(
    name: str,
    shape: tuple[int, ...],
    *,
    weights: Path | None = None,
    resize: Resize = "tf1",
    run: RunDir | None = None,
) -> Extractor:
    """The extractor of this name for images of `shape` (C, H, W).

    `weights` is a file to load instead of what was imported or ships with the package;
    `discriminator` is that of `run` at the end of phase 1, which has seen uniform data only.
    """
    if name == "inception":
        tensors, sha256, known = load_weights("inception", weights)
        return InceptionFeatures(tensors, sha256, known=known, resize=resize)
    if name in NAMES and name.startswith("classifier-"):
        return ClassifierFeatures(name, weights or bundled(name.removeprefix("classifier-")))
    if name == "pixels":
        return Pixels(shape)
    if name == "discriminator":
        if run is None:
            raise UserError("the features of a discriminator need a run folder that has one")
        return DiscriminatorFeatures(load_generator(run.path, "phase1").d, shape)
    raise UserError(f"there is no extractor {name!r}; expected one of {', '.join(NAMES)}")


def best_for(
    dataset: Dataset,
    run: RunDir | None,
    *,
    weights: Path | None = None,
    resize: Resize = "tf1",
) -> Extractor:
    """What an evaluation uses if nothing is said: Inception where its weights are at hand.

    Else, the bundled classifier for the two MNIST sets, or the run's own D; without a run, filters
    learnt from the real images, or the pixels of tiny ones. Their numbers are `published = False`:
    not comparable with published FID.
    """
    if not dataset.is_image:
        raise UserError("points need no extractor: their coordinates are their features")
    if weights is not None or find_weights("inception"):
        return by_name("inception", dataset.shape, weights=weights, resize=resize)
    if run is None:
        is_tiny = min(dataset.shape[1:]) < SMALLEST
        return Pixels(dataset.shape) if is_tiny else Patches(dataset.values)
    data = read_settings(run).data
    if isinstance(data, ColoredMnist | MnistFmnist) and data.size == SIZE:
        return by_name(f"classifier-{data.kind}", dataset.shape)
    return by_name("discriminator", dataset.shape, run=run)
