"""What the examples take as given: data, networks, losses. A few of the points lie apart."""

import tempfile

import torch
from torch import nn
from torch.nn.functional import softplus
from torch.utils.data import DataLoader

N_STEPS, BATCH = 1_000, 128
R1 = 0.1
OUT = tempfile.mkdtemp()

torch.manual_seed(2)
is_rare = torch.rand(2_000) < 0.04
points = 0.5 * torch.randn(2_000, 2) + torch.tensor([5.0, 0.0]) * is_rare[:, None]


def network(n_out):
    hidden = [nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2)]
    return nn.Sequential(*hidden, nn.Linear(64, n_out))


def adam(net):
    return torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.5, 0.9))


def d_loss(d, real, fake):
    """With a weak penalty on its slope (R1), which keeps d's logit a density ratio."""
    real = real.detach().requires_grad_()
    logits = d(real)
    (slope,) = torch.autograd.grad(logits.sum(), real, create_graph=True)
    penalty = R1 / 2 * slope.square().sum(1).mean()
    return softplus(-logits).mean() + softplus(d(fake)).mean() + penalty


def g_loss(d, fake):
    return softplus(-d(fake)).mean()


@torch.no_grad()
def average(g_ema, g, decay=0.99):
    for mean, weight in zip(g_ema.parameters(), g.parameters()):
        mean.lerp_(weight, 1 - decay)


def loader(sampler=None):
    return DataLoader(points, BATCH, shuffle=sampler is None, sampler=sampler, drop_last=True)


def forever(batches):
    while True:
        yield from batches


def tell(samples, name):
    print(f"{(samples[:, 0] > 2.5).float().mean():6.1%} rare in {name}")
