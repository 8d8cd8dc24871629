"""Precision and recall against prdc, and FID against sqrtm: same values, time and memory.

python -m benchmarks.metrics [N [N_BIG [DIMENSIONS]]]    # 10,000, 50,000 and 2,048; smaller to try
"""

import io
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
from prdc import compute_prdc
from scipy.linalg import sqrtm

from benchmarks.common import alternate
from diagan.metrics import features_to_statistics, manifold_metrics, statistics_to_fid

MEMORY = "memory"  # python -m benchmarks.metrics memory NAME N DIMENSIONS: what a child runs
ROUNDS = 2


def features(n, dimensions, seed):
    """Of a low intrinsic dimension, as those of images are."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(0).standard_normal((64, dimensions), dtype=np.float32)
    values = rng.standard_normal((n, 64), dtype=np.float32) @ mixing
    values += rng.standard_normal((n, dimensions), dtype=np.float32)
    return values


def ours(real, fake):
    return tuple(manifold_metrics(real=real, fake=fake, k=3))


def prdc(real, fake):
    with redirect_stdout(io.StringIO()):  # it prints the sizes
        found = compute_prdc(real, fake, 3)
    return tuple(float(found[name]) for name in ("precision", "recall", "density", "coverage"))


def by_sqrtm(real, fake):
    shift = real.mean - fake.mean
    return shift @ shift + np.trace(real.cov + fake.cov - 2 * sqrtm(real.cov @ fake.cov).real)


# --- memory, in a process of its own -------------------------------------------------------------


def resident_mib():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def peak_beyond_now(action: Callable[[], object]) -> float:
    """MiB: the largest resident size while the action runs, less that before it."""
    before, done, peak = resident_mib(), threading.Event(), [0.0]

    def watch():
        while not done.is_set():
            peak[0] = max(peak[0], resident_mib())
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    action()
    done.set()
    watcher.join()
    return peak[0] - before


def measure_memory(name, n, dimensions):
    action = {"ours": ours, "prdc": prdc}[name]
    real, fake = features(n, dimensions, seed=1), features(n, dimensions, seed=2)
    action(real[:50], fake[:50])  # libraries load and start their threads
    print(peak_beyond_now(lambda: action(real, fake)))


def memory(name, n, dimensions):
    command = [sys.executable, "-m", "benchmarks.metrics", MEMORY, name, str(n), str(dimensions)]
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout), time.perf_counter() - began


# --- the comparison ------------------------------------------------------------------------------


def compare_manifold(n, dimensions):
    real, fake = features(n, dimensions, seed=1), features(n, dimensions, seed=2)
    found = {}
    seconds = alternate({
        "prdc": lambda: found.update(prdc=prdc(real, fake)),
        "ours": lambda: found.update(ours=ours(real, fake)),
    }, ROUNDS)  # fmt: skip
    same = np.allclose(found["prdc"], found["ours"], rtol=1e-9, atol=0)
    ratio = seconds["prdc"] / seconds["ours"]
    print(f"precision, recall, density, coverage, {n} x {n} x {dimensions}: prdc {found['prdc']}, "
          f"ours {found['ours']}, {'equal' if same else 'DIFFERENT'}")  # fmt: skip
    print(f"  time: prdc {seconds['prdc']:.1f} s, ours {seconds['ours']:.1f} s, "
          f"{ratio:.2f} times as fast (wanted: 3.5)", flush=True)  # fmt: skip


def compare_memory(n, n_big, dimensions):
    (theirs, _), (mine, _) = (memory(name, n, dimensions) for name in ("prdc", "ours"))
    print(f"  memory beyond the features: prdc {theirs:.0f} MiB, ours {mine:.0f} MiB, "
          f"{mine / theirs:.3f} of it (wanted: 0.25)", flush=True)  # fmt: skip
    big, seconds = memory("ours", n_big, dimensions)
    print(f"  {n_big} x {n_big}: {big:.0f} MiB beyond the features (wanted: 2,048), "
          f"{seconds:.0f} s with making them", flush=True)  # fmt: skip


def compare_fid(n, dimensions):
    real, fake = (features_to_statistics([features(n, dimensions, seed)]) for seed in (1, 2))
    found = {}
    seconds = alternate({
        "sqrtm": lambda: found.update(sqrtm=by_sqrtm(real, fake)),
        "ours": lambda: found.update(ours=statistics_to_fid(real=real, fake=fake)),
    }, ROUNDS)  # fmt: skip
    ratio = seconds["sqrtm"] / seconds["ours"]
    print(f"FID of two {dimensions}-d statistics: sqrtm {found['sqrtm']:.6f} in "
          f"{seconds['sqrtm']:.2f} s, ours {found['ours']:.6f} in {seconds['ours']:.2f} s, "
          f"{ratio:.2f} times as fast (wanted: 7)", flush=True)  # fmt: skip


def main(n: int = 10_000, n_big: int = 50_000, dimensions: int = 2048) -> None:
    compare_fid(n, dimensions)
    compare_manifold(n, dimensions)
    compare_memory(n, n_big, dimensions)


if __name__ == "__main__":
    if sys.argv[1:2] == [MEMORY]:
        measure_memory(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(*map(int, sys.argv[1:]))
