"""Dia-GAN's time over the plain GAN's on Colored MNIST at the paper's settings, by part."""

from dataclasses import replace

import numpy as np
import torch

from benchmarks.common import alternate, random_images
from diagan.data import as_input
from diagan.engine import launch, resolve
from diagan.experiments import find
from diagan.record import score_all
from diagan.stages import Stage, new_game
from diagan.train import play_step

ROUNDS = 15


def main() -> None:
    config = resolve(replace(find("colored_mnist_99"), device="cpu"))
    fabric, data = launch(config), random_images()
    weights = np.full(data.n, 1 / data.n)
    plain = new_game(config, data, fabric, Stage("phase1", 0, config.steps))
    both = new_game(config, data, fabric, Stage("weighted", 0, config.steps, True), weights)
    for player in (*plain.players, *both.players):
        player.net.train()
    values = torch.from_numpy(data.values)
    times = alternate(
        {
            "step": lambda: play_step(plain),
            "step with critic": lambda: play_step(both),
            "record of 2,000, eval": lambda: score_all(plain.d.net, values, as_input),
            "record of 2,000, train": lambda: score_all(
                plain.d.net, values, as_input, mode="train", batch_size=config.batch_size
            ),
        },
        ROUNDS,
    )
    for name, seconds in times.items():
        print(f"{name:24} {1e3 * seconds:7.1f} ms")
    total = config.steps * times["step"]
    phase2 = config.steps - config.phase1_steps
    critic = phase2 * (times["step with critic"] - times["step"])
    print(f"over {config.steps:,} plain steps of {times['step']:.3f} s:")
    print(f"  second discriminator in phase 2: +{critic / total:.1%}")
    n_samples = 60_000 + 10_000  # with the held-out ones
    for mode in ("eval", "train"):
        record = config.record.window * n_samples / 2_000 * times[f"record of 2,000, {mode}"]
        together = (record + critic) / total
        print(f"  50 records of {n_samples:,} in {mode} mode: +{record / total:.1%}; "
              f"together +{together:.1%} (the paper, on a GPU: +16 %)")  # fmt: skip
