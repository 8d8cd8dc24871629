"""Methods: each is off unless a flag says otherwise."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class TopK:
    """G learns from its best fakes alone, of which there are fewer with every pass."""

    floor: float = 1.0
    """The least share of the batch; 1: off, 0.5 in the published code."""
    decay: float = 0.99
    """What a pass over the data leaves of the share."""


@dataclass(frozen=True)
class Rotation:
    """D tells by how much an image was turned (SSGAN), and G makes images that can be told."""

    d: float = 0.0
    """Weight in D's loss, on turned reals; 0: off, 1 in SSGAN."""
    g: float = 0.0
    """Weight in G's loss, on turned fakes; 0.2 in SSGAN."""


@dataclass(frozen=True)
class Inclusive:
    """Every training image draws the fake nearest to it closer (Inclusive GAN)."""

    weight: float = 0.0
    """Of the distance to the image; 0: off, 10 in the published code."""
    interpolation: float = 0.0
    """Of the distances of a fake between two to both; 4 in the published code."""
    candidates: int = 2
    """Fakes per training image among which the nearest is looked for; 10 in the published code."""
    passes: float = 20.0
    """Passes over the data between two such searches."""
    extractor: Literal["pixels", "classifier"] = "pixels"
    """What is near: in pixels, or to the first layers of the classifier of the MNIST sets."""


@dataclass(frozen=True)
class Augment:
    """D sees altered images, real and fake alike (DiffAugment); recording does not."""

    colour: bool = False
    """Brightness, saturation and contrast."""
    translation: float = 0.0
    """By up to this share of the side; 0: off, 0.125 is usual."""
    cutout: float = 0.0
    """A square with this share of the side becomes grey; 0: off, 0.5 is usual."""


@dataclass(frozen=True)
class Methods:
    """The paper's baselines and other changes to the game."""

    gold: Literal["off", "published", "normalised"] = "off"
    """Weigh D's fake terms by D's own logit in phase 2: as it is, or non-negative with mean 1."""
    topk: TopK = field(default_factory=TopK)
    packing: int = 1
    """Images that D scores together (PacGAN); 1: off, 2 in the paper. Nothing can be recorded."""
    rotation: Rotation = field(default_factory=Rotation)
    inclusive: Inclusive = field(default_factory=Inclusive)
    ema: float = 0.0
    """What a step leaves of the average of G's weights, from which is drawn; 0: off, 0.998."""
    augment: Augment = field(default_factory=Augment)
    logistic_head: bool = False
    """A second output of D, trained with the logistic loss on D's features: a density ratio
    whatever the loss, and what is recorded and rejected by (paper, Section 5.2)."""
