"""Dia-GAN in a training loop of your own: what diagan adds to it is marked 1 to 4.

A plain PyTorch GAN learns points of which 5 % lie apart, and forgets these. Half a minute.
"""

import copy
import tempfile

import torch
from torch import nn
from torch.nn.functional import softplus
from torch.utils.data import DataLoader, TensorDataset

from diagan import Grouping, LdrRecord, RejectionSampler, Score, WeightedSampler, diagnose

torch.manual_seed(0)
is_rare = torch.rand(4_000) < 0.05
points = 0.5 * torch.randn(4_000, 2) + torch.tensor([5.0, 0.0]) * is_rare[:, None]


def network(n_out):
    hidden = [nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2)]
    net = nn.Sequential(*hidden, nn.Linear(64, n_out))
    net.adam = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.5, 0.9))
    return net


def learn(net, loss):
    net.adam.zero_grad()
    loss.backward()
    net.adam.step()


def play(reals):  # a batch of reals for each discriminator; G plays against d
    fake = g(torch.randn(256, 2))
    for net, real in reals.items():
        learn(net, softplus(-net(real)).mean() + softplus(net(fake.detach())).mean())
    learn(g, softplus(-d(fake)).mean())


def batches(**order):
    while True:
        for (real,) in DataLoader(TensorDataset(points), 256, drop_last=True, **order):
            yield real


def tell(samples, name):
    print(f"{(samples[:, 0] > 2.5).float().mean():6.1%} {name}")


g, d, uniform = network(n_out=2), network(n_out=1), batches(shuffle=True)
record = LdrRecord(tempfile.mkdtemp(), n=len(points))
for step in range(1_500):
    play({d: next(uniform)})
    if step >= 1_000 and step % 10 == 0:
        record.add(step, d(points))  # 1. record what D says of every sample (in eval mode)
groups = Grouping(is_rare, ["common", "rare"], rare=1)  # only to see how well it does
found = diagnose(record, Score(centre="median", clip="floor"), groups)  # 2. diagnose
print(f"A rare sample outscores a common one with probability {found.auc['score']:.3f}. Rare are")
tell(points, "of the data")
tell(g(torch.randn(10_000, 2)), "of what the plain GAN makes")

weighted = batches(sampler=WeightedSampler(found.weights))  # 3. draw by the weights
critic = copy.deepcopy(d)  # with its Adam; sees the data as they are, so that it can reject
for _ in range(1_500):
    play({d: next(weighted), critic: next(uniform)})
tell(g(torch.randn(10_000, 2)), "of what it makes after training on with weights: too many now")

sampler = RejectionSampler(lambda n, random: g(torch.randn(n, 2, generator=random)), critic)
tell(sampler.sample(10_000), "of what rejection keeps of that")  # 4. reject
