"""An experiment with some settings changed, under a name of its own, at any scale."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from diagan.config import Config, check
from diagan.experiments import EXPERIMENTS, SCALES, at_scale, find
from diagan.experiments.presets import PRESETS, Changes, Times


@dataclass(frozen=True)
class Variant:
    """`changes` are dotted settings; they hold at every scale. `longer` times the steps."""

    experiment: str
    changes: Changes = ()
    longer: float = 1.0

    @property
    def name(self) -> str:
        """`colored_mnist_99+k=0.5`: also a name for a folder."""
        more = [f"{key.rpartition('.')[2]}={value}" for key, value in self.changes]
        more += [f"longer={self.longer:.3g}"] if self.longer != 1 else []
        return "+".join([self.experiment, *more])

    def at(self, scale: str) -> "Variant":
        """Without the changes that change nothing: k = 3 is Colored MNIST as it is."""
        base = at_scale(find(self.experiment), scale)
        kept = tuple(change for change in self.changes if changed(base, *change) != base)
        return replace(self, changes=kept)

    def config(self, scale: str) -> Config:
        scaled = at_scale(find(self.experiment), scale)
        scaled = replace(scaled, steps=round(scaled.steps * self.longer))
        c: Config = with_changes(scaled, self.changes)
        every = min(c.record.every, max(c.phase1_steps // 2, 1))  # two records at the least
        return check(replace(c, record=replace(c.record, every=every)))

    def folder(self, scale: str, seed: int) -> str:
        """Where a run of it lies; at the paper's scale the experiment's plain name."""
        at = "" if scale == "paper" else f"-{scale}"
        return f"{self.name}{at}-seed{seed}"


def with_changes(config: Any, changes: Changes) -> Any:
    return reduce(lambda c, change: changed(c, *change), changes, config)


def changed(config: Any, key: str, value: Any) -> Any:
    """The config with one dotted setting changed, such as score.k; an unknown one is an error."""
    if key == "preset":
        return with_changes(config, PRESETS[value])
    name, _, rest = key.partition(".")
    if rest:
        value = changed(getattr(config, name), rest, value)
    elif isinstance(value, Times):
        value = getattr(config, name) * value.factor
    return replace(config, **{name: value})


def named(config: Config) -> tuple[str, str] | None:
    """The experiment and the scale that a run's config is, whatever its seed and its machine."""

    def bare(c: Config) -> Config:
        return replace(c, seed=0, device="auto", precision="auto", data_root=None)

    mine = bare(config)
    for name in EXPERIMENTS:
        for scale in SCALES:
            if bare(at_scale(find(name), scale)) == mine:
                return name, scale
    return None


def arm_stage(arm: str) -> str:
    """The stage of `weighted+drs` is weighted."""
    return arm.partition("+")[0]


def stages_for(arms: Sequence[str]) -> list[str]:
    """What has to be trained beyond phase 1, in the order of a run."""
    wanted = {arm_stage(arm) for arm in arms}
    return [stage for stage in ("plain", "weighted") if stage in wanted]
