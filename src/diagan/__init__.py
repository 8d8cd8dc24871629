"""diagan finds the training samples that a GAN under-represents, and repairs it.

The four objects that a training loop of your own needs are LdrRecord, diagnose, WeightedSampler
and RejectionSampler. Names are imported when they are first used.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "LdrRecord": "diagan.record",
    "score_all": "diagan.record",
    "diagnose": "diagan.diagnosis",
    "Diagnosis": "diagan.diagnosis",
    "Grouping": "diagan.diagnosis",
    "Score": "diagan.config",
    "Config": "diagan.config",
    "WeightedSampler": "diagan.sampling",
    "WeightedStream": "diagan.sampling",
    "UniformStream": "diagan.sampling",
    "RejectionSampler": "diagan.reject",
    "acceptance_probability": "diagan.reject",
    "TrainedGenerator": "diagan.sample",
    "load_generator": "diagan.sample",
    "load_dataset": "diagan.data",
    "diagnose_discriminator": "diagan.checkpoint_diagnosis",
    "evaluate_images": "diagan.evaluate",
    "evaluate_run": "diagan.evaluate",
    "UserError": "diagan.errors",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'diagan' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
