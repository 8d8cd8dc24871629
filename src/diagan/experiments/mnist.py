"""The two imbalanced digit sets (paper, App. F; FACTS 1.4 to 1.6)."""

from diagan.config import DCGAN, ColoredMnist, Config, MnistFmnist, Optim, Record, Score
from diagan.experiments.common import Experiment

TABLES = "Tables 1 and 5, Figure 1e"


def config(data: ColoredMnist | MnistFmnist, k: float, mode: str) -> Config:
    return Config(
        data=data,
        network=DCGAN(),
        steps=20_000,
        phase1_share=0.75,
        batch_size=64,
        optim=Optim(lr=1e-4, betas=(0.5, 0.9), decay="linear"),
        record=Record(mode=mode, every=100, window=50),  # type: ignore[arg-type]
        score=Score(k=k),
    )


def colored(percent: int) -> Experiment:
    # The published code records this set, and only this one, with D in train mode.
    made = config(ColoredMnist(majority=percent / 100), k=3.0, mode="train")
    about = f"red digits and {100 - percent} % green ones"
    return Experiment(f"colored_mnist_{percent}", about, TABLES, made)


def mixed(percent: int) -> Experiment:
    made = config(MnistFmnist(majority=percent / 100), k=6.0, mode="eval")
    about = f"digits and {100 - percent} % clothes"
    return Experiment(f"mnist_fmnist_{percent}", about, TABLES, made)


EXPERIMENTS = tuple(make(percent) for make in (colored, mixed) for percent in (99, 95, 90))
