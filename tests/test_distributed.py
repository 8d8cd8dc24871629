"""Two real processes that talk through gloo. This file is also what each of them runs."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from tiny import DIGITS, POINTS, data_of, world_of

from diagan import checkpoint, estimate
from diagan.config import MLP, Record
from diagan.engine import launch
from diagan.errors import Diverged
from diagan.observers import recording
from diagan.record import LdrRecord, score_all
from diagan.rundir import RunDir, read_json, read_lines
from diagan.sampling import WeightedSampler, WeightedStream
from diagan.stages import new_game, stages, train_stage
from diagan.train import play_step, train

pytestmark = pytest.mark.slow

N_DRAWS = 10**6
WEIGHTS = np.random.default_rng(0).pareto(1.5, 200) + 0.01
WHOLE = replace(POINTS, network=MLP(width=64), batch_size=16, n_dis=2)
FREE = replace(POINTS, record=Record(mode="free", start=1), phase1_share=1.0, steps=24)


# --- what each process does ----------------------------------------------------------------------


def main(out: Path) -> None:
    fabric = launch(POINTS)
    found = {"world": np.array(fabric.world_size)}
    # Through torch.distributed, as in other people's loops; two passes, the second by itself.
    sampler = WeightedSampler(WEIGHTS, N_DRAWS // 2, seed=3)
    found["draws"] = np.array([*sampler, *sampler])
    found |= played(WHOLE, fabric)
    found |= {"digits": weights_after(DIGITS, fabric, steps=4)}
    found |= {"diverged": np.array(poisoned(fabric))}
    record_twice(out, fabric)
    world = world_of(FREE, out / f"free-{fabric.world_size}", fabric)
    train_stage(world, stages(FREE)[0], None, lambda: fabric.global_rank == 1 and ask_once(out))
    found["stopped_at"] = np.array(checkpoint.steps(world.run.checkpoints, "phase1")[-1])
    train_stage(world, stages(FREE)[0], None, lambda: False)
    found["estimate"] = estimated(fabric)
    np.savez(out / f"found-{fabric.world_size}-{fabric.global_rank}.npz", **found)


def played(config, fabric) -> dict[str, np.ndarray]:
    """Gradients of D and of G in one step, and the indices of the batch that each process had.

    SGD: Adam's first step is a sign, which rounding can turn.
    """
    game = new_game(config, data_of(config), fabric, stages(config)[0])
    for player in game.players:
        player.optimiser = torch.optim.SGD(player.net.parameters(), lr=0.1)
    losses, turns = play_step(game)
    return {
        **{f"gradient_{p.name}": flat(x.grad for x in p.net.parameters()) for p in game.players},
        "losses": np.array(list(losses.values())),
        "indices": np.stack([turn.indices for turn in turns[:-1]]),
        "latents": np.stack([turn.latents for turn in turns]),
    }


def weights_after(config, fabric, steps: int) -> np.ndarray:
    game = new_game(config, data_of(config), fabric, stages(config)[0])
    train(game, until=steps)
    return flat(x.detach() for player in game.players for x in player.net.parameters())


def poisoned(fabric) -> str:
    """What is said of a NaN that only the second process sees."""
    game = new_game(POINTS, data_of(POINTS), fabric, stages(POINTS)[0])
    train(game, until=2)
    if fabric.global_rank == 1:
        game.draws.values.fill_(torch.nan)
    try:
        train(game, until=4)
    except Diverged as error:
        return str(error)
    return ""


def estimated(fabric) -> np.ndarray:
    """What each is told of a run, where their clocks differ twentyfold."""

    def watch(action, n):
        action()
        return 0.1 * 20**fabric.global_rank

    estimate.stopwatch = watch
    return np.array(astuple(estimate.estimate(POINTS, data_of(POINTS), fabric)[1]))


def flat(tensors) -> np.ndarray:
    return torch.cat([tensor.flatten() for tensor in tensors]).numpy()


def record_twice(out: Path, fabric) -> None:
    """A record by all processes, and one by this process alone, of the same D."""
    config = replace(DIGITS, data=replace(DIGITS.data, n=1_700))  # 4 batches, the last one short
    game = new_game(config, data_of(config), fabric, stages(config)[0])
    train(game, until=2)  # BatchNorm's statistics now differ between the processes
    values = game.draws.values
    for mode, size in (("eval", 500), ("train", 64)):
        record = LdrRecord(out / f"record-{fabric.world_size}-{mode}", len(values))
        parts = recording(record, game.d.net, fabric, {"": values}, mode=mode, batch_size=size,
                          every=1, start=1, at_end=False, seed=0)  # fmt: skip
        parts.observers[0].look(Moment(step=2))
        if fabric.is_global_zero:
            alone = score_all(game.d.net, values, game.draws.as_input, mode=mode, batch_size=size,
                              seed=0, step=2)  # fmt: skip
            record.add(3, alone)
    fabric.barrier()


class Moment:
    def __init__(self, step: int) -> None:
        self.step = step


def ask_once(out: Path) -> bool:
    """True at its fifth call: a wish to stop that only one of the processes has."""
    with (out / "asked").open("a") as file:
        file.write(".")
    return (out / "asked").stat().st_size == 5


# --- the tests -----------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(rank: int, world_size: int, port: int) -> dict[str, str]:
    """What torchrun tells a process."""
    return os.environ | {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "test", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def processes(n: int, *words: str) -> list[subprocess.CompletedProcess]:
    """n processes that run the same command, once all have ended."""
    port = free_port()
    started = [
        subprocess.Popen([sys.executable, *words], env=environment(rank, n, port), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in range(n)
    ]  # fmt: skip
    try:
        said = [process.communicate(timeout=90) for process in started]
    finally:
        for process in started:
            process.kill()
    return [subprocess.CompletedProcess(p.args, p.returncode, *s) for p, s in zip(started, said)]


@pytest.fixture(scope="module")
def played_by(tmp_path_factory):
    """What the processes found: by [number of processes][rank]; and where their files are."""
    out = tmp_path_factory.mktemp("distributed")
    found = {}
    for n in (1, 2):
        for done in processes(n, __file__, str(out)):
            assert done.returncode == 0, done.stderr
        found[n] = [dict(np.load(out / f"found-{n}-{rank}.npz")) for rank in range(n)]
        (out / "asked").unlink(missing_ok=True)
    return found, out


def test_there_were_two(played_by):
    found, _ = played_by
    assert [int(rank["world"]) for rank in (*found[1], *found[2])] == [1, 2, 2]


def test_weighted_draws_follow_the_weights(played_by):
    found, _ = played_by
    union = np.concatenate([rank["draws"] for rank in found[2]])
    assert len(union) == N_DRAWS
    expected = N_DRAWS * WEIGHTS / WEIGHTS.sum()
    assert chisquare(np.bincount(union, minlength=200), expected).pvalue > 0.001
    for rank in found[2]:  # and each process by itself
        counts = np.bincount(rank["draws"], minlength=200)
        assert chisquare(counts, expected / 2).pvalue > 0.001


def test_the_slices_make_the_draw_of_one_process(played_by):
    found, _ = played_by
    interleaved = np.stack([rank["draws"] for rank in found[2]], axis=1).flatten()
    assert np.array_equal(interleaved, found[1][0]["draws"])
    assert np.array_equal(interleaved, WeightedStream(WEIGHTS, 3).take(0, N_DRAWS))


@pytest.mark.parametrize("what", ["indices", "latents"])
def test_each_process_has_its_slice_of_the_batch(played_by, what):
    found, _ = played_by
    interleaved = np.stack([rank[what] for rank in found[2]], axis=2)
    assert np.array_equal(interleaved.reshape(found[1][0][what].shape), found[1][0][what])


@pytest.mark.parametrize("player", ["D", "G"])
def test_half_batches_give_the_gradient_of_the_whole(played_by, player):
    """n_dis is 2: D's gradient is that after an update of D, and G's after two."""
    found, _ = played_by
    one, (first, second) = found[1][0], found[2]
    name = f"gradient_{player}"
    largest = np.abs(one[name]).max()
    assert largest > 1e-3
    assert np.array_equal(first[name], second[name])
    assert np.allclose(first[name], one[name], rtol=1e-5, atol=1e-6 * largest)
    assert np.array_equal(first["losses"], second["losses"])
    assert np.allclose(first["losses"], one["losses"], rtol=1e-5)


def test_the_processes_keep_the_same_weights(played_by):
    """With BatchNorm and dropout too, where each has statistics and masks of its own."""
    found, _ = played_by
    first, second = (rank["digits"] for rank in found[2])
    assert np.array_equal(first, second)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_the_record_is_that_of_one_process_bit_for_bit(played_by, mode):
    _, out = played_by
    record = LdrRecord(out / f"record-2-{mode}", 1_700)
    together, alone = record.read(2), record.read(3)
    assert len(np.unique(together)) > 1_000
    assert np.array_equal(together, alone)


def test_a_wish_of_one_process_stops_both_at_the_same_step(played_by):
    found, _ = played_by
    assert [int(rank["stopped_at"]) for rank in found[2]] == [4, 4]


def test_the_first_clock_holds_for_all(played_by):
    """Else one of them would go on timing steps that need the other."""
    found, _ = played_by
    first, second = (rank["estimate"] for rank in found[2])
    assert np.array_equal(first, second) and first[2:4].tolist() == [0.1, 0.1]


def test_free_moments_are_of_the_batches_of_all(played_by):
    """Counts are exact; the weights differ from one process's by rounding that training spreads."""
    _, out = played_by
    one, two = (LdrRecord(out / f"free-{n}" / "record", 48).free_moments() for n in (1, 2))
    assert set(one[0].tolist()) == {4}
    assert np.array_equal(one[0], two[0])
    assert np.allclose(one[1], two[1], atol=1e-3) and np.allclose(one[2], two[2], atol=1e-3)


