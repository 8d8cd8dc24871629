"""Points in two dimensions (paper, App. F; FACTS 1.2 and 1.3). Diagnosis only.

A record an epoch: 10 steps of 1,024, or 79 steps of 128, as a loader that keeps its last partial
batch would count them.
"""

from diagan.config import MLP, Config, Gaussians25, Optim, Record, SingleGaussian
from diagan.experiments.common import Experiment


def single(sigma: float) -> Experiment:
    config = Config(
        data=SingleGaussian(sigma=sigma),
        network=MLP(),
        steps=2_000,
        phase1_share=1.0,
        batch_size=1_024,
        optim=Optim(lr=1e-3, betas=(0.5, 0.9), decay="none"),
        record=Record(every=10, start=10, window=200),
        log_every=20,
    )
    about = f"one Gaussian, standard deviation {sigma:g}; minor: further than 7 from the centre"
    return Experiment(f"gaussian_{sigma:g}", about, "Table 1, Figure 1e", config)


GRID = Experiment(
    "gaussians25",
    "25 Gaussians on a grid",
    "Figure 2",
    Config(
        data=Gaussians25(),
        network=MLP(),
        steps=23_700,
        phase1_share=1.0,
        batch_size=128,
        optim=Optim(lr=2e-4, betas=(0.5, 0.999), decay="none"),
        record=Record(every=79, start=79, window=50),
        log_every=79,
        checkpoint_every=2_000,
    ),
)

EXPERIMENTS = (*(single(sigma) for sigma in (3.0, 2.5, 2.0)), GRID)
