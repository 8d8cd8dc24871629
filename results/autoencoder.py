"""What the autoencoder of the reconstruction error says of digits, of which it has seen 2 % green.

    python results/autoencoder.py [--epochs 10]

Trained on 9,800 red and 200 green real digits and shown others, so that no generator is at fault:
by the statistics that its BatchNorm kept while training (as published) and by those taken anew
(settled), in float32 and in bfloat16. Writes results/autoencoder.json and .md.
"""

import argparse
import os
import time
from typing import Any

import numpy as np
from pages import Stored, about, head, keep

from diagan import reconstruct
from diagan.data import load_dataset
from diagan.experiments import find

RUNS = (("float32", 0), ("bfloat16", 0), ("bfloat16", 1), ("bfloat16", 2))  # precision, seed
N_RED, N_GREEN, N_SHOWN = 9_800, 200, 400


def look(precision: str, seed: int, epochs: int) -> dict[str, Any]:
    """Errors of digits that were not trained on."""
    data = load_dataset(find("colored_mnist_99").data, seed=0, root=os.environ["DIAGAN_DATA"])
    red, green = (np.flatnonzero(data.groups == group) for group in (0, 1))
    seen = data.values[np.concatenate([red[:N_RED], green[:N_GREEN]])]
    shown = {"red": data.values[red[-N_SHOWN:]], "green": data.values[green[-N_SHOWN:]]}
    reconstruct.best_precision = lambda device: precision  # type: ignore[assignment,return-value]
    began = time.process_time()
    net = reconstruct.train_autoencoder(seen, seed=seed, epochs=epochs)
    seconds = time.process_time() - began
    published = {name: float(reconstruct.errors(net, x).mean()) for name, x in shown.items()}
    reconstruct.settle_on(net, seen)
    settled = {name: float(reconstruct.errors(net, x).mean()) for name, x in shown.items()}
    how = {"precision": precision, "seed": seed, "processor_seconds": round(seconds)}
    return {**how, "as_published": published, "settled": settled}


def page(stored: Stored) -> str:
    lines = [*head("The autoencoder of the reconstruction error", stored),
             "Errors of digits that it has not seen, red / green: by the statistics that BatchNorm",
             "kept while training, and by those taken anew over what it was trained on.", "",
             "| precision | seed | as published | settled | processor seconds |",
             "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for x in stored["runs"]:
        cells = [f"{x[how]['red']:.3f} / {x[how]['green']:.3f}"
                 for how in ("as_published", "settled")]  # fmt: skip
        told = [x["precision"], str(x["seed"]), *cells, str(x["processor_seconds"])]
        lines.append("| " + " | ".join(told) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    epochs = parser.parse_args().epochs
    runs = [look(precision, seed, epochs) for precision, seed in RUNS]
    scale = f"{N_RED + N_GREEN:,} real digits of 32x32, {epochs} epochs"
    told = about(f"autoencoder.py --epochs {epochs}", scale=scale)
    keep("autoencoder", {**told, "runs": runs}, page)


if __name__ == "__main__":
    main()
