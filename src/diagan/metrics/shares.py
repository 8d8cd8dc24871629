"""How sure a share counted out of n draws is, and what it is if the counter errs."""

from math import sqrt


def wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share out of n draws; sensible at 0 and 1 too."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def rogan_gladen(share: float, *, sensitivity: float, specificity: float) -> float | None:
    """The true share behind one counted by a test that errs, 0 to 1; None if the test is useless.

    counted = sensitivity * true + (1 - specificity) * (1 - true), solved for the true share.
    """
    power = sensitivity + specificity - 1
    if power <= 0:
        return None
    return min(1.0, max(0.0, (share + specificity - 1) / power))
