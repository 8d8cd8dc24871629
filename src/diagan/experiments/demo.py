"""What `diagan demo` runs: minutes on two cores, with data that ships in the package."""

from diagan.config import DCGAN, Config, DemoDigits, Optim, Record, Score
from diagan.experiments.common import Experiment

EXPERIMENTS = (
    Experiment(
        "demo",
        "red digits of 16x16 and 3 % green ones, from the package",
        "",
        Config(
            data=DemoDigits(),
            network=DCGAN(width=0.5, latent=32),
            steps=4_000,
            phase1_share=0.75,
            batch_size=64,
            optim=Optim(lr=2e-4, betas=(0.5, 0.9), decay="linear"),
            record=Record(every=20, window=50),
            score=Score(centre="median", clip="floor"),
            n_evaluate=5_000,
            checkpoint_every=500,
            grid_every=250,
        ),
    ),
)
