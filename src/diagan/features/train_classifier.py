"""Train the paper's classifier, whose weights ship with the package.

python -m diagan.features.train_classifier colored_mnist --data-root DIR --out FILE
"""

import shutil
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro
from torch import Tensor
from torch.nn.functional import cross_entropy

from diagan import checkpoint
from diagan.config import ColoredMnist, MnistFmnist
from diagan.data import as_input, load_dataset
from diagan.data.sources import load_split
from diagan.errors import UserError
from diagan.features.classifier import load_classifier, save_classifier
from diagan.networks.classifier import SIZE, Classifier
from diagan.random import numpy_generator, seed_torch

LR = 1e-3  # the paper's Adam
PEAK, RISE = 3e-3, 0.2  # of the cycle: its highest rate, and the share of the training before it
N_DIGITS = 10
SAY_EVERY = 50


@dataclass(frozen=True)
class Settings:
    """The paper's settings, but for the epochs, 50 there, and with them rate and batch size."""

    dataset: tyro.conf.Positional[Literal["colored_mnist", "mnist_fmnist"]]
    out: Path
    """The file to write."""
    data_root: str | None = None
    """Folder with <name>/<split>.parquet; without it the Hugging Face hub is asked."""
    epochs: int = 5
    minutes: float = inf
    """Stop by then, with the schedule brought forward."""
    schedule: Literal["cycle", "fall", "paper"] = "cycle"
    """cycle: the rate rises for a fifth and falls to nothing, for few epochs; fall: it falls from
    the paper's to nothing, to go on with --start; paper: for 50 epochs."""
    start: Path | None = None
    """The file of an earlier training, to go on from."""
    batch_size: int = 32
    """128 in the paper."""
    seed: int = 0

    @property
    def command(self) -> str:
        more = "" if self.minutes == inf else f" --minutes {self.minutes:g}"
        more += f" --start {self.start.name}" if self.start else ""
        return (
            f"python -m diagan.features.train_classifier {self.dataset} --epochs {self.epochs}"
            f"{more} --schedule {self.schedule} --batch-size {self.batch_size} --seed {self.seed}"
        )

    def rate(self, done: float) -> float:
        """Learning rate when a share of the training is done."""
        if self.schedule == "paper":
            return LR if done < 42 / 50 else LR / 10
        if self.schedule == "fall":
            return LR * (1 - done)
        return PEAK * min(done / RISE, (1 - done) / (1 - RISE))


@dataclass(frozen=True)
class Split:
    """Images uint8 [N, C, 32, 32] and their classes int64 [N]: digit + 10 x group."""

    images: Tensor
    classes: Tensor


def load_classes(settings: Settings) -> tuple[Split, Split]:
    """60,000 training and 10,000 test images, half of them of either group (paper, App. E)."""
    root, colored = settings.data_root, settings.dataset == "colored_mnist"
    kind = ColoredMnist if colored else MnistFmnist
    data = load_dataset(kind(majority=0.5, size=SIZE), seed=settings.seed, root=root)
    second = "mnist" if colored else "fashion_mnist"
    digits, others = (load_split(n, "test", "grey", SIZE, root)[1] for n in ("mnist", second))
    test_labels = np.where(data.heldout_groups == 1, others, digits)
    assert data.labels is not None
    return (
        _split(data.values, data.labels, data.groups),
        _split(data.heldout, test_labels, data.heldout_groups),
    )


