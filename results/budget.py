"""Rejection as in the paper, and by a budget (OBRS), on the runs of the demo.

    python results/budget.py [--runs DIR] [--seeds 5]

Needs the runs of results/demo_seeds.py. Writes results/budget.json and .md.
"""

from collections.abc import Callable

import numpy as np
from pages import Stored, about, arguments, head, keep

from diagan.features.patches import learn_features
from diagan.metrics.frechet import fid
from diagan.rundata import load_data
from diagan.rundir import RunDir
from diagan.sample import TrainedGenerator, as_stored, load_generator

N = 5_000
BUDGETS = {"none": 1, "the paper's": None, "1.5": 1.5, "3": 3, "6": 6}


def green(images: np.ndarray) -> float:
    """The share of images [n, 3, H, W] in which green outshines red."""
    means = images.mean(axis=(2, 3))
    return float((means[:, 1] > means[:, 0]).mean())


def drawer(values: np.ndarray) -> Callable[[TrainedGenerator, float | None], dict[str, float]]:
    """What a generator makes by a budget: green images, kept proposals, distance from the data."""
    features = learn_features(values, n_filters=16, seed=0)
    real = features(values[:N]).numpy()

    def drawn(generator: TrainedGenerator, budget: float | None) -> dict[str, float]:
        drawing = generator.draw(0, budget=budget)
        images = as_stored(drawing.take(N))
        return {"green": green(images), "kept": float(drawing.acceptance_rate or 0),
                "distance": fid(real=real, fake=features(images).numpy())}  # fmt: skip

    return drawn


def cell(found: dict[str, float]) -> str:
    return f"{found['green']:.2%}, {found['kept']:.0%}, {found['distance']:.2f}"


def measure(generator: TrainedGenerator, run: RunDir) -> dict[str, dict[str, float]]:
    values = np.asarray(load_data(run, generator.config).values)
    drawn = drawer(values)
    found = {name: drawn(generator, budget) for name, budget in BUDGETS.items()}
    return found | {"the data": {"green": green(values), "kept": 1.0, "distance": 0.0}}


def page(stored: Stored) -> str:
    by_seed = stored["by_seed"]
    lines = [
        *head("Rejection by a budget", stored),
        "Dia-GAN's generator, its critic rejecting: not at all, by the 80th percentile of each",
        "batch as in the paper, and by a budget of 1.5, 3 and 6 proposals for a kept image. Each",
        "cell: green images, kept of the proposals, Fréchet distance in patch features.",
        "",
        "| seed | in the data | " + " | ".join(BUDGETS) + " |",
        "| --- | ---" + " | ---" * len(BUDGETS) + " |",
    ]
    for seed, of in by_seed.items():
        cells = [cell(of[name]) for name in BUDGETS]
        lines.append(f"| {seed} | {of['the data']['green']:.2%} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    by_seed = {}
    for seed in range(asked.seeds):
        run = RunDir(asked.runs / f"demo-seed{seed}")
        by_seed[str(seed)] = measure(load_generator(run.path), run)
        print(seed, by_seed[str(seed)], flush=True)
    scale = f"the demo's own (12,000 digits of 16x16, 4,000 steps), {N:,} images each"
    told = about(f"budget.py --seeds {asked.seeds}", scale=scale)
    keep("budget", {**told, "by_seed": by_seed}, page)


if __name__ == "__main__":
    main()
