"""LDRV of the major and minor group of one Gaussian, beside Table 1's 0.001 and 0.098.

    python results/gaussian_ldrv.py [--runs DIR] [--seeds 10]

Run folders stay in DIR, so that an interrupted measurement goes on; the figures go to
results/gaussian_ldrv.json and .md.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from pages import Stored, about, arguments, head, keep

from diagan import ldr
from diagan.data import load_dataset
from diagan.experiments import find
from diagan.pipeline import run
from diagan.record import LdrRecord

WINDOWS = {"all 200 epochs": 200, "last 50 epochs": 50}
PAPER = {"major": 0.001, "minor": 0.098}


def measure(seed: int, runs: Path) -> dict[str, dict[str, dict[str, float]]]:
    """LDRV and LDRM by window and group for one seed."""
    config = replace(find("gaussian_3"), seed=seed, precision="float32")
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


def page(stored: Stored) -> str:
    by_seed = stored["by_seed"]
    *words, _ = head(
        "Single Gaussian, sigma 3: LDRV of the major and the minor group (Table 1)", stored
    )
    lines = [
        *words,
        f"- seeds: 0 to {len(by_seed) - 1}",
        "",
        "| window | group | LDRV (mean ± sd over seeds) | paper |",
        "| --- | --- | --- | --- |",
    ]
    for window in WINDOWS:
        for group in ("major", "minor"):
            values = [found[window][group]["ldrv"] for found in by_seed.values()]
            spread = f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"
            lines.append(f"| {window} | {group} | {spread} | {stored['paper'][group]} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    by_seed = {str(seed): measure(seed, args.runs) for seed in range(args.seeds)}
    told = about(f"gaussian_ldrv.py --seeds {args.seeds}", scale="paper", precision="float32")
    keep("gaussian_ldrv", {**told, "paper": PAPER, "by_seed": by_seed}, page)


if __name__ == "__main__":
    main()
