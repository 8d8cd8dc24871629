"""The page of a foreign record of a million samples: build time, memory and size.

python -m benchmarks.report [N [RECORDS]]    # 1,000,000 and 50; fewer to try

At most 60 s, 2 GiB and 30 MB for a million; under 15 MB for 60,000.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from diagan.rundir import RunDir, write_json
from diagan.thumbnails import keep_thumbnails

BUILD = "build"  # python -m benchmarks.report build FOLDER: what a child runs
N_GROUPS = 100
SIDE = 32


def foreign(folder: Path, n: int, n_records: int) -> RunDir:
    """What `diagan diagnose record` leaves of a record by somebody else's trainer."""
    run, rng = RunDir(folder), np.random.default_rng(0)
    run.record.mkdir(parents=True)
    group = rng.integers(0, N_GROUPS, n)
    mean = rng.normal(0, 0.3, n) + np.where(group == 0, 2.0, 0.0)
    spread = rng.gamma(2.0, 0.1, n) + np.where(group == 0, 0.5, 0.0)
    write_json(run.record / "meta.json", {"format": 1, "n": n, "mode": "eval", "is_ldr": True})
    for step in range(1, n_records + 1):
        values = (mean + spread * rng.standard_normal(n)).astype(np.float32)
        np.save(run.record / f"{100 * step:06d}.npy", values)
    names = np.array([f"class {i}" for i in range(N_GROUPS)])
    score = mean + spread
    columns = {"index": np.arange(n), "group": pa.array(names[group]), "ldrm": mean,
               "ldrv": spread**2, "score": score,
               "weight": np.full(n, 1 / n)}  # fmt: skip
    columns["file"] = pa.array([f"images/{i:07d}.jpg" for i in range(n)])
    pq.write_table(pa.table(columns), run.samples)
    members = [group == i for i in range(N_GROUPS)]
    groups = [
        {"name": str(names[i]), "n": int(own.sum()), "share": float(own.mean()),
         "ldrm": float(mean[own].mean()), "ldrv": float((spread[own] ** 2).mean()),
         "score": float(score[own].mean()), "weight_share": float(own.mean())}
        for i, own in enumerate(members)
    ]  # fmt: skip
    about = {"format": 1, "n": n, "n_records": n_records, "k": 1.0, "centre": "none",
             "groups": groups, "rare": None, "auc": None, "warnings": [], "mode": "record",
             "is_ldr": True, "first_step": 100, "last_step": 100 * n_records}  # fmt: skip
    write_json(run.diagnosis, about)
    keep_thumbnails(run, Photos(n))
    run.generated.mkdir()
    np.savez(run.generated / "fake.npz", images=np.stack([photo(i) for i in range(1_000)]))
    return run


def photo(number: int) -> np.ndarray:
    """Smooth colours and a little noise [H, W, 3]: about as hard to compress as a photograph."""
    rng = np.random.default_rng(number)
    coarse = rng.integers(0, 255, (5, 5, 3)).astype(np.float32)
    fine = coarse.repeat(8, axis=0).repeat(8, axis=1)[:SIDE, :SIDE]
    return np.clip(fine + rng.normal(0, 8, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)


class Photos:
    """A million images that are made when they are asked for."""

    def __init__(self, n):
        self.n = n

    def __getitem__(self, index):
        return photo(int(index)).transpose(2, 0, 1)


def build(folder):
    from diagan.report import write_report

    began = time.perf_counter()
    page = write_report(Path(folder))
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"{seconds:.1f} s, {peak:.2f} GiB, {page.stat().st_size / 1e6:.1f} MB")


def main():
    numbers = [int(argument.replace(",", "")) for argument in sys.argv[1:] if argument[0].isdigit()]
    n, n_records = (*numbers, *(1_000_000, 50)[len(numbers) :])
    with tempfile.TemporaryDirectory() as folder:
        for size in (n, 60_000):
            run = foreign(Path(folder) / str(size), size, n_records)
            command = [sys.executable, "-m", "benchmarks.report", BUILD, str(run.path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            print(f"report of {size:,} samples, {n_records} records: {done.stdout.strip()}")


if __name__ == "__main__":
    if sys.argv[1:2] == [BUILD]:
        build(sys.argv[2])
    else:
        main()
