"""Rejection by a critic of fakes, as in the paper, and by one of weighted reals, on the demo.

    python results/critic.py [--runs DIR] [--seeds 5]

G and D are the same in both, bit for bit: a critic looks on. Writes results/critic.json and .md.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from budget import N, cell, drawer
from pages import Stored, about, arguments, head, keep

from diagan.config import Critic
from diagan.experiments import find
from diagan.pipeline import run
from diagan.rundata import load_data
from diagan.rundir import RunDir, read_json
from diagan.sample import TrainedGenerator, load_generator

Numbers = dict[str, float]


def trained(seed: int, fakes: str, runs: Path) -> tuple[TrainedGenerator, RunDir]:
    """The demo's phase 1 and weighted arm, with a critic of either kind."""
    config = replace(find("demo"), seed=seed, critic=Critic(fakes=fakes), plain_arm=False)  # type: ignore[arg-type]
    folder = run(config, runs / f"demo-critic-{fakes}-seed{seed}", stage="weighted")
    return load_generator(folder.path), folder


def measure(seed: int, runs: Path) -> dict[str, Numbers]:
    generator, folder = trained(seed, "shared", runs)
    drawn = drawer(np.asarray(load_data(folder, generator.config).values))
    rare = next(x for x in read_json(folder.diagnosis)["groups"] if x["name"] == "green")
    by_reals, _ = trained(seed, "reals", runs)
    return {
        "data": {"green": rare["share"]},
        "weights": {"green": rare["weight_share"]},
        "none": drawn(generator, 1),
        "fakes": drawn(generator, None),
        "fakes, budget 3": drawn(generator, 3),
        "reals": drawn(by_reals, None),
        "reals, budget 3": drawn(by_reals, 3),
    }


def page(stored: Stored) -> str:
    by_seed = stored["by_seed"]
    columns = [name for name in next(iter(by_seed.values())) if name not in ("data", "weights")]
    lines = [
        *head("Two critics", stored),
        "Dia-GAN's generator, not rejected, and rejected by a critic that tells reals from fakes",
        "(the paper's) or from the weighted reals that D sees (`--critic.fakes reals`; D's own",
        "logit is added). By the 80th percentile of each batch, and by a budget of 3. Each cell:",
        "green images, kept of the proposals, Fréchet distance in patch features.",
        "",
        "| seed | in the data | in the weights | " + " | ".join(columns) + " |",
        "| --- | --- | ---" + " | ---" * len(columns) + " |",
    ]
    for seed, of in by_seed.items():
        cells = [f"{of[name]['green']:.2%}" for name in ("data", "weights")]
        cells += [cell(of[name]) for name in columns]
        lines.append(f"| {seed} | " + " | ".join(cells) + " |")
    off = {name: np.mean([abs(of[name]["green"] - of["data"]["green"]) for of in by_seed.values()])
           for name in columns}  # fmt: skip
    away = [f"{name} {value:.2%}" for name, value in off.items()]
    lines += ["", f"Mean distance of the green share from the data's: {', '.join(away)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    by_seed = {}
    for seed in range(asked.seeds):
        by_seed[str(seed)] = measure(seed, asked.runs)
        print(seed, by_seed[str(seed)], flush=True)
    scale = f"the demo's own (12,000 digits of 16x16, 4,000 steps), {N:,} images each"
    told = about(f"critic.py --seeds {asked.seeds}", scale=scale)
    keep("critic", {**told, "by_seed": by_seed}, page)


if __name__ == "__main__":
    main()
