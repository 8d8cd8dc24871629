"""Digit sets with a rare group: Colored MNIST, MNIST-FMNIST, and the digits of the demo."""

from importlib import resources

import numpy as np
from PIL import Image

from diagan.config import ColoredMnist, DemoDigits, MnistFmnist
from diagan.data.dataset import Dataset, expect_enough, fingerprint
from diagan.data.sources import load_split, resized
from diagan.random import numpy_generator

COLOURS = ("red", "green")  # group 0 and 1 are the channels 0 and 1
N_DEMO = 13_000
N_DEMO_MAX = 12_900  # at least 100 stay held out
N_DEMO_HELDOUT = 1_000


def colored_mnist(config: ColoredMnist, seed: int, root: str | None = None) -> Dataset:
    """Every digit once, int(n * majority) in red and the rest in green (FACTS 1.4)."""
    images, labels = load_split("mnist", "train", "binary", config.size, root)
    test, _ = load_split("mnist", "test", "binary", config.size, root)
    expect_enough(config.n, len(images), "MNIST's training images")
    test = test[: _n_heldout(config.n)]
    return _colored(images[: config.n], labels[: config.n], test, config, seed)


def demo_digits(config: DemoDigits, seed: int, root: str | None = None) -> Dataset:
    """Colored MNIST from the digits in the package; those after the first n are held out."""
    expect_enough(config.n, N_DEMO_MAX, "the digits in the package")
    with resources.files(__package__).joinpath("demo_digits.npz").open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        bits, labels = stored["bits"], stored["labels"].astype(np.int64)
    used = slice(0, min(config.n + N_DEMO_HELDOUT, N_DEMO))
    digits = 255 * np.unpackbits(bits[used], axis=1).reshape(-1, 28, 28)  # uint8 [N, 28, 28]
    images = np.stack([resized(Image.fromarray(d), "grey", config.size) for d in digits])
    n = config.n
    return _colored(images[:n], labels[:n], images[n:], config, seed)


def mnist_fmnist(config: MnistFmnist, seed: int, root: str | None = None) -> Dataset:
    """int(n * majority) indices from MNIST, the others from Fashion-MNIST (FACTS 1.5)."""

    def mix(split: str, n: int, purpose: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        digits, digit_labels = load_split("mnist", split, "grey", config.size, root)
        clothes, cloth_labels = load_split("fashion_mnist", split, "grey", config.size, root)
        expect_enough(n, min(len(digits), len(clothes)), f"the {split} images")
        groups = _split_groups(n, config.majority, seed, purpose)
        images, labels = np.array(digits[:n]), digit_labels[:n].copy()
        images[groups == 1] = clothes[:n][groups == 1]
        labels[groups == 1] = cloth_labels[:n][groups == 1]
        return images[:, None], groups, labels  # [n, 1, size, size]

    values, groups, labels = mix("train", config.n, "data/mnist_fmnist")
    n_heldout = _n_heldout(config.n)
    heldout, heldout_groups, _ = mix("test", n_heldout, "data/mnist_fmnist/heldout")
    return _dataset(values, groups, ("MNIST", "FMNIST"), heldout, heldout_groups, labels)


def _colored(
    images: np.ndarray,
    labels: np.ndarray,
    heldout: np.ndarray,
    config: ColoredMnist | DemoDigits,
    seed: int,
) -> Dataset:
    purpose = f"data/{config.kind}"
    groups = _split_groups(len(images), config.majority, seed, purpose)
    heldout_groups = _split_groups(len(heldout), config.majority, seed, f"{purpose}/heldout")
    values, heldout = _colour(images, groups), _colour(heldout, heldout_groups)
    return _dataset(values, groups, COLOURS, heldout, heldout_groups, labels)


def _colour(images: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """uint8 [N, H, W] -> [N, 3, H, W]: in the red channel for group 0, in the green for 1."""
    values = np.zeros((len(images), 3, *images.shape[1:]), dtype=np.uint8)
    values[np.arange(len(images)), groups] = images
    return values


def _split_groups(n: int, majority: float, seed: int, purpose: str) -> np.ndarray:
    """int64 [n]: 0 for the first int(n * majority) of a permutation, 1 for the rest."""
    groups = np.ones(n, dtype=np.int64)
    groups[numpy_generator(seed, purpose).permutation(n)[: int(n * majority)]] = 0
    return groups


def _dataset(
    values: np.ndarray,
    groups: np.ndarray,
    names: tuple[str, ...],
    heldout: np.ndarray,
    heldout_groups: np.ndarray,
    labels: np.ndarray,
) -> Dataset:
    counts = ", ".join(f"{np.sum(groups == i):,} {name}" for i, name in enumerate(names))
    return Dataset(
        values=values,
        groups=groups,
        group_names=names,
        heldout=heldout,
        heldout_groups=heldout_groups,
        fingerprint=fingerprint(values, groups),
        rare=1,
        labels=labels,
        notes=(f"{len(values):,} training images: {counts}",),
    )


def _n_heldout(n: int) -> int:
    """As many test images as keep MNIST's proportion: 10,000 for 60,000."""
    return max(1, n // 6)
