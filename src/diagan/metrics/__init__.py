"""Metrics: pure functions of arrays, with arguments named `real` and `fake`."""

from diagan.metrics.bootstrap import MIN_GROUP, Interval, bootstrap_interval
from diagan.metrics.frechet import (
    RunningStatistics,
    Statistics,
    features_to_statistics,
    fid,
    statistics_to_fid,
)
from diagan.metrics.inception_score import InceptionScore, RunningInceptionScore, inception_score
from diagan.metrics.kernel import KID, kid
from diagan.metrics.manifold import PRDC, manifold_metrics, partial_recall, recalled
from diagan.metrics.missing import MissingMode, missing_modes
from diagan.metrics.modes import ModeCounts, count_modes
from diagan.metrics.reconstruction import reconstruction_error

__all__ = [
    "KID",
    "MIN_GROUP",
    "PRDC",
    "InceptionScore",
    "Interval",
    "MissingMode",
    "ModeCounts",
    "RunningInceptionScore",
    "RunningStatistics",
    "Statistics",
    "bootstrap_interval",
    "count_modes",
    "features_to_statistics",
    "fid",
    "inception_score",
    "kid",
    "manifold_metrics",
    "missing_modes",
    "partial_recall",
    "recalled",
    "reconstruction_error",
    "statistics_to_fid",
]
