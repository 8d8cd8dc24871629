"""What a D with BatchNorm says of images, by whose statistics it has while it is asked.

    python results/batchnorm.py RUN/ARM ... [--runs DIR]

Reads runs on Colored MNIST; nothing is trained. Adds them to results/batchnorm.json and .md.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from pages import Stored, add_runs, head
from torch import Tensor

from diagan.data import as_input
from diagan.device import device_of
from diagan.networks.common import settle
from diagan.random import generator, seed_torch
from diagan.rundata import load_data
from diagan.rundir import open_run
from diagan.sample import load_generator

N_BATCHES, BATCH = 40, 64
KINDS = ("as training left them", "of fakes", "of reals", "of both, each batch of one kind")
Numbers = dict[str, float | None]


def measure(path: Path, arm: str) -> dict[str, Numbers]:
    """Mean density ratio of fakes, and mean logits of fakes and of reals, by kind of statistics."""
    first = load_generator(path, arm)
    data = load_data(open_run(path), first.config)
    source = generator(0, "batchnorm")
    chosen = torch.randperm(data.n, generator=source)[: N_BATCHES * BATCH]
    real = as_input(torch.from_numpy(np.asarray(data.values))[chosen])
    fake = first.generate(len(real), source)
    is_green = fake[:, 1].mean(dim=(1, 2)) > fake[:, 0].mean(dim=(1, 2))
    is_rare = torch.from_numpy(np.asarray(data.groups) == data.rare)[chosen]
    found = {}
    for kind in KINDS:
        trained = load_generator(path, arm)
        if kind != KINDS[0]:
            seed_torch(0, "batchnorm")
            settle(trained.d, (x.to(device_of(trained.d)) for x in batches(kind, real, fake)))
        of_fake, of_real = trained.ldr(fake).double(), trained.ldr(real).double()
        found[kind] = {
            "mean ratio": float(of_fake.clamp(max=700).exp().mean()),
            "fakes, red": mean(of_fake[~is_green]),
            "fakes, green": mean(of_fake[is_green]),
            "reals, red": mean(of_real[~is_rare]),
            "reals, green": mean(of_real[is_rare]),
        }
    return found


def batches(kind: str, real: Tensor, fake: Tensor) -> Iterator[Tensor]:
    for one, other in zip(real.split(BATCH), fake.split(BATCH)):
        yield from {KINDS[1]: [other], KINDS[2]: [one], KINDS[3]: [one, other]}[kind]


def mean(values: Tensor) -> float | None:
    return float(values.mean()) if len(values) else None


def page(stored: Stored) -> str:
    runs: dict[str, dict[str, Numbers]] = stored["runs"]
    columns = list(next(iter(next(iter(runs.values())).values())))
    lines = [
        *head("Whose statistics D has", stored),
        "Whoever rejects for an arm (D, the critic, or both in a chain), asked in eval mode, with",
        "BatchNorm's running statistics as training left them or taken anew in train mode. Mean",
        "ratio: of e^logit over fakes, 1 where the logit is a log-density ratio. The other columns",
        "are mean logits.",
        "",
        "| run, arm | statistics | " + " | ".join(columns) + " |",
        "| --- | ---" + " | ---" * len(columns) + " |",
    ]
    for run, by_kind in runs.items():
        for kind, of in by_kind.items():
            cells = ["none" if (x := of[name]) is None else f"{x:.3g}" for name in columns]
            lines.append(f"| {run} | {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    scale = f"the runs' own; {N_BATCHES * BATCH:,} reals and as many fakes"
    add_runs("batchnorm", __doc__, lambda x: measure(x.parent, x.name), lambda _: scale, page)


if __name__ == "__main__":
    main()
