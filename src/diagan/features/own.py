"""Extractors without weight files: pixels, a run's own discriminator, anyone's own network."""

import copy
import hashlib
import math
import re
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from diagan.data import as_input
from diagan.data.dataset import flat_bytes
from diagan.device import device_of
from diagan.errors import UserError
from diagan.features.common import Features, expect_images


class Pixels:
    """Every pixel of every channel, in [0, 1]: [B, C * H * W]."""

    name = "pixels"
    version = "x / 255"
    published = False

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.dim = math.prod(shape)

    def __call__(self, images: Tensor) -> Features:
        return Features(images.flatten(1).float() / 255)


class DiscriminatorFeatures:
    """What lies under the last layer of a discriminator, in eval mode.

    Take a D that was trained on uniformly drawn data: it has to be fair to every group. It is
    copied, so that training on changes nothing here.
    """

    name = "discriminator"
    published = False

    def __init__(self, d: nn.Module, shape: tuple[int, ...]) -> None:
        self.d = copy.deepcopy(d).eval()
        self.version = f"weights {_hash_of(self.d)}"
        self.dim = self(torch.zeros(1, *shape, dtype=torch.uint8)).features.shape[1]

    def __call__(self, images: Tensor) -> Features:
        with torch.no_grad():
            scores = self.d(as_input(images.to(device_of(self.d))))
            return Features(scores.features.flatten(1).float()).cpu()


def _hash_of(net: nn.Module) -> str:
    """Of its layers and all its tensors."""
    digest = hashlib.sha256(repr(net).encode())
    for key, value in net.state_dict().items():
        digest.update(key.encode())
        digest.update(flat_bytes(value.detach().cpu().numpy()))
    return digest.hexdigest()[:16]


class Own:
    """Anyone's network: uint8 images [B, C, H, W] as they are -> [B, F], in eval mode.

    `sample` is a batch to find F from. Only with a `version`, which has to change whenever the
    numbers do, are its features cached.
    """

    published = False

    def __init__(
        self, net: Callable[[Tensor], Tensor | np.ndarray], name: str, sample: np.ndarray,
        version: str = "",
    ) -> None:  # fmt: skip
        if not re.fullmatch(r"[\w.-]+", name):
            raise UserError(f"the extractor's name {name!r}: expected letters, digits, _ . and -")
        self.net = copy.deepcopy(net).eval() if isinstance(net, nn.Module) else net
        self.name, self.version = name, version
        expect_images(sample)
        self.dim = self._checked(torch.from_numpy(np.array(sample))).shape[1]

    def __call__(self, images: Tensor) -> Features:
        return Features(self._checked(images))

    def _checked(self, images: Tensor) -> Tensor:
        with torch.no_grad():
            found = torch.as_tensor(self.net(images))
        if found.dim() != 2 or len(found) != len(images) or not found.is_floating_point():
            raise UserError(
                f"the extractor {self.name} gave {found.dtype} {list(found.shape)} for "
                f"{len(images)} images; expected floats [{len(images)}, F]"
            )
        return found.float().cpu()