def _split(images: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> Split:
    return Split(torch.from_numpy(images), torch.from_numpy(labels + N_DIGITS * groups))


def train(settings: Settings, data: Split) -> tuple[Classifier, float, float]:
    """The trained classifier, and how many epochs and minutes it was trained.

    After each epoch a checkpoint is left beside `out`, from which the same command goes on.
    """
    if settings.epochs < 1 or settings.batch_size < 2 or settings.minutes <= 0:
        raise UserError("expected --epochs from 1, --batch-size from 2, and --minutes over 0")
    net = _first_weights(settings, data.images.shape[1])
    adam = torch.optim.Adam(net.parameters(), lr=LR, fused=True)
    folder = _partial(settings)
    first, minutes = _resume(folder, settings.dataset, net, adam)
    start = time.monotonic() - 60 * minutes
    for epoch in range(first, settings.epochs):
        random = numpy_generator(settings.seed, "classifier/order", epoch)
        order = torch.from_numpy(random.permutation(len(data.images)))
        batches = order.split(settings.batch_size)
        n_seen, n_right = 0, 0
        for i, batch in enumerate(batches):
            epochs, minutes = epoch + i / len(batches), (time.monotonic() - start) / 60
            done = max(epochs / settings.epochs, minutes / settings.minutes)
            if done >= 1:
                return net, epochs, minutes
            adam.param_groups[0]["lr"] = settings.rate(done)
            n_right += _step(net, adam, data.images[batch], data.classes[batch])
            n_seen += len(batch)
            if (i + 1) % SAY_EVERY == 0:
                print(
                    f"epoch {epoch + 1} of {settings.epochs}, batch {i + 1} of {len(batches)}: "
                    f"training accuracy {n_right / n_seen:.2%}, "
                    f"{minutes / epochs:.1f} minutes an epoch",
                    flush=True,
                )
        minutes = (time.monotonic() - start) / 60
        files = {"net": net.state_dict(), "adam": checkpoint.optimiser_tensors(net, adam),
                 "clock": {"minutes": torch.tensor(minutes)}}  # fmt: skip
        checkpoint.save(folder, settings.dataset, epoch + 1, files)
    return net, settings.epochs, minutes


def _first_weights(settings: Settings, channels: int) -> Classifier:
    if settings.start:
        return load_classifier(settings.start)[0]
    with torch.random.fork_rng(devices=[]):
        seed_torch(settings.seed, "classifier/init")
        return Classifier(channels)


def _step(net: Classifier, adam: torch.optim.Optimizer, images: Tensor, classes: Tensor) -> int:
    """One update; how many of the batch were right before it."""
    net.train()
    _, logits = net(as_input(images))
    adam.zero_grad()
    cross_entropy(logits, classes).backward()
    adam.step()
    return int((logits.argmax(dim=1) == classes).sum())


def _partial(settings: Settings) -> Path:
    """Where checkpoints lie until all epochs are done."""
    kind = f"{settings.epochs}-{settings.schedule}-{settings.batch_size}-{settings.seed}"
    return settings.out.with_name(f"{settings.out.name}.{kind}.partial")


def _resume(
    folder: Path, stage: str, net: Classifier, adam: torch.optim.Optimizer
) -> tuple[int, float]:
    """Load the last checkpoint; how many epochs are done, and in how many minutes."""
    steps = checkpoint.steps(folder, stage)
    if not steps:
        return 0, 0.0
    files = checkpoint.load(folder / checkpoint.folder_name(stage, steps[-1]))
    checkpoint.load_network(net, files["net"], str(folder))
    checkpoint.load_optimiser(net, adam, files["adam"])
    return steps[-1], files["clock"]["minutes"].item()


def accuracy(net: Classifier, data: Split, batch_size: int = 256) -> dict[str, float]:
    """Share of right classes, 0 to 1: of all, and of each group."""
    net.eval()
    with torch.no_grad():
        batches = data.images.split(batch_size)
        logits = torch.cat([net(as_input(images))[1] for images in batches])
    right = (logits.argmax(dim=1) == data.classes).double()
    minor = data.classes >= N_DIGITS
    return {
        "accuracy": right.mean().item(),
        "accuracy_major": right[~minor].mean().item(),
        "accuracy_minor": right[minor].mean().item(),
    }


def main() -> None:
    settings = tyro.cli(Settings, description=__doc__)
    try:
        training, test = load_classes(settings)
        net, epochs, minutes = train(settings, training)
        before = [load_classifier(settings.start)[1]["command"]] if settings.start else []
        about = {
            "command": "; then ".join([*before, settings.command]),
            "date": datetime.now(UTC).date().isoformat(),
            "epochs": f"{epochs:.2f}",
            "minutes": f"{minutes:.1f}",
        }
        save_classifier(settings.out, net, about)
        # What is measured is what was written: in float16.
        found = accuracy(load_classifier(settings.out)[0], test)
        save_classifier(settings.out, net, about | {k: f"{v:.4f}" for k, v in found.items()})
    except UserError as error:
        sys.exit(f"error: {error}")
    shutil.rmtree(_partial(settings), ignore_errors=True)
    print(
        f"{epochs:.2f} epochs in {minutes:.1f} minutes; test accuracy over 20 classes "
        f"{found['accuracy']:.2%} (major {found['accuracy_major']:.2%}, minor "
        f"{found['accuracy_minor']:.2%}); wrote {settings.out}"
    )


if __name__ == "__main__":
    main()
