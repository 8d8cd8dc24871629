"""Randomness as a function: every draw comes from (seed, purpose, step, rank), never from a global.

Resuming needs the step only, and adding a consumer shifts no other.
"""

import hashlib

import numpy as np
import torch


def derive_seed(seed: int, purpose: str, step: int = 0, rank: int = 0) -> int:
    """A 63-bit seed, the same on every platform and in every process."""
    # purpose last: it is the only part that could hold a comma
    key = f"{seed},{step},{rank},{purpose}".encode()
    digest = hashlib.blake2b(key, digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(seed: int, purpose: str, step: int = 0, rank: int = 0) -> torch.Generator:
    """A CPU torch generator of its own for this purpose, step and rank.

    torch keeps only the low 32 bits of a seed on the CPU, so that among 100,000 generators a pair
    or so draws the same numbers: fine for latents and dropout, no use for anything cryptographic.
    """
    return torch.Generator().manual_seed(derive_seed(seed, purpose, step, rank))


def numpy_generator(seed: int, purpose: str, step: int = 0, rank: int = 0) -> np.random.Generator:
    """A numpy generator (Philox) of its own for this purpose, step and rank."""
    return np.random.Generator(np.random.Philox(key=derive_seed(seed, purpose, step, rank)))


def seed_torch(seed: int, purpose: str, step: int = 0, rank: int = 0) -> None:
    """Seed torch's own generators, from which networks draw dropout and noise.

    Not by torch.manual_seed: without a GPU in use it formats a stack trace at every call, for a
    start of the GPU that may never come, which took an eighth of a step of a small network.
    """
    number = derive_seed(seed, purpose, step, rank)
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(number)
