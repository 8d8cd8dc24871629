"""A loop in the shape of the StyleGAN trainers. What diagan adds to it are the ten lines with +.

Phases with intervals, images counted in `cur_nimg`, ticks, adaptive augmentation, an averaged G.
"""

# ruff: noqa: B023 (the critic's phase is made once)
import copy
from dataclasses import dataclass
from functools import partial

import torch
from toy import BATCH, N_STEPS, OUT, adam, d_loss, forever, g_loss, network, points, tell
from toy import loader as loader_of

from diagan import LdrRecord, RejectionSampler, WeightedSampler, diagnose  # +


@dataclass
class Phase:
    name: str
    module: torch.nn.Module
    opt: torch.optim.Optimizer
    interval: int
    loss: object  # of a batch of reals and latents


class AugmentPipe:
    p = 0.0

    def __call__(self, img):
        is_moved = torch.rand(len(img), 1) < self.p
        return img + 0.5 * is_moved * torch.randn_like(img)


def g_main(real_img, gen_z):
    return g_loss(lambda img: D(augment_pipe(img)), G(gen_z))


def d_main(net, real_img, gen_z):
    return d_loss(net, augment_pipe(real_img), augment_pipe(G(gen_z).detach()))


def d_reg(real_img, gen_z, r1_gamma=0.01):
    real_img = real_img.requires_grad_()
    (grads,) = torch.autograd.grad(D(real_img).sum(), real_img, create_graph=True)
    return r1_gamma / 2 * grads.square().sum(dim=1).mean()


def training_set(sampler=None):
    return forever(loader_of(sampler))


def generate(n, random=None):
    return G_ema(torch.randn(n, 2, generator=random))


total_kimg, kimg_per_tick = N_STEPS * BATCH / 1_000, 2.5
ema_kimg, ada_kimg, ada_target, ada_interval = 10, 100, 0.6, 4
G, D, augment_pipe = network(2), network(1), AugmentPipe()
G_opt, D_opt, G_ema = adam(G), adam(D), copy.deepcopy(G)
training_set_iterator = training_set()
phases = [
    Phase("Gmain", G, G_opt, 1, g_main),
    Phase("Dmain", D, D_opt, 1, partial(d_main, D)),
    Phase("Dreg", D, D_opt, 16, d_reg),
]
cur_nimg = cur_tick = batch_idx = 0
record = LdrRecord(f"{OUT}/record", n=len(points))  # +
while cur_nimg < total_kimg * 1_000:
    phase_real_img = next(training_set_iterator)
    for phase, gen_z in zip(phases, torch.randn(len(phases), BATCH, 2)):
        if batch_idx % phase.interval != 0:
            continue
        phase.opt.zero_grad(set_to_none=True)
        phase.module.requires_grad_(True)
        (phase.interval * phase.loss(phase_real_img, gen_z)).backward()
        phase.module.requires_grad_(False)
        phase.opt.step()
    ema_beta = 0.5 ** (BATCH / (ema_kimg * 1_000))
    with torch.no_grad():
        for p_ema, p in zip(G_ema.parameters(), G.parameters()):
            p_ema.lerp_(p, 1 - ema_beta)
    cur_nimg, batch_idx = cur_nimg + BATCH, batch_idx + 1
    if batch_idx % ada_interval == 0:
        over = D(phase_real_img).sign().mean().item() - ada_target
        step = (1 if over > 0 else -1) * BATCH * ada_interval / (ada_kimg * 1_000)
        augment_pipe.p = min(max(augment_pipe.p + step, 0.0), 0.5)
    if cur_nimg < (cur_tick + 1) * kimg_per_tick * 1_000:
        continue
    cur_tick += 1
    tell(generate(2_000), f"tick {cur_tick}, kimg {cur_nimg / 1e3:.1f}")
    record.add(cur_nimg, D(points))  # + what D says of every image, un-augmented
    if cur_tick == total_kimg / kimg_per_tick // 2:  # + the last 15 records tell what G misses
        C, C_opt, uniform = *copy.deepcopy((D, D_opt)), training_set_iterator  # +
        phases += [Phase("Cmain", C, C_opt, 1, lambda _, z: d_main(C, next(uniform), z))]  # +
        weights = diagnose([*record][-15:]).weights  # +
        training_set_iterator = training_set(WeightedSampler(weights))  # +

tell(points, "the data")
tell(generate(5_000), "what G makes")
tell(RejectionSampler(generate, C, budget=2).sample(5_000), "what the critic keeps")  # +
