"""On what a network computes, and how precisely."""

from typing import Literal

import torch
from torch import nn


def best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def has_bfloat16(device: str) -> bool:
    """Whether the processor multiplies bfloat16 itself; where it must emulate, it is slower."""
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device == "cpu":
        found = torch.cpu.get_capabilities()
        return bool(found.get("avx512_bf16") or found.get("amx_bf16") or found.get("bf16"))
    return False


def best_precision(device: str) -> Literal["bfloat16", "float32"]:
    return "bfloat16" if has_bfloat16(device) else "float32"


def device_of(net: nn.Module) -> torch.device:
    return next(net.parameters()).device
