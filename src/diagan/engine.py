"""Where a run computes: device, precision and processes, through Lightning Fabric."""

import dataclasses
import logging
import os
import warnings
from typing import Literal

import torch
from lightning_fabric import Fabric

from diagan.config import Config
from diagan.device import best_device, best_precision
from diagan.errors import UserError


def resolve(config: Config) -> Config:
    """The config with every `auto` replaced by what it means on this machine."""
    device = config.device if config.device != "auto" else best_device()
    precision = config.precision if config.precision != "auto" else best_precision(device)
    return dataclasses.replace(config, device=device, precision=precision)


def across(fabric: Fabric, mine: torch.Tensor, how: Literal["mean", "sum"]) -> torch.Tensor:
    """A tensor that every process has its own of, reduced to one that all have."""
    found = fabric.all_reduce(mine, reduce_op=how)
    assert isinstance(found, torch.Tensor)
    return found


def launch(config: Config) -> Fabric:
    """One process, or the several that torchrun has started (Fabric reads its environment)."""
    if config.device not in ("cpu", "cuda", "mps"):
        raise UserError(f"--device {config.device}: expected auto, cpu, cuda or mps")
    if config.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: there is no CUDA device here; use --device auto")
    if config.device == "mps" and not torch.backends.mps.is_available():
        raise UserError("--device mps: there is no Apple GPU here; use --device auto")
    logging.getLogger("lightning_fabric").setLevel(logging.ERROR)
    n_local = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    n_all = int(os.environ.get("WORLD_SIZE", 1))
    # Equal parts: the mean of the processes' means is that of the batch. Two: BatchNorm needs them.
    if config.batch_size % n_all or config.batch_size < 2 * n_all:
        raise UserError(
            f"--batch-size {config.batch_size}: expected a multiple of the {n_all} processes, with "
            "2 samples for each at least"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fabric = Fabric(
            accelerator=config.device,
            devices=n_local,
            num_nodes=n_all // n_local,
            strategy="ddp" if n_all > 1 else "auto",
            precision="bf16-mixed" if config.precision == "bfloat16" else "32-true",
        )
        fabric.launch()
    return fabric
