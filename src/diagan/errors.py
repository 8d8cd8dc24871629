"""What is said to people where something is wrong."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """One sentence: what was wrong, and what to do. The command line prints it and exits with 2."""


class Busy(UserError):
    """Another process is at work there: what it writes is not ours to touch."""


class Diverged(UserError):
    """A loss, or what an update made of the weights, is not finite."""

    def __init__(self, name: str, what: str, step: int) -> None:
        super().__init__(
            f"the {what} of {name} is not finite at step {step}; the last checkpoint is untouched, "
            "and can be drawn from: train anew with a lower --optim.lr or --precision float32"
        )


class Interrupted(Exception):
    """Ctrl-C or SIGTERM: all is saved, and the same command goes on."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or the list of what there is."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    return f"; did you mean {close[0]}?" if close else f"; expected one of {', '.join(names)}"
