"""VGG16, with the names and shapes of the public ImageNet weight file (vgg16-397923af.pth)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from diagan.errors import UserError

BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
POOLED, HIDDEN, N_IMAGENET = 7, 4096, 1000


class VGG16(nn.Module):
    """Thirteen 3x3 convolutions, halving after each block, and three linear layers."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        n_in = 3
        for block in BLOCKS:
            for n_out in block:
                layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.ReLU(inplace=True)]
                n_in = n_out
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(POOLED)
        self.classifier = nn.Sequential(
            nn.Linear(n_in * POOLED * POOLED, HIDDEN), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(HIDDEN, HIDDEN), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(HIDDEN, N_IMAGENET),
        )  # fmt: skip

    def head(self, maps: Tensor) -> Tensor:
        """Logits [B, K] of what the convolutions made, [B, 512, H / 32, W / 32]."""
        logits: Tensor = self.classifier(self.avgpool(maps).flatten(1))
        return logits

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def shapes() -> dict[str, torch.Size]:
    """What the weight file must hold: the shape of every tensor by name."""
    with torch.device("meta"):
        return {name: tensor.shape for name, tensor in VGG16().state_dict().items()}


def pretrained(state: Mapping[str, Tensor], n_classes: int) -> VGG16:
    """A copy of the ImageNet network with a new last layer and its convolutions frozen."""
    expected = shapes()
    found = {name: tensor.shape for name, tensor in state.items()}
    odd = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
    if odd:
        raise UserError(
            f"these are not the weights of VGG16: {len(odd)} tensors are missing, unknown or of "
            f"another shape, {odd[0]} first; give those of vgg16-397923af.pth"
        )
    with torch.device("meta"):  # nothing is drawn that would be written over: 138 M numbers
        net = VGG16()
    net.load_state_dict({name: t.to(torch.float32, copy=True) for name, t in state.items()},
                        assign=True)  # fmt: skip
    net.classifier[6] = nn.Linear(HIDDEN, n_classes)
    net.features.requires_grad_(False)
    return net
