import pytest
import torch
from torch import nn

from diagan.errors import UserError
from diagan.networks import count_parameters
from diagan.networks.autoencoder import Autoencoder


def test_layers_are_those_of_the_papers_tables():
    net = Autoencoder((3, 32, 32))
    kinds = [type(m).__name__ for m in net.encoder]
    assert kinds == ["Conv2d", "BatchNorm2d", "ReLU"] * 3 + ["Flatten", "Linear", "Tanh"]
    kinds = [type(m).__name__ for m in net.decoder]
    assert kinds[:4] == ["Linear", "BatchNorm1d", "ReLU", "Unflatten"]
    assert kinds[4:] == ["ConvTranspose2d", "BatchNorm2d", "ReLU"] * 2 + ["ConvTranspose2d", "Tanh"]
    convs = [m for m in net.modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d)]
    widths = [(m.in_channels, m.out_channels) for m in convs]
    assert widths == [(3, 64), (64, 128), (128, 256), (256, 128), (128, 64), (64, 3)]
    assert all(m.kernel_size == (3, 3) and m.stride == (2, 2) for m in convs)
    linears = [m for m in net.modules() if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linears] == [(4096, 256), (256, 4096)]
    assert all(m.bias is not None for m in [*convs, *linears])


def test_number_of_parameters():
    convs = sum(9 * a * b for a, b in [(3, 64), (64, 128), (128, 256)]) * 2
    conv_biases = 64 + 128 + 256 + 128 + 64 + 3
    norms = 2 * (64 + 128 + 256 + 4096 + 128 + 64)
    linears = 2 * 4096 * 256 + 256 + 4096
    assert count_parameters(Autoencoder((3, 32, 32))) == convs + conv_biases + norms + linears


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 32, 32), (3, 16, 16), (3, 64, 64), (3, 24, 40)])
def test_any_sides_divisible_by_8(shape):
    x = torch.rand(2, *shape) * 2 - 1
    rebuilt = Autoencoder(shape)(x)
    assert rebuilt.shape == x.shape
    assert rebuilt.abs().max() <= 1
    assert rebuilt[0].std() > 0


def test_other_sides_are_refused():
    with pytest.raises(UserError, match=r"28x28.*multiples of 8"):
        Autoencoder((1, 28, 28))
