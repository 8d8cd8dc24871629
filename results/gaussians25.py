"""25 Gaussians: LDRM of the modes over time and what G makes of them (Figure 2).

    python results/gaussians25.py [--seeds 0 1 2] [--steps N]

Writes results/gaussians25-seedN.json and .png as each seed ends; a seed that is there is not run
again. results/gaussians25.json and .md sum up all that are there.
"""

import argparse
import json
from collections import deque
from dataclasses import replace

import matplotlib
import numpy as np
import torch
from pages import HERE, Stored, about, head, keep

from diagan import ldr
from diagan.data import as_input, load_dataset
from diagan.engine import launch, resolve
from diagan.experiments import find
from diagan.game import Moment, Observer, Parts, compose
from diagan.metrics import count_modes
from diagan.record import score_all
from diagan.stages import new_game, stages
from diagan.train import Game, train

matplotlib.use("Agg")
import matplotlib.pyplot as plt

N_MODES, N_FAKE, WINDOW = 25, 10_000, 50
STD = 0.05 / 2.828
FAIR = N_FAKE / N_MODES
SHORT = 0.1  # of the fair share


class Watch:
    """At every record: LDRM of each mode over the last 50 records, and its high-quality count."""

    def __init__(self, game: Game, groups: np.ndarray, modes: np.ndarray, seed: int) -> None:
        self.game, self.groups, self.modes, self.seed = game, groups, modes, seed
        self.records: deque[np.ndarray] = deque(maxlen=WINDOW)
        self.rows: list[dict] = []

    def look(self, moment: Moment) -> None:
        values = self.game.draws.values
        record = score_all(self.game.d.net, values, as_input, step=moment.step, seed=self.seed)
        self.records.append(record.numpy())
        ldrm = np.mean(self.records, axis=0)
        latents = torch.randn(N_FAKE, 2, generator=self.game.draws.generator("count", moment.step))
        with torch.no_grad():
            fake = self.game.g.net(latents).numpy()
        counts = count_modes(fake=fake, modes=self.modes, std=STD)
        self.rows.append(
            {
                "step": moment.step,
                "n_records": len(self.records),
                "ldrm": [round(float(ldrm[self.groups == m].mean()), 5) for m in range(N_MODES)],
                "high_quality": counts.high_quality.tolist(),
                "share": counts.share,
            }
        )

    @property
    def boxes(self) -> list[list[float]]:
        """Quantiles 0, 25, 50, 75 and 100 % of the samples' LDRM in each mode, at the end."""
        ldrm = np.mean(self.records, axis=0)
        levels = (0, 0.25, 0.5, 0.75, 1)
        return [
            np.quantile(ldrm[self.groups == m], levels).round(5).tolist() for m in range(N_MODES)
        ]


def measure(seed: int, steps: int | None) -> dict:
    config = resolve(replace(find("gaussians25"), seed=seed))
    config = replace(config, steps=steps or config.steps)
    fabric = launch(config)
    data = load_dataset(config.data, seed=seed)
    (stage,) = stages(config)
    game = new_game(config, data, fabric, stage)
    grid = [(2 * x / 2.828, 2 * y / 2.828) for x in range(-2, 3) for y in range(-2, 3)]
    watch = Watch(game, data.groups, np.array(grid, dtype=np.float32), seed)
    observer = Observer("watch", watch.look, config.record.every, config.record_start)
    game.parts = compose([game.parts, Parts(observers=(observer,))])
    train(game, config.steps)
    return {
        **about(
            f"gaussians25.py --seeds {seed}", scale="paper" if steps is None else f"{steps} steps"
        ),
        "precision": config.precision,
        "boxes": watch.boxes,
        "rows": watch.rows,
    }


def verdict(rows_by_seed: list[list[dict]]) -> dict:
    """AUC of LDRM for modes that are short, or the rank correlation where none ever is."""
    rows = [row for rows in rows_by_seed for row in rows if row["n_records"] == WINDOW]
    ldrm = np.array([row["ldrm"] for row in rows])  # [records, modes]
    counts = np.array([row["high_quality"] for row in rows])
    short = counts < SHORT * FAIR
    found = {"n_records": len(rows), "n_short": int(short.sum()), "n": int(short.size)}
    mixed = short.any(axis=1) & ~short.all(axis=1)  # a record without both kinds ranks nothing
    found["n_records_with_short_modes"] = int(mixed.sum())
    if mixed.any():
        found["auc_pooled"] = ldr.auc(ldrm[mixed].ravel(), short[mixed].ravel())
        within = [ldr.auc(a, b) for a, b in zip(ldrm[mixed], short[mixed])]
        found["auc_within_record"] = float(np.mean(within))
    found["rank_correlation_of_ldrm_and_count"] = rank_correlation(ldrm, counts)
    return found


def rank_correlation(ldrm: np.ndarray, counts: np.ndarray) -> float:
    """Spearman's, within each record, averaged."""

    def ranks(values: np.ndarray) -> np.ndarray:
        return values.argsort(axis=1).argsort(axis=1).astype(float)

    a, b = ranks(ldrm), ranks(counts)
    return float(np.mean([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b)]))


