"""Whether the fast step trains as the plain one does: 2,000 steps, three seeds each.

Colored MNIST at 99 %, 10,000 samples. D(real), D(fake) and the groups' mean LDRM and LDRV of the
fast step must lie within the spread of the seeds. Needs DIAGAN_DATA.
"""

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.plain import PlainStep
from diagan import ldr
from diagan.data import as_input, load_dataset
from diagan.engine import launch, resolve
from diagan.experiments import at_scale, find
from diagan.record import score_all
from diagan.stages import Stage, new_game
from diagan.train import play_step

STEPS, EVERY, WINDOW, SEEDS = 2_000, 20, 25, (0, 1, 2)
RESULT = Path(__file__).parent.parent / "results" / "quality.json"


def fast_step(game):
    _, turns = play_step(game)
    game.step += 1
    of_d = turns[0]
    return {
        "d_real": of_d.real_logits.sigmoid().mean().item(),
        "d_fake": of_d.fake_logits.sigmoid().mean().item(),
    }


def measure(kind: str, seed: int) -> dict[str, float]:
    base = at_scale(find("colored_mnist_99"), "cpu")
    config = resolve(replace(base, seed=seed, steps=STEPS, device="cpu"))
    data = load_dataset(config.data, seed=seed, root=os.environ["DIAGAN_DATA"])
    if kind == "plain":
        config = replace(config, precision="float32")
        step = PlainStep(config, data, launch(config))
        game = step.game
    else:
        game = new_game(config, data, launch(config), Stage("phase1", 0, STEPS))
        step = lambda: fast_step(game)  # noqa: E731
    for player in game.players:
        player.net.train()
    outputs, records = [], []
    for number in range(1, STEPS + 1):
        outputs.append(step())
        if number % EVERY == 0 and number > STEPS - EVERY * WINDOW:
            logits = score_all(game.d.net, game.draws.values, as_input, seed=seed, step=number)
            records.append(logits.numpy())
    found = ldr.moments(records)
    tail = outputs[-500:]
    result = {name: float(np.mean([o[name] for o in tail])) for name in ("d_real", "d_fake")}
    for group, name in enumerate(data.group_names):
        inside = data.groups == group
        result[f"ldrm_{name}"] = float(found.ldrm[inside].mean())
        result[f"ldrv_{name}"] = float(found.ldrv[inside].mean())
    return result


def stored() -> dict[str, dict[str, float]]:
    return json.loads(RESULT.read_text())["runs"] if RESULT.exists() else {}


def keep(name: str, found: dict[str, float]) -> None:
    """Beside what other processes have kept meanwhile."""
    about = {"command": "python -m benchmarks quality", "scale": f"{STEPS:,} steps, one thread",
             "date": time.strftime("%F")}  # fmt: skip
    RESULT.write_text(json.dumps({**about, "runs": stored() | {name: found}}, indent=1) + "\n")


def main() -> None:
    if "DIAGAN_DATA" not in os.environ:
        sys.exit("set DIAGAN_DATA to a folder with mnist/train.parquet")
    for seed in SEEDS:
        for kind in ("fast", "plain"):
            if f"{kind}-{seed}" not in stored():
                keep(f"{kind}-{seed}", measure(kind, seed))
    text = page(stored())
    RESULT.with_suffix(".md").write_text(text)
    print(text)


def page(done: dict[str, dict[str, float]]) -> str:
    lines = [
        "# Quality: the fast step against the plain one",
        "",
        f"`python -m benchmarks quality`: Colored MNIST at 99 %, 10,000 samples, {STEPS:,} steps,",
        f"{len(SEEDS)} seeds. Means over the last 500 steps, and of the groups over the last",
        f"{WINDOW} records; in brackets the seeds. Within: the means differ by no more than the",
        "seeds of one kind do, the kind with the wider spread.",
        "",
        "| what | fast | plain | gap of the means | spread of fast | of plain | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in done["fast-0"]:
        both = [[done[f"{kind}-{seed}"][name] for seed in SEEDS] for kind in ("fast", "plain")]
        gap, spreads = abs(np.subtract(*map(np.mean, both))), [np.ptp(x) for x in both]
        cells = [f"{np.mean(x):.3f} ({', '.join(f'{v:.3f}' for v in x)})" for x in both]
        cells += [f"{x:.3f}" for x in (gap, *spreads)]
        verdict = "within" if gap <= max(spreads) else "OUTSIDE"
        lines.append(f"| {name} | {' | '.join(cells)} | {verdict} |")
    return "\n".join(lines) + "\n"
