"""Draws per second of the weighted stream at 10 million samples."""

import time

import numpy as np

from diagan.sampling import WeightedStream

N = 10_000_000
BATCH = 64


def main() -> None:
    weights = np.random.default_rng(0).random(N)
    began = time.perf_counter()
    stream = WeightedStream(weights, seed=0)
    stream.take(0, 1)
    built = time.perf_counter() - began
    n_batches = 40_000
    began = time.perf_counter()
    for number in range(n_batches):
        stream.take(number * BATCH, BATCH)
    seconds = time.perf_counter() - began
    print(f"built in {built:.2f} s; {n_batches * BATCH / seconds / 1e6:.1f} million draws a second "
          f"in batches of {BATCH}")  # fmt: skip