def draw(found: dict, seed: int) -> None:
    rows = found["rows"]
    steps = [row["step"] for row in rows]
    ldrm = np.array([row["ldrm"] for row in rows])
    counts = np.array([row["high_quality"] for row in rows])
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), constrained_layout=True)
    extent = (steps[0], steps[-1], -0.5, N_MODES - 0.5)
    for axis, values, title in (
        (axes[0], ldrm, "LDRM of each mode (window 50)"),
        (axes[1], counts / FAIR, "high-quality count / fair share"),
    ):
        limit = np.quantile(np.abs(values), 0.99)
        style = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
        if values is not ldrm:
            style = {"cmap": "viridis", "vmin": 0, "vmax": 2}
        image = axis.imshow(values.T, aspect="auto", origin="lower", extent=extent, **style)
        figure.colorbar(image, ax=axis)
        axis.set(title=title, xlabel="step", ylabel="mode (5x + y)")
    names = ("whislo", "q1", "med", "q3", "whishi")
    boxes = [dict(zip(names, quantiles)) for quantiles in found["boxes"]]
    axes[2].bxp(boxes, positions=range(N_MODES), showfliers=False)
    axes[2].set(title="at the end: LDRM (boxes), count (line)", xlabel="mode", ylabel="LDRM")
    twin = axes[2].twinx()
    twin.plot(range(N_MODES), counts[-1], color="tab:blue", marker="o", linewidth=1)
    twin.set_ylabel(f"high-quality points of {N_FAKE:,}")
    axes[2].set_xticks(range(0, N_MODES, 5), range(0, N_MODES, 5))
    figure.suptitle(f"25 Gaussians, the paper's settings, n_dis 1, seed {seed}")
    figure.savefig(HERE / f"gaussians25-seed{seed}.png", dpi=80)


def sum_up(by_seed: dict[int, dict]) -> Stored:
    return {
        **about(f"gaussians25.py --seeds {' '.join(map(str, by_seed))}",
                scale=" and ".join(sorted({one["scale"] for one in by_seed.values()})),
                short=f"fewer than {SHORT * FAIR:.0f} high-quality points of {N_FAKE:,}"),
        "date": max(one["date"] for one in by_seed.values()),
        "all_seeds": verdict([one["rows"] for one in by_seed.values()]),
        "by_seed": {
            str(seed): {"end": one["rows"][-1], **verdict([one["rows"]])}
            for seed, one in by_seed.items()
        },
    }  # fmt: skip


COLUMNS = ("seed", "records, window filled", "short modes, all records", "short at the end",
           "AUC of LDRM for short modes, within a record", "pooled",
           "rank correlation of LDRM and count")  # fmt: skip
AUCS = ("auc_within_record", "auc_pooled")  # there where a mode was ever short


def page(stored: Stored) -> str:
    rows = {**stored["by_seed"], "all": stored["all_seeds"]}
    return "\n".join([
        *head("25 Gaussians (the paper's Figure 2)", stored),
        f"At every record: LDRM of each mode over the last {WINDOW}, and its high-quality points",
        f"among {N_FAKE:,} fakes. A mode is short where it has under a tenth of its fair share.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "| --- " * len(COLUMNS) + "|",
        *(f"| {' | '.join(cells(seed, found))} |" for seed, found in rows.items()),
        "",
        *(f"![seed {seed}](gaussians25-seed{seed}.png)" for seed in stored["by_seed"]),
    ]) + "\n"  # fmt: skip


def cells(seed: str, found: dict) -> list[str]:
    at_end = np.array(found["end"]["high_quality"]) < SHORT * FAIR if "end" in found else None
    return [
        seed,
        f"{found['n_records']:,}",
        f"{found['n_short']:,} of {found['n']:,}",
        "" if at_end is None else f"{at_end.sum()} of {N_MODES}",
        *(f"{found[name]:.3f}" if name in found else "" for name in AUCS),
        f"{found['rank_correlation_of_ldrm_and_count']:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int)
    args = parser.parse_args()
    record = find("gaussians25").record
    least = record.start + (WINDOW - 1) * record.every  # the window has to fill once
    if args.steps and args.steps < least:
        parser.error(f"--steps {args.steps}: {WINDOW} records take {least:,} steps")
    for seed in args.seeds:
        file = HERE / f"gaussians25-seed{seed}.json"
        if not file.exists():
            found = measure(seed, args.steps)
            draw(found, seed)
            file.write_text(json.dumps(found) + "\n")  # last: a seed that has it is whole
    files = sorted(HERE.glob("gaussians25-seed*.json"))
    seeds = {int(file.stem.removeprefix("gaussians25-seed")): file for file in files}
    by_seed = {seed: json.loads(file.read_text()) for seed, file in seeds.items()}
    keep("gaussians25", sum_up(by_seed), page)


if __name__ == "__main__":
    main()
