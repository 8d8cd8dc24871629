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

NAMES = ("inception", *(f"classifier-{dataset}" for dataset in BUNDLED), "patches", "pixels",
         "discriminator")  # fmt: skip


def by_name(
    name: str,
    dataset: Dataset,
    *,
    weights: Path | None = None,
    resize: Resize = "tf1",
    run: RunDir | None = None,
) -> Extractor:
    """The extractor of this name for the images of a dataset.

    `weights` is a file to load instead of what was imported or ships with the package; `patches`
    are filters learnt from the dataset; `discriminator` is that of `run` at the end of phase 1,
    which has seen uniform data only.
    """
    if name == "inception":
        tensors, sha256, known = load_weights("inception", weights)
        return InceptionFeatures(tensors, sha256, known=known, resize=resize)
    if name in NAMES and name.startswith("classifier-"):
        return ClassifierFeatures(name, weights or bundled(name.removeprefix("classifier-")))
    if name == "patches":
        return Patches(dataset.values)
    if name == "pixels":
        return Pixels(dataset.shape)
    if name == "discriminator":
        if run is None:
            raise UserError("the features of a discriminator need a run folder that has one")
        if (n := read_settings(run).methods.packing) > 1:
            raise UserError(f"the discriminator of {run.path} looks at {n} images at once and has "
                            "no features of one; take patches or pixels")  # fmt: skip
        return DiscriminatorFeatures(load_generator(run.path, "phase1").d, dataset.shape)
    raise UserError(f"there is no extractor {name!r}; expected one of {', '.join(NAMES)}")


def best_for(
    dataset: Dataset,
    run: RunDir | None,
    *,
    weights: Path | None = None,
    resize: Resize = "tf1",
) -> Extractor:
    """What an evaluation uses if nothing is said: Inception where its weights are at hand.

    Else, the bundled classifier for the two MNIST sets, or the run's own D; without a run, or where
    D has no features of a single image, filters learnt from the real images, or the pixels of tiny
    ones. Their numbers are `published = False`: not comparable with published FID.
    """
    if not dataset.is_image:
        raise UserError("points need no extractor: their coordinates are their features")
    if weights is not None or find_weights("inception"):
        return by_name("inception", dataset, weights=weights, resize=resize)
    if run is not None:
        c = read_settings(run)
        if isinstance(c.data, ColoredMnist | MnistFmnist) and c.data.size == SIZE:
            return by_name(f"classifier-{c.data.kind}", dataset)
        if c.methods.packing == 1:
            return by_name("discriminator", dataset, run=run)
    return by_name("pixels" if min(dataset.shape[1:]) < SMALLEST else "patches", dataset)
