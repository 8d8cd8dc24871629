"""Numbers as the page shows them: rounded to what is known."""

import math
from typing import Any

from markupsafe import Markup, escape

NO_BREAK = "\N{NO-BREAK SPACE}"


def significant(value: float | None, digits: int = 3) -> str:
    """So many significant digits, never as a power of ten; a dash where there is no number.

    What was counted is shown in full.
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0 or isinstance(value, int):
        return f"{value:,.0f}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 6)}f}"


def percent(share: float | None) -> str:
    """A share that was counted exactly: 3.0 %, 0.42 %; never 0 or 100 % for what is not."""
    if share is None or not math.isfinite(share):
        return "–"
    value = 100 * share
    rest = min(value, 100 - value)
    fine = 0 < value < 1 or 0 < rest < 0.05
    decimals = min(1 - math.floor(math.log10(rest)), 6) if fine else 1
    return f"{value:.{decimals}f} %"


def share(line: dict[str, Any] | None) -> str:
    """A measured share with its interval, as fine as the interval allows: 0.4 % (0.3 to 0.6).

    Its one space at which a line may break is the one before the interval.
    """
    if line is None:
        return "–"
    if line.get("low") is None or line.get("high") is None:
        return percent(line["value"])
    value, low, high = (float(line[key]) for key in ("value", "low", "high"))
    half = 100 * (high - low) / 2
    decimals = min(max(0, math.ceil(-math.log10(half))), 3) if half > 0 else 1
    shown, start, end = (f"{100 * x:.{decimals}f}" for x in (value, low, high))
    return f"{shown}{NO_BREAK}% ({start}{NO_BREAK}to{NO_BREAK}{end})"


def interval(line: dict[str, Any] | None) -> str:
    """A measured number with its interval, where it has one: 12.3 (11.9 to 12.8)."""
    if line is None:
        return "–"
    value, low, high = (line.get(key) for key in ("value", "low", "high"))
    if low is None or high is None:
        return significant(value)
    return f"{significant(value)} ({significant(low)}{NO_BREAK}to{NO_BREAK}{significant(high)})"


def auc(value: float | None) -> str:
    """Two decimals, three near 1; only a perfect ranking reads 1."""
    if value is None or not math.isfinite(value):
        return "–"
    if 0.9995 <= value < 1:
        return "over 0.999"
    return f"{value:.{3 if 0.99 < value < 1 else 2}f}"


def marked(text: str) -> Markup:
    """A sentence in which `this` is code; all else is text."""
    parts = text.split("`")
    made = [
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part)
        for at, part in enumerate(parts)
    ]
    return Markup("").join(made)


def size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes if unit == 'bytes' else significant(n_bytes)} {unit}"
        n_bytes /= 1000
    return f"{significant(n_bytes)} GB"


def finite(value: Any) -> Any:
    """The same for JSON: no NaN, no infinity."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
