"""Metrics: pure functions of arrays, with arguments named `real` and `fake`."""

from diagan.metrics.modes import ModeCounts, count_modes

__all__ = ["ModeCounts", "count_modes"]
