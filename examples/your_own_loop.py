"""A training loop of your own, in plain PyTorch. What diagan adds to it are the ten lines with +.

The GAN forgets the few points that lie apart. In the second half it learns from weighted draws, and
makes too many of them; a critic that sees the data as they are rejects what is too much.
"""

import copy

import torch
from toy import BATCH, N_STEPS, OUT, adam, average, d_loss, forever, g_loss, network, points, tell
from toy import loader as loader_of

from diagan import LdrRecord, RejectionSampler, WeightedSampler, diagnose  # +


def batches(sampler=None):
    return forever(loader_of(sampler))


def learn(optimiser, loss):
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def generate(n, random=None):
    return g_ema(torch.randn(n, 2, generator=random))


g, d = network(2), network(1)
g_adam, d_adam, g_ema = adam(g), adam(d), copy.deepcopy(g)
reals = batches()
record = LdrRecord(f"{OUT}/record", n=len(points))  # +

for step in range(1, N_STEPS + 1):
    real, fake = next(reals), g(torch.randn(BATCH, 2))
    if step == N_STEPS // 2:  # + the last 15 records tell what g misses
        c, c_adam = copy.deepcopy((d, d_adam))  # +
        weighted = batches(WeightedSampler(diagnose([*record][-15:]).weights))  # +
    if step >= N_STEPS // 2:  # + the data as they are for a critic, weighted draws for d
        learn(c_adam, d_loss(c, real, fake.detach()))  # +
        real = next(weighted)  # +
    learn(d_adam, d_loss(d, real, fake.detach()))
    learn(g_adam, g_loss(d, fake))
    average(g_ema, g)
    if step % 20 == 0:
        tell(generate(2_000), f"step {step}")
        record.add(step, d(points))  # + what d says of every sample, in eval mode

tell(points, "the data")
tell(generate(5_000), "what g makes")
tell(RejectionSampler(generate, c, budget=2).sample(5_000), "what the critic keeps")  # +
