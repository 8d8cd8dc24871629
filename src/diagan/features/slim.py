"""The beginning of the paper's classifier: features quick enough to train a generator through."""

from math import sqrt

import torch.nn.functional as F
from torch import Tensor, nn

from diagan.networks.classifier import KERNEL, Classifier, FourierConvolution

N_LAYERS = 2
CELL = 4  # outputs of the last of them, along each side, that are averaged


class SlimClassifier(nn.Module):
    """Images [B, C, 32, 32] in [-1, 1] -> [B, 512], whose distance is a root mean square.

    Two layers of a classifier in eval mode, the second at every second pixel, means over 4x4 of
    them: a sixtieth of its multiplications. Gradients reach the images; no weight learns.
    """

    weight0: Tensor
    bias0: Tensor
    weight1: Tensor
    bias1: Tensor

    def __init__(self, net: Classifier) -> None:
        super().__init__()
        for number, (layer, norm) in enumerate(zip(net.convolutions[:N_LAYERS], net.norms)):
            # BatchNorm in eval mode is a scale and a shift, which the convolution takes over.
            assert isinstance(norm, nn.BatchNorm1d) and norm.running_mean is not None
            assert isinstance(layer, FourierConvolution) and norm.running_var is not None
            scale = norm.weight / (norm.running_var + norm.eps).sqrt()
            weight = layer.weight * scale[:, None, None, None]
            self.register_buffer(f"weight{number}", weight.detach())
            self.register_buffer(f"bias{number}", (norm.bias - norm.running_mean * scale).detach())

    def maps(self, images: Tensor) -> Tensor:
        """[B, 32, 16, 16]."""
        x = F.relu(F.conv2d(images, self.weight0, self.bias0, padding=KERNEL // 2))
        return F.relu(F.conv2d(x, self.weight1, self.bias1, stride=2, padding=KERNEL // 2))

    def forward(self, images: Tensor) -> Tensor:
        features = F.avg_pool2d(self.maps(images).float(), CELL).flatten(1)
        return features / sqrt(features.shape[1])
