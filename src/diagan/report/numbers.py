"""Numbers as the page shows them: rounded to what is known."""

import math
from typing import Any


def significant(value: float | None, digits: int = 3) -> str:
    """So many significant digits, never as a power of ten; a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 6)}f}"


def percent(share: float | None) -> str:
    """A share that was counted exactly: 3.0 %, 0.42 %."""
    if share is None or not math.isfinite(share):
        return "–"
    value = 100 * share
    return f"{value:.{1 if value >= 1 or value == 0 else 2}f} %"


def share(line: dict[str, Any] | None) -> str:
    """A measured share with its interval, as fine as the interval allows: 0.4 % (0.3 to 0.6)."""
    if line is None:
        return "–"
    value, low, high = (line.get(key) for key in ("value", "low", "high"))
    if low is None or high is None:
        return percent(value)
    half = 100 * (high - low) / 2
    decimals = min(max(0, math.ceil(-math.log10(half))), 3) if half > 0 else 1
    return f"{100 * value:.{decimals}f} % ({100 * low:.{decimals}f} to {100 * high:.{decimals}f})"


def auc(value: float | None) -> str:
    """Two decimals; more near 1, so that only a perfect ranking reads 1.00."""
    if value is None or not math.isfinite(value):
        return "–"
    decimals = 2 if value <= 0.99 or value == 1 else min(math.ceil(-math.log10(1 - value)) + 1, 6)
    return f"{value:.{decimals}f}"


def size(n_bytes: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000  # type: ignore[assignment]
    return f"{n_bytes:.3g} GB"


def finite(value: Any) -> Any:
    """The same for JSON: no NaN, no infinity."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
