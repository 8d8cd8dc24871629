import pytest
import torch
from torch.nn import functional as F

from diagan.errors import UserError
from diagan.networks import vgg

CONVS = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)
HALVED_AFTER = (2, 7, 14, 21, 28)


@pytest.fixture
def narrow(monkeypatch):
    """A VGG16 of 1/16 width: the same layers, without half a gigabyte of numbers."""
    blocks = tuple(tuple(n // 16 for n in block) for block in vgg.BLOCKS)
    monkeypatch.setattr(vgg, "BLOCKS", blocks)
    monkeypatch.setattr(vgg, "HIDDEN", 24)
    monkeypatch.setattr(vgg, "N_IMAGENET", 10)


def random_state(seed=0):
    torch.manual_seed(seed)
    return {  # weights that keep the signal's size, small biases
        name: torch.randn(shape) * ((2 / shape[1:].numel()) ** 0.5 if len(shape) > 1 else 0.1)
        for name, shape in vgg.shapes().items()
    }


def test_names_and_shapes_are_those_of_the_public_file():
    shapes = vgg.shapes()
    names = [f"features.{i}" for i in CONVS] + [f"classifier.{i}" for i in (0, 3, 6)]
    assert list(shapes) == [f"{name}.{part}" for name in names for part in ("weight", "bias")]
    assert shapes["features.0.weight"] == (64, 3, 3, 3)
    assert shapes["features.17.weight"] == (512, 256, 3, 3)
    assert shapes["classifier.0.weight"] == (4096, 25088)
    assert shapes["classifier.6.weight"] == (1000, 4096)
    assert sum(s.numel() for s in shapes.values()) == 138_357_544


def test_forward_equals_the_definition(narrow):
    state = random_state()
    net = vgg.pretrained(state, n_classes=2).eval()
    x = torch.randn(3, 3, 64, 64)
    h = x
    for i in CONVS:
        h = F.relu(F.conv2d(h, state[f"features.{i}.weight"], state[f"features.{i}.bias"], 1, 1))
        h = F.max_pool2d(h, 2) if i in HALVED_AFTER else h
    assert h.shape == (3, 32, 2, 2)
    h = F.adaptive_avg_pool2d(h, 7).flatten(1)
    for i in (0, 3):
        h = F.relu(h @ state[f"classifier.{i}.weight"].T + state[f"classifier.{i}.bias"])
    expected = net.classifier[6](h)
    assert torch.allclose(net(x), expected, rtol=1e-4, atol=1e-5)
    assert net(x).shape == (3, 2)
    assert net(x).std() > 0


def test_dropout_stands_before_the_second_and_third_linear_layer():
    with torch.device("meta"):
        kinds = [type(m).__name__ for m in vgg.VGG16().classifier]
    assert kinds == ["Linear", "ReLU", "Dropout", "Linear", "ReLU", "Dropout", "Linear"]


def test_only_the_linear_layers_learn_and_the_state_stays_as_it_was(narrow):
    state = random_state()
    before = {name: tensor.clone() for name, tensor in state.items()}
    net = vgg.pretrained(state, n_classes=2)
    learning = {name for name, p in net.named_parameters() if p.requires_grad}
    assert learning == {f"classifier.{i}.{p}" for i in (0, 3, 6) for p in ("weight", "bias")}
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1)
    assert all(torch.equal(state[name], before[name]) for name in state)


def test_other_weights_are_refused(narrow):
    state = random_state()
    missing = {name: t for name, t in state.items() if name != "features.5.weight"}
    with pytest.raises(UserError, match=r"1 tensors .*features\.5\.weight"):
        vgg.pretrained(missing, 2)
    with pytest.raises(UserError, match=r"fc\.weight"):
        vgg.pretrained(state | {"fc.weight": torch.zeros(2)}, 2)
    with pytest.raises(UserError, match=r"classifier\.6\.bias"):
        vgg.pretrained(state | {"classifier.6.bias": torch.zeros(7)}, 2)
