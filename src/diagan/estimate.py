"""How long a run will take and how much disk it needs, from a few steps on this machine."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from lightning_fabric import Fabric

from diagan.batches import at_once
from diagan.config import Config, check
from diagan.data import Dataset, as_input
from diagan.errors import UserError
from diagan.networks import count_parameters
from diagan.record import score_all
from diagan.sample import BATCH
from diagan.stages import Stage, new_game, record_batch
from diagan.train import Game, play_step

KEPT_CHECKPOINTS = 2
TIMING_SECONDS, MAX_TIMED_STEPS = 2.0, 50


@dataclass(frozen=True)
class Estimate:
    seconds: float
    bytes: int
    seconds_per_step: float
    seconds_per_step_phase2: float
    seconds_per_record: float
    seconds_per_fake: float = 0.0


def estimate(
    config: Config, dataset: Dataset, fabric: Fabric, budget_seconds: float | None = None
) -> tuple[Config, Estimate]:
    """The estimate, and the config with steps that fit a budget where one is given.

    The clock of the first process holds for all.
    """
    plain = new_game(config, dataset, fabric, Stage("timing", 0, 1))
    step = step2 = time_step(plain)
    if config.phase1_steps < config.steps and config.weighted_arm:
        uniform = np.full(dataset.n, 1 / dataset.n)
        weighted = Stage("timing", 1, 2, weighted=True)  # with what begins in phase 2
        step2 = time_step(new_game(config, dataset, fabric, weighted, uniform))
    record = time_record(config, plain, dataset)
    n_at_once = at_once(dataset.shape, BATCH) * fabric.world_size  # each takes its slice
    generate = time_generate(plain, n_at_once, n_judges=1 + (config.critic.fakes == "reals"))
    step, step2, record, generate = fabric.broadcast((step, step2, record, generate))

    def total(c: Config) -> float:
        phase2 = c.steps - c.phase1_steps
        training = c.phase1_steps * step + phase2 * (step2 * c.weighted_arm + step * c.plain_arm)
        n_arms = 1 if not phase2 else c.weighted_arm + c.plain_arm
        # A fifth of the proposals is kept at the 80th percentile, after the burn-in.
        n_made = int((c.rejection.budget or 5) * c.n_evaluate)
        n_rejecting = (c.rejection.burn_in + n_made) * (phase2 > 0 and c.weighted_arm)
        n_fakes = c.n_evaluate * n_arms + n_rejecting
        return training + n_records(c) * record + n_fakes * generate

    if budget_seconds is not None:
        config = fit_budget(config, budget_seconds, total)
    n_bytes = disk_bytes(config, plain, dataset)
    return config, Estimate(total(config), n_bytes, step, step2, record, generate)


def n_records(config: Config) -> int:
    if config.record.mode in ("free", "none"):
        return 0
    return max(0, config.phase1_steps - config.record_start) // config.record.every + 1


def fit_budget(config: Config, budget_seconds: float, total: Callable[[Config], float]) -> Config:
    """The most steps that fit; the window is the last third of phase 1."""

    def with_steps(steps: int) -> Config:
        every = max(1, round(steps * config.phase1_share / 3 / config.record.window))
        record = dataclasses.replace(config.record, every=every)
        return dataclasses.replace(config, steps=steps, record=record)

    low, high = 100, 10_000_000
    if total(with_steps(low)) > budget_seconds:
        raise UserError(
            f"--budget: even {low} steps take about {total(with_steps(low)):.0f} s here; "
            "give more time, fewer images, or --steps"
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(with_steps(middle)) <= budget_seconds else (low, middle)
    return check(with_steps(low))


def time_step(game: Game) -> float:
    """Seconds of a step, the first one left out: the median of a few, as other jobs come and go.

    Where a term has its turn only now and then, the mean over a whole round of it.
    """
    for player in game.players:
        player.net.train()
    terms = (*game.parts.d_terms, *game.parts.g_terms)
    round_of = max([term.interval for term in terms], default=1)
    found: list[float] = []

    def is_enough() -> bool:
        some = round_of > 1 or sum(found) >= TIMING_SECONDS or len(found) >= MAX_TIMED_STEPS
        return some and len(found) >= max(3, round_of)

    while not game.draws.fabric.broadcast(is_enough()):  # a step takes all processes
        game.step += 1
        found.append(stopwatch(lambda: play_step(game), 1))
    return float(np.mean(found) if round_of > 1 else np.median(found[1:]))


def time_record(config: Config, game: Game, dataset: Dataset) -> float:
    """Seconds of a record of all samples and the held-out ones, from one batch."""
    mode = config.record.mode
    if mode == "free" or mode == "none":
        return 0.0
    size = record_batch(config, dataset.shape)
    values = torch.from_numpy(dataset.values[:size])
    one = stopwatch(lambda: score_all(game.d.net, values, as_input, mode=mode, batch_size=size), 2)
    return one * (dataset.n + len(dataset.heldout)) / len(values)


def time_generate(game: Game, n: int, n_judges: int) -> float:
    """Seconds of one generated image that so many discriminators score."""
    latents = game.draws.latents("timing", 0, n=n)
    with torch.no_grad():
        seconds = stopwatch(lambda: game.g.net(latents), 2)
        if game.parts.images_per_score == 1:  # else nothing is rejected
            images = game.g.net(latents)
            seconds += n_judges * stopwatch(lambda: game.d.net(images), 2)
    return seconds / len(latents)


def stopwatch(action: Callable[[], object], n: int) -> float:
    began = time.perf_counter()
    for _ in range(n):
        action()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / n


def disk_bytes(config: Config, game: Game, dataset: Dataset) -> int:
    """Checkpoints (weights and two moments), records, the table."""
    networks = 12 * sum(count_parameters(player.net) for player in game.players)
    per_critic = 12 * count_parameters(game.d.net)
    checkpoints = KEPT_CHECKPOINTS * networks
    if config.phase1_steps < config.steps:
        checkpoints += KEPT_CHECKPOINTS * (networks * (1 + config.plain_arm) + per_critic)
    records = 4 * n_records(config) * (dataset.n + len(dataset.heldout))
    return checkpoints + records + 60 * dataset.n
