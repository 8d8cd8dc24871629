"""LDRV of the major and minor group of one Gaussian, beside Table 1's 0.001 and 0.098.

    python results/gaussian_ldrv.py [--runs DIR] [--seeds 10]

Run folders stay in DIR, so that an interrupted measurement goes on; the figures go to
results/gaussian_ldrv.json and .md.
"""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from diagan import ldr
from diagan.data import load_dataset
from diagan.experiments import find
from diagan.pipeline import run
from diagan.record import LdrRecord

HERE = Path(__file__).parent
WINDOWS = {"all 200 epochs": 200, "last 50 epochs": 50}
PAPER = {"major": 0.001, "minor": 0.098}


def measure(seed: int, runs: Path) -> dict[str, dict[str, dict[str, float]]]:
    """LDRV and LDRM by window and group for one seed."""
    config = replace(find("gaussian_3"), seed=seed)
    folder = run(config, runs / f"gaussian_3-seed{seed}")
    data = load_dataset(config.data, seed=seed)
    record = LdrRecord(folder.record, data.n)
    found = {}
    for name, size in WINDOWS.items():
        moments = ldr.moments(record.read(step) for step in record.steps[-size:])
        found[name] = {
            group: {
                "n": int((data.groups == number).sum()),
                "ldrv": float(moments.ldrv[data.groups == number].mean()),
                "ldrm": float(moments.ldrm[data.groups == number].mean()),
            }
            for number, group in enumerate(data.group_names)
        }
    return found


def table(by_seed: dict[str, dict]) -> str:
    lines = [
        "| window | group | LDRV (mean ± sd over seeds) | paper |",
        "| --- | --- | --- | --- |",
    ]
    for window in WINDOWS:
        for group in ("major", "minor"):
            values = [found[window][group]["ldrv"] for found in by_seed.values()]
            spread = f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"
            lines.append(f"| {window} | {group} | {spread} | {PAPER[group]} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path(os.environ.get("DIAGAN_RUNS", "runs")))
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    by_seed = {str(seed): measure(seed, args.runs) for seed in range(args.seeds)}
    about = {
        "command": f"python results/gaussian_ldrv.py --seeds {args.seeds}",
        "date": time.strftime("%Y-%m-%d"),
        "scale": "paper",
        "precision": "float32",
    }
    text = json.dumps({**about, "paper": PAPER, "by_seed": by_seed}, indent=1)
    (HERE / "gaussian_ldrv.json").write_text(text + "\n")
    heading = "# Single Gaussian, sigma 3: LDRV of the major and the minor group (Table 1)\n"
    note = "\n".join(f"- {key}: {value}" for key, value in about.items())
    page = f"{heading}\n{note}\n- seeds: 0 to {args.seeds - 1}\n\n{table(by_seed)}\n"
    (HERE / "gaussian_ldrv.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