def test_a_nan_of_one_process_stops_both_with_the_same_sentence(played_by):
    found, _ = played_by
    first, second = (str(rank["diverged"]) for rank in found[2])
    assert first == second and first.startswith("the loss of D is not finite at step 3;")
    assert str(found[1][0]["diverged"]) == ""


# --- a whole run ---------------------------------------------------------------------------------


def torchrun(out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *("--master-port", str(free_port()), "-m", "diagan", "run", "demo"),
        *("--scale", "smoke", "--steps", "100", "--out", str(out), "--device", "cpu"),
    ]  # fmt: skip


def test_a_whole_run_by_torchrun_stops_at_sigterm_and_goes_on(tmp_path):
    out, run = tmp_path / "run", RunDir(tmp_path / "run")
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(torchrun(out), env=env, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)  # fmt: skip
    until = time.monotonic() + 180  # a busy machine is slow to start
    while not read_lines(run.log) and first.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=120)
    assert errors.count("diagan: stopped and saved; the same command goes on") == 1
    (stopped,) = checkpoint.steps(run.checkpoints, "phase1")[-1:]
    assert 4 <= stopped < 50 and not run.report.exists()

    second = subprocess.run(torchrun(out), env=env, text=True, capture_output=True, timeout=90)
    assert second.returncode == 0, second.stderr
    for text in ("going on with", "diagnosed 240 samples", "look at the report:"):
        assert second.stdout.count(text) == 1  # exactly one process speaks
    assert second.stdout.rstrip().endswith(str(run.report))

    assert run.report.stat().st_size > 10_000
    lines = [(line["stage"], line["step"]) for line in read_lines(run.log)]
    ends = {"phase1": (1, 50), "plain": (51, 100), "weighted": (51, 100)}
    expected = [(name, s) for name, (a, b) in ends.items() for s in range(a, b + 1)
                if s % 4 == 0 or s == b]  # fmt: skip
    assert lines == expected  # one log, every line once
    assert read_json(run.diagnosis)["n_records"] == 4
    for player in ("D", "G"):  # no update was lost or played twice
        moments = checkpoint.load(run.checkpoints / "weighted-000100")[f"{player}.optim"]
        assert {v.item() for k, v in moments.items() if k.endswith(".step")} == {100.0}
    assert not re.search(r"Traceback", second.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
