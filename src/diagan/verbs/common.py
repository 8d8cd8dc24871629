"""What all verbs share."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO

from diagan.errors import UserError

Scale = Literal["paper", "cpu", "smoke"]


@dataclass(frozen=True)
class Verb:
    """What is typed after `diagan`, what parses it, what does it, and the line of help."""

    name: str
    args: type
    act: Callable[..., None]
    about: str
    default: Callable[[Sequence[str]], object] | None = None


def say(text: str, to: TextIO | None = None) -> None:
    """Print, once: of the processes that torchrun starts only the first speaks."""
    if os.environ.get("RANK", "0") == "0":
        print(text, file=to)


def parse_budget(text: str, flag: str = "--budget") -> float:
    """Seconds of `90s`, `30m` or `2h`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not match or float(match[1]) == 0:
        raise UserError(f"{flag} {text}: expected a time such as 90s, 30m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]
