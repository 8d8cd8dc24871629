"""What the autoencoder of the reconstruction error says of digits where no generator is at fault.

    DIAGAN_DATA=FOLDER python results/autoencoder.py

Trained on real digits, of which a few are green, and shown others: by the statistics that its
BatchNorm kept while training (as published) and by those taken anew (settled). Measures the cases
that results/autoencoder.json does not have yet, and writes results/autoencoder.md.
"""

import os
import time
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from pages import Stored, about, head, keep, read

from diagan import reconstruct
from diagan.data import load_dataset
from diagan.experiments import find

N_SHOWN = 400  # of a colour, where as many were not trained on


@dataclass(frozen=True)
class Case:
    digits: int
    green: int  # of them
    epochs: int
    precision: str
    seed: int


CASES = (
    Case(10_000, 200, 10, "float32", 0),
    *(Case(10_000, 200, 10, "bfloat16", seed) for seed in (0, 1, 2)),
    Case(10_000, 100, 10, "bfloat16", 0),  # a generator that makes all as it is
    Case(50_000, 500, 50, "bfloat16", 0),  # the same, by the paper's protocol
)


def look(case: Case) -> dict[str, Any]:
    """Errors of digits that were not trained on."""
    data = load_dataset(find("colored_mnist_99").data, seed=0, root=os.environ["DIAGAN_DATA"])
    red, green = (np.flatnonzero(data.groups == group) for group in (0, 1))
    seen = data.values[np.concatenate([red[: case.digits - case.green], green[: case.green]])]
    shown = {
        "red": data.values[red[-N_SHOWN:]],
        "green": data.values[green[case.green :][-N_SHOWN:]],
    }
    reconstruct.best_precision = lambda device: case.precision  # type: ignore[assignment,return-value]
    began = time.process_time()
    net = reconstruct.train_autoencoder(seen, seed=case.seed, epochs=case.epochs)
    seconds = time.process_time() - began
    published = {name: float(reconstruct.errors(net, x).mean()) for name, x in shown.items()}
    reconstruct.settle_on(net, seen)
    settled = {name: float(reconstruct.errors(net, x).mean()) for name, x in shown.items()}
    return {**asdict(case), "processor_seconds": round(seconds), "as_published": published,
            "settled": settled}  # fmt: skip


def page(stored: Stored) -> str:
    columns = ["digits", "green", "epochs", "precision", "seed"]
    lines = [*head("The autoencoder of the reconstruction error", stored),
             "Errors of digits that it has not seen, red / green: by the statistics that BatchNorm",
             "kept while training, and by those taken anew over what it was trained on.", "",
             "| " + " | ".join([*columns, "as published", "settled", "processor seconds"]) + " |",
             "| ---" * (len(columns) + 3) + " |"]  # fmt: skip
    for x in stored["runs"]:
        errors = [f"{x[how]['red']:.3f} / {x[how]['green']:.3f}"
                  for how in ("as_published", "settled")]  # fmt: skip
        case = [f"{x[name]:,}" if name != "precision" else x[name] for name in columns]
        lines.append("| " + " | ".join([*case, *errors, str(x["processor_seconds"])]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    runs = read("autoencoder").get("runs", [])
    known = [Case(**{field.name: x[field.name] for field in fields(Case)}) for x in runs]
    told = about("autoencoder.py", scale="real digits of 32x32")
    for case in CASES:
        if case not in known:
            runs.append(look(case))
            keep("autoencoder", {**told, "runs": runs}, page)


if __name__ == "__main__":
    main()
