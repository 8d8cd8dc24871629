"""What `diagan demo` runs: minutes on two cores, with data that ships in the package.

A small fully connected GAN. A gradient penalty keeps its D smooth, so that what D says of the rare
digits reaches G, and the logit is a density ratio to reject by (docs/findings.md).
"""

from diagan.config import MLP, Config, DemoDigits, Optim, Penalty, Record, Score
from diagan.experiments.common import Experiment

EXPERIMENTS = (
    Experiment(
        "demo",
        "red digits of 16x16 and 4 % green ones, from the package",
        "",
        Config(
            data=DemoDigits(n=12_000, majority=0.96),
            network=MLP(width=256, latent=32),
            steps=4_000,
            phase1_share=0.3,
            batch_size=64,
            optim=Optim(lr=1e-3, betas=(0.5, 0.9), decay="linear"),
            penalty=Penalty(r1=0.3),
            record=Record(every=10, window=50),
            score=Score(centre="median", clip="floor", ratio=8.0),
            n_evaluate=5_000,
            checkpoint_every=500,
            grid_every=500,
        ),
    ),
)
