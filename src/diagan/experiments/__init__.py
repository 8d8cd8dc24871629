"""The paper as data: experiments by name, and the scales they can be run at."""

from pathlib import Path
from shlex import quote

from diagan.config import Config
from diagan.errors import UserError, did_you_mean
from diagan.experiments import baselines, demo, gaussians, images, mnist
from diagan.experiments.common import Experiment
from diagan.experiments.scales import SCALES, at_scale

__all__ = ["EXPERIMENTS", "SCALES", "Experiment", "at_scale", "find"]

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for room in (demo, gaussians, mnist, images, baselines) for e in room.EXPERIMENTS
}


def find(name: str) -> Config:
    """The config of a named experiment, at the paper's scale."""
    if name not in EXPERIMENTS and Path(name).exists():
        raise UserError(f"{name} is a place and no experiment: diagan run --data {quote(name)}")
    if name not in EXPERIMENTS:
        raise UserError(f"there is no experiment {name!r}{did_you_mean(name, EXPERIMENTS)}")
    return EXPERIMENTS[name].config
