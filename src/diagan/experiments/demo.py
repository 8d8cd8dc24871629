"""What `diagan demo` runs: minutes on two cores, with data that ships in the package.

A DCGAN made for it. D has spectral norm instead of BatchNorm: it judges images, not batches, so
that the plain GAN drops the green digits, and the critic's logit is fit to reject by. G's tanh
has a little headroom, and phase 2 begins while the learning rate is high: out of a saturated tanh
no colour comes back (docs/method.md).
"""

from diagan.config import DCGAN, Config, DemoDigits, Optim, Record, Score
from diagan.experiments.common import Experiment

EXPERIMENTS = (
    Experiment(
        "demo",
        "red digits of 16x16 and 4 % green ones, from the package",
        "",
        Config(
            data=DemoDigits(n=12_000, majority=0.96),
            network=DCGAN(width=0.4, latent=32, dropout=0.0, headroom=0.01, d_norm="spectral"),
            steps=4_000,
            phase1_share=0.35,
            batch_size=64,
            optim=Optim(lr=7e-4, betas=(0.5, 0.9), decay="linear"),
            record=Record(every=10, window=50),
            score=Score(centre="median", clip="floor", ratio=8.0),
            n_evaluate=5_000,
            checkpoint_every=500,
            grid_every=500,
        ),
    ),
)
