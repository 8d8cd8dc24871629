"""Numbers and lists of names in the sentences of a verdict."""

from collections.abc import Sequence

from diagan.findings.evidence import Count

NO_BREAK = "\N{NO-BREAK SPACE}"


def names(found: Sequence[Count]) -> str:
    return listed([c.group.name for c in sorted(found, key=lambda c: c.ratio)])


def listed(words: Sequence[str], most: int = 4) -> str:
    """`a, b and c`, or `a, b, c, d and 9 others`."""
    if len(words) > most + 1:
        words = [*words[:most], f"{len(words) - most} others"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def is_are(found: Sequence[Count]) -> str:
    return "is" if len(found) == 1 else "are"


def per_cent(share: float) -> str:
    """Two digits: 43 %, 4.3 %, 0.43 %."""
    value = 100 * share
    return f"{value:.0f}{NO_BREAK}%" if value >= 10 else f"{value:.2g}{NO_BREAK}%"
