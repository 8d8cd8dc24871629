"""Features of images learnt from their patches alone, without labels (Coates, Lee and Ng 2011).

Filters are directions in which whitened patches cluster. A linear layer on them learns more from a
few thousand images, and in seconds, than a convolutional network does in minutes.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, conv2d, normalize, relu

from diagan.batches import at_once
from diagan.data import as_input
from diagan.data.dataset import fingerprint
from diagan.errors import UserError
from diagan.features.common import Features
from diagan.random import numpy_generator

SIDE = 6  # of a patch, in pixels
N_PATCHES = 20_000
N_ROUNDS = 10  # of clustering
GRAIN = 0.03  # added to a patch's variance, images being in [-1, 1]: flat patches stay small
NOISE = 0.1  # added to the eigenvalues when whitening
SHRINK = 0.25  # off a filter's answer
N_PLACES = 16  # a side is looked at in about so many places
SMALLEST = 12  # pixels of the last level of the pyramid
POOL, COLOURS = 2, 4  # answers are averaged over 2 x 2 parts, colours over 4 x 4
MOST = 250  # images at once
N_FEW = 16  # filters a level: a covariance of 304 features takes no more than 1,000 images of 32x32
Images = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Level:
    """Filters for images halved `depth` times."""

    depth: int
    filters: Tensor  # [K, C, 6, 6]
    bias: Tensor  # [K]

    def __call__(self, images: Tensor) -> Tensor:
        """Images [B, C, H, W] -> [B, 2 K 2 2]: how strongly each filter answers, up and down."""
        x = halved(images, self.depth)
        stride = max(1, min(x.shape[2:]) // N_PLACES)
        mean = avg_pool2d(x.mean(1, keepdim=True), SIDE, stride)
        square = avg_pool2d((x * x).mean(1, keepdim=True), SIDE, stride)
        deviation = ((square - mean * mean).clamp(min=0) + GRAIN).sqrt()
        # As if each patch had been normalised before it was filtered.
        answers = conv2d(x, self.filters, stride=stride)
        answers = answers - mean * self.filters.sum(dim=(1, 2, 3))[:, None, None]
        answers = answers / deviation - self.bias[:, None, None]
        both = torch.cat([relu(answers - SHRINK), relu(-answers - SHRINK)], dim=1)
        return adaptive_avg_pool2d(both, POOL).flatten(1)


@dataclass(frozen=True, eq=False)
class PatchFeatures:
    """Answers of filters at every level of a pyramid, and coarse colours."""

    levels: tuple[Level, ...]

    def __call__(self, images: Images) -> Tensor:
        """uint8 [N, C, H, W] -> float32 [N, F], a few images at a time."""
        size = at_once(images.shape[1:], MOST)
        parts = [images[i : i + size] for i in range(0, len(images), size)]
        return torch.cat([self._of(as_input(torch.from_numpy(np.array(part)))) for part in parts])

    def _of(self, x: Tensor) -> Tensor:
        colours = adaptive_avg_pool2d(x, COLOURS).flatten(1)
        return torch.cat([*(level(x) for level in self.levels), colours], dim=1)


class Patches:
    """Features for who has no weight file: learnt from the real images, of which they depend."""

    name = "patches"
    published = False

    def __init__(self, images: Images) -> None:
        self.net = learn_features(images, n_filters=N_FEW, seed=0)
        filters = [np.ascontiguousarray(level.filters.numpy()) for level in self.net.levels]
        self.version = f"filters {fingerprint(*filters)}"
        self.dim = self.net(images[:1]).shape[1]

    def __call__(self, images: Tensor) -> Features:
        return Features(self.net(images.numpy()))


def learn_features(*sets: Images, n_filters: int, seed: int) -> PatchFeatures:
    """Filters for several sets of uint8 images [N, C, H, W], from as many patches of each."""
    side = min(sets[0].shape[2:])
    if side < SMALLEST:
        raise UserError(f"images of {side} pixels a side are too small; at least {SMALLEST}")
    n_levels = 1 + int(np.log2(side / SMALLEST))
    levels = []
    for depth in range(n_levels):
        rng = numpy_generator(seed, "patches", depth)
        found = [draw_patches(images, depth, N_PATCHES // len(sets), rng) for images in sets]
        levels.append(Level(depth, *learn_filters(torch.cat(found), n_filters)))
    return PatchFeatures(tuple(levels))


def draw_patches(images: Images, depth: int, n: int, rng: np.random.Generator) -> Tensor:
    """n patches [n, C, 6, 6] at random places of random images."""
    n_images = min(n, len(images))
    x = halved(as_input(torch.from_numpy(images[rng.permutation(len(images))[:n_images]])), depth)
    which = rng.integers(n_images, size=n)
    tops, lefts = (rng.integers(length - SIDE + 1, size=n) for length in x.shape[2:])
    return torch.stack([x[i, :, a : a + SIDE, b : b + SIDE]
                        for i, a, b in zip(which, tops, lefts)])  # fmt: skip


def learn_filters(patches: Tensor, n_filters: int) -> tuple[Tensor, Tensor]:
    """Filters [K, C, 6, 6] and their bias [K]: directions in which whitened patches cluster."""
    flat = patches.flatten(1).double()
    flat = flat - flat.mean(dim=1, keepdim=True)
    flat = flat / (flat.var(dim=1, keepdim=True, correction=0) + GRAIN).sqrt()
    mean = flat.mean(dim=0)
    values, vectors = torch.linalg.eigh(torch.cov((flat - mean).T))
    whitening = vectors @ torch.diag((values.clamp(min=0) + NOISE).rsqrt()) @ vectors.T
    white = (flat - mean) @ whitening
    centres = normalize(white[:n_filters].clone())  # patches are in random order
    for _ in range(N_ROUNDS):
        answers = white @ centres.T  # [n, K]
        nearest = answers.abs().argmax(dim=1)
        sign = answers.gather(1, nearest[:, None]).sign()
        sums = torch.zeros_like(centres).index_add_(0, nearest, white * sign)
        centres = normalize(sums + 1e-3 * centres)  # one that nobody is near to stays
    filters = centres @ whitening
    return filters.view(-1, *patches.shape[1:]).float(), (filters @ mean).float()


def halved(images: Tensor, times: int) -> Tensor:
    return avg_pool2d(images, 2**times) if times else images
