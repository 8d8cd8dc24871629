"""The demo over several seeds: is the rare group found, brought back, and put right?

    python results/demo_seeds.py [--runs DIR] [--seeds 5]

Writes results/demo.json and .md, and docs/demo.png from seed 0, the demo's own.
"""

from dataclasses import replace

from pages import HERE, Stored, about, arguments, head, keep
from PIL import Image, ImageDraw

from diagan.experiments import find
from diagan.pipeline import run
from diagan.rundir import RunDir, read_json, read_lines

ARMS = {"plain": ("plain", False), "dia": ("weighted", False), "dia_drs": ("weighted", True)}
PICTURES = {"plain": "the plain GAN", "weighted": "Dia-GAN", "weighted_drs": "with rejection"}


def numbers(folder: RunDir) -> dict[str, float]:
    found = read_json(folder.diagnosis)
    rare = next(group for group in found["groups"] if group["name"] == found["rare"])
    shares = {
        (line["arm"], line["drs"]): line["value"]
        for line in read_lines(folder.metrics)
        if line["metric"] == "group_share" and line["group"] == found["rare"]
    }
    return {
        "auc": found["auc"]["score"],
        "data": rare["share"],
        **{name: shares[arm] for name, arm in ARMS.items()},
        "minutes": read_json(folder.provenance)["seconds"] / 60,
    }


def page(stored: Stored) -> str:
    by_seed: dict[str, dict[str, float]] = stored["by_seed"]
    rows = [
        f"| {seed} | {r['auc']:.3f} | {r['data']:.2%} | {r['plain']:.2%} | {r['dia']:.2%} "
        f"| {r['dia_drs']:.2%} | {r['minutes']:.1f} |"
        for seed, r in by_seed.items()
    ]
    found = list(by_seed.values())
    n_up = sum(r["dia"] > r["plain"] for r in found)
    n_near = sum(abs(r["dia_drs"] - r["data"]) < abs(r["plain"] - r["data"]) for r in found)
    return "\n".join(
        [
            *head("The demo over seeds", stored),
            "The settings were chosen after many tries on seeds 0, 1 and 2 with other networks and",
            "penalties; seeds 3 and 4 are a fresh test of them.",
            "",
            "| seed | AUC | green in the data | plain GAN | Dia-GAN | with rejection | minutes |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
            f"- AUC at least 0.8: {sum(r['auc'] >= 0.8 for r in found)} of {len(found)}",
            f"- more green with Dia-GAN than without: {n_up} of {len(found)}",
            f"- with rejection nearer to the data's share than the plain GAN: {n_near} of "
            f"{len(found)}",
            "",
        ]
    )


def picture(folder: RunDir) -> Image.Image:
    """The grids of the arms side by side, each with its name."""
    grids = {name: Image.open(folder.generated / f"{file}.png") for file, name in PICTURES.items()}
    width, height = next(iter(grids.values())).size
    sheet = Image.new("RGB", (len(grids) * (width + 16) - 16, height + 20), "white")
    for i, (name, grid) in enumerate(grids.items()):
        sheet.paste(grid, (i * (width + 16), 20))
        ImageDraw.Draw(sheet).text((i * (width + 16) + 2, 4), name, fill="black")
    return sheet


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    by_seed = {}
    for seed in range(args.seeds):
        folder = run(replace(find("demo"), seed=seed), args.runs / f"demo-seed{seed}")
        by_seed[str(seed)] = numbers(folder)
        print(seed, by_seed[str(seed)], flush=True)
    told = about(
        f"demo_seeds.py --seeds {args.seeds}",
        scale="the demo's own (12,000 digits of 16x16, 4,000 steps)",
        precision=read_json(folder.provenance)["precision"],
    )
    keep("demo", {**told, "by_seed": by_seed}, page)
    picture(RunDir(args.runs / "demo-seed0")).save(HERE.parent / "docs" / "demo.png")


if __name__ == "__main__":
    main()
