"""Seconds of a step, forward and backward, and memory, of every network; StyleGAN2 within 6 GiB.

Each network in a process of its own, which tells what it needed at most. Of StyleGAN2 a whole cycle
of its lazy penalties is played: 16 steps, with R1 in one of them and path lengths in four.

python -m benchmarks.networks [NAME ...]
"""

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from math import lcm
from statistics import median

import torch

from benchmarks.common import alternate, random_images
from diagan.config import Config
from diagan.data import as_input
from diagan.engine import launch, resolve
from diagan.estimate import stopwatch
from diagan.experiments import find
from diagan.stages import Stage, new_game
from diagan.train import Game, play_step

GIB = 2**30
ROUNDS = 3
MIN_STEPS = 5


def stylegan2(size: int) -> Config:
    base = find("ffhq_stylegan2")
    return replace(base, data=replace(base.data, size=size), batch_size=4)


def inclusive(extractor: str) -> Config:
    """Without the search, which comes once in 20 passes over the data."""
    base = find("colored_mnist_99_inclusive")
    how = replace(base.methods.inclusive, extractor=extractor)
    return replace(base, methods=replace(base.methods, inclusive=how))


CASES: dict[str, Callable[[], Config]] = {
    "mlp": lambda: find("gaussians25"),
    "dcgan-32": lambda: find("colored_mnist_99"),
    "dcgan-32, inclusive by pixels": lambda: inclusive("pixels"),
    "dcgan-32, inclusive by classifier": lambda: inclusive("classifier"),
    "sngan-32": lambda: find("cifar10_sngan"),
    "ssgan-32": lambda: find("cifar10_ssgan"),
    "sngan-64": lambda: find("celeba_sngan"),
    "stylegan2-64": lambda: stylegan2(64),
    "stylegan2-256": lambda: stylegan2(256),
}


# What of a case is to be at most how much, and in what unit it is told.
TARGETS = {
    "dcgan-32, inclusive by pixels": ("step", 0.4, "0.4 s a step with two threads"),
    "dcgan-32, inclusive by classifier": ("step", 0.4, "0.4 s a step with two threads"),
    "stylegan2-64": ("bytes", 6 * GIB, "6 GiB"),
    "stylegan2-256": ("bytes", 6 * GIB, "6 GiB"),
}


def measure(config: Config) -> dict[str, float]:
    """Seconds of G and D on a batch, of a step, and bytes; of this process."""
    config = resolve(replace(config, device="cpu"))
    game = game_of(config)
    times = alternate(passes(game), ROUNDS)
    # From step 0 on: there the lazy terms are due, and again after a cycle of them.
    cycle = lcm(*(term.interval for term in (*game.parts.d_terms, *game.parts.g_terms)))
    steps = []
    for game.step in range(max(cycle, MIN_STEPS)):
        steps += [stopwatch(lambda: play_step(game), 1)]
    return {
        **times,
        "step": median(steps),
        "cycle": sum(steps[:cycle]) if cycle > 1 else 0.0,
        "cycle_steps": cycle,
        "bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "batch": config.batch_size,
    }


def game_of(config: Config) -> Game:
    data = random_images(n=4 * config.batch_size, size=getattr(config.data, "size", 32))
    if not hasattr(config.data, "size"):
        data = replace(data, values=torch.randn(data.n, 2).numpy())
    game = new_game(config, data, launch(config), Stage("phase1", 0, config.steps))
    for player in game.players:
        player.net.train()
    return game


def passes(game: Game) -> dict[str, Callable[[], object]]:
    """G and D by themselves, forward, and forward and backward, on a batch of the game."""
    latents = game.draws.latents("bench", 0)
    real = as_input(game.draws.values[: len(latents)])

    def generate() -> torch.Tensor:
        with game.draws.fabric.autocast():
            return game.g.net(latents).float()

    def score() -> torch.Tensor:
        with game.draws.fabric.autocast():
            return game.d.net(real).logits

    return {
        "g_forward": torch.no_grad()(generate),
        "g_both": lambda: generate().square().mean().backward(),
        "d_forward": torch.no_grad()(score),
        "d_both": lambda: score().mean().backward(),
    }


def told(name: str, found: dict[str, float]) -> str:
    line = f"{name:34} {found['batch']:5.0f}"
    for key in ("g_forward", "g_both", "d_forward", "d_both", "step"):
        line += f" {1e3 * found[key]:10,.0f}"
    line += f" {found['bytes'] / GIB:8.2f}"
    if found["cycle"]:
        line += f"   {found['cycle_steps']:.0f} steps with lazy penalties: {found['cycle']:,.1f} s"
    return line


def main(names: list[str] | None = None) -> None:
    print(f"{'ms':34} {'batch':>5} {'G':>10} {'G + back':>10} {'D':>10} {'D + back':>10} "
          f"{'step':>10} {'GiB':>8}")  # fmt: skip
    for name in names or CASES:
        child = [sys.executable, "-m", "benchmarks.networks", "--measure", name]
        found = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE).stdout)
        print(told(name, found), flush=True)
        if name in TARGETS:
            what, most, words = TARGETS[name]
            verdict = "met" if found[what] <= most else "NOT MET"
            print(f"{'':34} target: at most {words}; {verdict}", flush=True)
    print("a step is n_dis updates of D and one of G; GiB: the most that the process had")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(CASES[sys.argv[2]]())))
    else:
        main(sys.argv[1:])
