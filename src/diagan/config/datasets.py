"""Data: each kind has the settings that it needs, and no others."""

from dataclasses import dataclass
from typing import ClassVar, Literal

SIDES = (16, 32, 64, 128, 256, 512, 1024)  # pixels that some network makes


@dataclass(frozen=True)
class SingleGaussian:
    """Points of one 2-D Gaussian; far points are the minor group (paper, App. F)."""

    kind: ClassVar[str] = "single_gaussian"
    n: int = 10_000
    sigma: float = 3.0  # a standard deviation, though the paper writes a covariance (FACTS 1.2)


@dataclass(frozen=True)
class Gaussians25:
    """A 5 x 5 grid of 2-D Gaussians."""

    kind: ClassVar[str] = "gaussians25"
    n: int = 10_000


@dataclass(frozen=True)
class ColoredMnist:
    """Red digits (major) and a few green ones (minor)."""

    kind: ClassVar[str] = "colored_mnist"
    n: int = 60_000
    majority: float = 0.99
    size: int = 32


@dataclass(frozen=True)
class MnistFmnist:
    """Digits (major) and a few pieces of clothing (minor)."""

    kind: ClassVar[str] = "mnist_fmnist"
    n: int = 60_000
    majority: float = 0.99
    size: int = 32


@dataclass(frozen=True)
class DemoDigits:
    """Coloured digits from the few thousand that ship with the package."""

    kind: ClassVar[str] = "demo_digits"
    n: int = 4_000
    majority: float = 0.97
    size: int = 16


@dataclass(frozen=True)
class Cifar10:
    """CIFAR-10; its classes are the groups."""

    kind: ClassVar[str] = "cifar10"
    n: int = 50_000
    size: int = 32


@dataclass(frozen=True)
class CelebA:
    """CelebA's aligned faces with their 40 attributes, in its own splits."""

    kind: ClassVar[str] = "celeba"
    n: int = 162_770
    size: int = 64
    attribute: str = "Bald"
    """Who has it is one group, who has not the other."""
    path: str | None = None
    """The folder with img_align_celeba, list_attr_celeba.txt and list_eval_partition.txt; without
    it, celeba in --data-root, or the Hugging Face hub."""


@dataclass(frozen=True)
class FFHQ:
    """The faces of FFHQ; up to 1,000 after the first n are held out."""

    kind: ClassVar[str] = "ffhq"
    n: int = 69_000
    size: int = 256
    path: str | None = None
    """A folder or zip of the images; without it, ffhq in --data-root, or the Hugging Face hub."""


@dataclass(frozen=True)
class DrawnFaces:
    """Faces drawn by code; each attribute is given to its share of them, whatever the others."""

    kind: ClassVar[str] = "drawn_faces"
    n: int = 10_000
    size: int = 32
    hat: float = 0.03
    glasses: float = 0.06
    moustache: float = 0.04
    pale: float = 0.05
    bald: float = 0.02
    attribute: Literal["hat", "glasses", "moustache", "pale", "bald"] = "hat"
    """Who has it is one group, who has not the other."""


@dataclass(frozen=True)
class ImageFolder:
    """A person's own images: a folder, a zip, a parquet file, a .npy or .npz, or a hub name."""

    kind: ClassVar[str] = "folder"
    path: str = ""
    size: int = 32
    """Side in pixels; `run --data` takes the nearest of 32, 64, 128, 256."""
    group_by: str | None = None
    """A column that names the groups (default: group, label or class, or else sub-folders)."""


DataConfig = (
    SingleGaussian
    | Gaussians25
    | ColoredMnist
    | MnistFmnist
    | DemoDigits
    | Cifar10
    | CelebA
    | FFHQ
    | DrawnFaces
    | ImageFolder
)
