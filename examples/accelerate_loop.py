"""A loop with Hugging Face Accelerate. What diagan adds to it are the ten lines with +."""

import copy

import torch
from accelerate import Accelerator
from toy import BATCH, N_STEPS, OUT, adam, average, d_loss, forever, g_loss, network, points, tell
from toy import loader as loader_of

from diagan import LdrRecord, RejectionSampler, WeightedSampler, diagnose  # +

accelerator = Accelerator(cpu=True)
device, unwrap = accelerator.device, accelerator.unwrap_model


def batches(sampler=None):
    return forever(accelerator.prepare(loader_of(sampler)))


def learn(optimiser, loss):
    optimiser.zero_grad()
    accelerator.backward(loss)
    optimiser.step()


def generate(n, random=None):
    return g_ema(torch.randn(n, 2, generator=random).to(device))


g, d = network(2), network(1)
g_ema = copy.deepcopy(g).to(device)
g, d, g_adam, d_adam = accelerator.prepare(g, d, adam(g), adam(d))
reals = batches()
record = LdrRecord(f"{OUT}/record", n=len(points))  # +

for step in range(1, N_STEPS + 1):
    real, fake = next(reals), g(torch.randn(BATCH, 2, device=device))
    if step == N_STEPS // 2:  # + the last 15 records tell what g misses
        c, c_adam = accelerator.prepare(*copy.deepcopy((unwrap(d), d_adam.optimizer)))  # +
        weighted = batches(WeightedSampler(diagnose([*record][-15:]).weights))  # +
    if step >= N_STEPS // 2:  # + the data as they are for a critic, weighted draws for d
        learn(c_adam, d_loss(c, real, fake.detach()))  # +
        real = next(weighted)  # +
    learn(d_adam, d_loss(d, real, fake.detach()))
    learn(g_adam, g_loss(d, fake))
    average(g_ema, unwrap(g))
    if step % 20 == 0:
        tell(generate(2_000), f"step {step}")
        record.add(step, unwrap(d)(points.to(device)))  # + what d says of every sample

tell(points, "the data")
tell(generate(5_000), "what g makes")
tell(RejectionSampler(generate, c, budget=2).sample(5_000), "what the critic keeps")  # +
