"""Settings that go together, under a name: `("preset", "effective")` is a change like any other."""

from dataclasses import dataclass
from typing import Any

Changes = tuple[tuple[str, Any], ...]  # dotted settings


@dataclass(frozen=True)
class Times:
    """A change that is a multiple of what the scale has itself."""

    factor: int

    def __str__(self) -> str:
        return f"x{self.factor}"


# Logits that are a matter of the image alone, ten records over the paper's window, no drift, and
# weights that one low score cannot make uniform.
ROBUST: Changes = (
    ("record.mode", "eval"), ("record.every", Times(5)), ("record.window", 10),
    ("score.centre", "median"), ("score.clip", "floor"),
)  # fmt: skip
WEAK_R1: Changes = (("penalty.r1", 0.03), ("penalty.every", 4), ("penalty.r1_from", "phase2"))
FULL_RATE: Changes = (("optim.decay", "restart"),)
# Enough of the rare group in a batch for D to learn its shapes, and a rate at which G can follow.
EFFECTIVE: Changes = (*ROBUST, ("score.k", 5.0), *WEAK_R1, *FULL_RATE)
PRESETS: dict[str, Changes] = {"robust": ROBUST, "effective": EFFECTIVE}
