"""A critic of weighted reals beside the truth: what the weights did to each sample is known.

    python results/undo.py RUN ... [--runs DIR]

Reads runs on Colored MNIST with `--critic.fakes reals`; nothing is trained. Adds them
to results/undo.json and .md.
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from budget import green
from pages import Stored, add_runs, head
from torch import Tensor, nn
from torch.nn.functional import softplus

from diagan.data import as_input
from diagan.device import device_of
from diagan.networks.common import Chain
from diagan.rundata import load_data
from diagan.rundir import open_run
from diagan.sample import as_stored, load_generator

N = 5_000
BATCH = 256


def measure(path: Path) -> dict[str, float]:
    run, trained = open_run(path), load_generator(path, "weighted")
    assert isinstance(trained.d, Chain)
    critic = trained.d.links[0]
    data = load_data(run, trained.config)
    is_rare = torch.from_numpy(np.asarray(data.groups) == data.rare)
    weights = torch.tensor(pq.read_table(run.samples)["weight"].to_pylist(), dtype=torch.float64)
    p_s = weights / weights.sum()
    logits = scored(critic, as_input(torch.from_numpy(np.asarray(data.values))))
    exact = -(len(p_s) * p_s).log()  # log p_data / p_s
    slope, offset = fitted(logits, p_s)
    drawn = {name: as_stored(trained.draw(0, drs=drs).take(N))
             for name, drs in (("made", False), ("kept", True))}  # fmt: skip
    return {
        "exact, red": float(exact[~is_rare].mean()),
        "exact, green": float(exact[is_rare].mean()),
        "critic, red": float(logits[~is_rare].mean()),
        "critic, green": float(logits[is_rare].mean()),
        "mean ratio": float((p_s * logits.exp()).sum()),
        "slope": slope,
        "offset": offset,
        **{f"green {name}": green(images) for name, images in drawn.items()},
    }


@torch.no_grad()
def scored(net: nn.Module, images: Tensor) -> Tensor:
    logits = [net(batch.to(device_of(net))).logits.cpu() for batch in images.split(BATCH)]
    return torch.cat(logits).double()


def fitted(logits: Tensor, p_s: Tensor) -> tuple[float, float]:
    """The line on the logits that tells uniform from weighted draws best: 1 and 0 if they do."""
    line = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([line], max_iter=100)

    def loss() -> Tensor:
        search.zero_grad()
        z = line[0] * logits + line[1]
        found = softplus(-z).mean() + (p_s * softplus(z)).sum()
        found.backward()
        return found

    search.step(loss)
    slope, offset = line.tolist()
    return slope, offset


def page(stored: Stored) -> str:
    runs = stored["runs"]
    columns = list(next(iter(runs.values())))
    lines = [
        *head("A critic of weighted reals beside the truth", stored),
        "Its logit should be the log of a sample's share in the data over its share in the draws,",
        "which is known. Exact: its mean over a group's training samples; critic: of its logit.",
        "Mean ratio: of e^logit over weighted draws, 1 if right. Slope and offset: of the line on",
        "its logits that tells uniform from weighted draws best, 1 and 0 if nothing is amiss.",
        f"Green made, and kept by rejection: of {N:,} images, whose green channel is the brighter",
        "one; images that are part red count by the larger part.",
        "",
        "| run | " + " | ".join(columns) + " |",
        "| --- " * (1 + len(columns)) + "|",
    ]
    for run, of in runs.items():
        cells = [f"{of[name]:.2%}" if "made" in name or "kept" in name else f"{of[name]:.2f}"
                 for name in columns]  # fmt: skip
        lines.append(f"| {run} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    add_runs("undo", __doc__, measure, lambda _: f"the runs' own; {N:,} images drawn of each", page)


if __name__ == "__main__":
    main()
