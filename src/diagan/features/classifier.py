"""The paper's classifier as an extractor, and the file format of its weights."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from diagan.data import as_input
from diagan.device import best_device, device_of
from diagan.errors import UserError
from diagan.features.common import Features
from diagan.networks.classifier import SIZE, WIDTHS, Classifier
from diagan.rundir import replacing

BUNDLED = ("colored_mnist", "mnist_fmnist")
AT_ONCE = 16  # images whose transforms fit into a processor's cache: twice as fast as 64


class ClassifierFeatures:
    """The mean over the pixels under the last layer, [B, 128], and logits [B, 20].

    The features are as in the paper; the published code divides them by their length
    (FACTS 8, row 27).
    """

    dim = WIDTHS[-1]
    published = False

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        net, self.about = load_classifier(path)
        self.net = net.to(best_device())
        for convolution in self.net.convolutions:
            convolution.freeze()  # type: ignore[operator]
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        self.version = f"weights {sha256[:16]}"

    def __call__(self, images: Tensor) -> Features:
        channels = self.net.channels
        if tuple(images.shape[1:]) != (channels, SIZE, SIZE):
            raise UserError(
                f"{self.name} reads images of {channels} x {SIZE} x {SIZE}, and these are of "
                f"{' x '.join(map(str, images.shape[1:]))}; choose another extractor"
            )
        with torch.no_grad():
            parts = [
                self.net(as_input(few.to(device_of(self.net)))) for few in images.split(AT_ONCE)
            ]
            return Features(*map(torch.cat, zip(*parts))).cpu()


def bundled(dataset: str) -> Path:
    """The weights that ship with the package for one of the two MNIST sets."""
    return Path(__file__).with_name(f"classifier-{dataset}.safetensors")


def save_classifier(path: Path, net: Classifier, about: Mapping[str, str]) -> None:
    """Float16 tensors; `about` says in the file's header where they come from."""
    tensors = {
        key: value.half() if value.is_floating_point() else value
        for key, value in net.state_dict().items()
    }
    with replacing(path) as temporary:
        temporary.write_bytes(save(tensors, dict(about)))


def load_classifier(path: Path) -> tuple[Classifier, dict[str, str]]:
    """The classifier in eval mode, and what its file says about it."""
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {key: file.get_tensor(key).float() for key in file.keys()}  # noqa: SIM118
        net = Classifier(
            channels=tensors["convolutions.0.weight"].shape[1],
            n_classes=len(tensors["logits.bias"]),
        )
        net.load_state_dict(tensors)
    except (OSError, SafetensorError, KeyError, RuntimeError):
        raise UserError(
            f"{path} holds no classifier; make one with python -m diagan.features.train_classifier"
        ) from None
    return net.eval(), about
