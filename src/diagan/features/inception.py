"""Inception's pool3 features, and logits for the Inception Score."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from diagan.device import best_device, device_of
from diagan.features.common import Features, three_channels
from diagan.networks.inception import N_FEATURES, Inception, resize_halfpixel, resize_tf1

Resize = Literal["tf1", "halfpixel"]


class InceptionFeatures:
    """pool3 [B, 2048] and logits [B, 1008] without their bias, as IS was published with.

    `resize` is that of the original graph (`tf1`) or of pytorch-fid (`halfpixel`).
    """

    name = "inception"
    dim = N_FEATURES

    def __init__(
        self, weights: Mapping[str, Tensor], sha256: str, *, known: bool, resize: Resize = "tf1"
    ) -> None:
        self.net = Inception()
        self.net.load_state_dict(dict(weights))
        self.net.eval().to(best_device())
        self.resize = resize
        self.weights_sha256 = sha256
        self.version = f"weights {sha256[:16]}, resize {resize}"
        self.published = known and resize == "tf1"

    def __call__(self, images: Tensor) -> Features:
        with torch.no_grad():
            features = self.net(self.prepare(images.to(device_of(self.net))))
            return Features(features, features @ self.net.fc.weight.T).cpu()

    def prepare(self, images: Tensor) -> Tensor:
        """uint8 of any size -> what the network sees: [B, 3, 299, 299]."""
        # one by one: of a batch of huge images only one is held as floats
        return torch.cat([self._prepare_one(image) for image in images.split(1)])

    def _prepare_one(self, image: Tensor) -> Tensor:
        x = three_channels(image).float()
        if self.resize == "tf1":
            return (resize_tf1(x) - 128) / 128
        return 2 * resize_halfpixel(x / 255) - 1
