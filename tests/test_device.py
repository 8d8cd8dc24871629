"""Networks on another device than the data: no such device is here, so tensors pretend to be."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from diagan.device import device_of
from diagan.experiments import find
from diagan.features.classifier import ClassifierFeatures, bundled
from diagan.features.inception import InceptionFeatures
from diagan.features.own import DiscriminatorFeatures
from diagan.networks import build
from diagan.networks.inception import Inception
from diagan.sample import TrainedGenerator

SHAPE = (3, 32, 32)
ELSEWHERE = "lazy"  # the one other device that a build for the CPU can pretend to have


@pytest.fixture(autouse=True)
def no_autocast(monkeypatch):
    """Which knows the devices that there are."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())


def elsewhere(net: nn.Module, mode: FakeTensorMode) -> nn.Module:
    """The network with its tensors on a device that is not there; what mixes devices is refused."""
    for module in net.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = mode.from_tensor(tensor).to(ELSEWHERE)
    return net


@pytest.mark.parametrize("experiment", ["colored_mnist_99", "cifar10_sngan"])
def test_a_generator_takes_and_gives_what_is_on_the_cpu(experiment):
    config = find(experiment)
    g, d = build(config.network, SHAPE)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        g, d = elsewhere(g, mode), elsewhere(d, mode)
        assert device_of(g).type == device_of(d).type == ELSEWHERE
        trained = TrainedGenerator(g.eval(), d.eval(), config, "plain", 0, "D", SHAPE)
        images = trained.generate(5, torch.Generator())
        assert images.shape == (5, *SHAPE) and images.device.type == "cpu"
        assert trained.ldr(images).device.type == "cpu"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classifier", "discriminator", "inception"])
def test_an_extractor_takes_and_gives_what_is_on_the_cpu(name):
    if name == "classifier":
        extractor, net = ClassifierFeatures(name, bundled("colored_mnist")), "net"
    elif name == "discriminator":
        d = build(find("colored_mnist_99").network, SHAPE)[1]
        extractor, net = DiscriminatorFeatures(d, SHAPE), "d"
    else:
        extractor, net = InceptionFeatures(Inception().state_dict(), "", known=False), "net"
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        setattr(extractor, net, elsewhere(getattr(extractor, net), mode))
        found = extractor(torch.zeros(2, *SHAPE, dtype=torch.uint8))
        assert found.features.shape == (2, extractor.dim) and found.features.device.type == "cpu"
        assert found.logits is None or found.logits.device.type == "cpu"
