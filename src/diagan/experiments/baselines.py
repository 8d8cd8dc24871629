"""The methods that the paper compares with, each on the sets where it does (FACTS 4).

They need no diagnosis: one arm, trained to the end. DRS alone is no training of its own but
`diagan evaluate RUN --arms plain+drs`.
"""

from collections.abc import Sequence
from dataclasses import replace

from diagan.config import Config, Inclusive, Methods, Record, TopK
from diagan.experiments import images, mnist
from diagan.experiments.common import Experiment


def gold(base: Config) -> Config:
    """Plain phase 1, then GOLD, on uniform data."""
    return replace(base, methods=replace(base.methods, gold="published"), weighted_arm=False)


def throughout(base: Config, methods: Methods) -> Config:
    """From the first step to the last, without a second phase or a record."""
    return replace(base, methods=methods, phase1_share=1.0, record=Record(mode="none"))


def on(experiment: Experiment, names: Sequence[str], table: str) -> list[Experiment]:
    base, m = experiment.config, experiment.config.methods
    configs = {
        "gold": gold(base),
        "topk": throughout(base, replace(m, topk=TopK(floor=0.5, decay=0.99))),
        "pacgan": throughout(base, replace(m, packing=2)),
        "inclusive": throughout(base, replace(m, inclusive=Inclusive(10.0, 4.0))),
    }
    words = {"gold": "GOLD", "topk": "Top-k", "pacgan": "PacGAN", "inclusive": "Inclusive GAN"}
    return [
        Experiment(
            f"{experiment.name}_{name}", f"{experiment.about}, {words[name]}", table,
            configs[name], experiment.needs,
        )
        for name in names
    ]  # fmt: skip


LARGE = [e for e in images.EXPERIMENTS if e.name.endswith(("_sngan", "_ssgan"))]
EXPERIMENTS = (
    *(
        b
        for e in mnist.EXPERIMENTS
        for b in on(e, ("gold", "topk", "pacgan", "inclusive"), "Table 5")
    ),
    *(b for e in LARGE for b in on(e, ("gold", "topk"), "Table 2")),
    *on(images.FFHQ_STYLEGAN2, ("gold",), "Table 3"),
)
