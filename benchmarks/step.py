"""The DCGAN step (batch 64, 32x32) against the same step as the published code does it."""

from dataclasses import replace

from benchmarks.common import alternate, random_images
from benchmarks.plain import PlainStep
from diagan.device import has_bfloat16
from diagan.engine import launch, resolve
from diagan.experiments import find
from diagan.stages import Stage, new_game
from diagan.train import play_step

ROUNDS = 30


def main() -> None:
    config = resolve(replace(find("colored_mnist_99"), device="cpu"))
    data = random_images()
    fast = new_game(config, data, launch(config), Stage("phase1", 0, config.steps))
    for player in fast.players:
        player.net.train()
    plain = PlainStep(config, data, launch(replace(config, precision="float32")))
    times = alternate({"plain": plain, "fast": lambda: play_step(fast)}, ROUNDS)
    ratio = times["plain"] / times["fast"]
    print(f"plain {1e3 * times['plain']:.0f} ms, diagan {1e3 * times['fast']:.0f} ms in "
          f"{config.precision}: {ratio:.2f} times as fast")  # fmt: skip
    if has_bfloat16("cpu"):
        print(f"target on a CPU with bfloat16: 2.3; {'met' if ratio >= 2.3 else 'NOT MET'}")
    else:
        print("this CPU has no bfloat16 instructions: the target of 2.3 does not apply here")
