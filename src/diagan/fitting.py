"""Training a small network on images in memory: shuffled batches, and a seed that says it all."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from diagan.errors import UserError
from diagan.random import seed_torch
from diagan.sampling import Indices, UniformStream

Images = NDArray[np.uint8]  # [N, C, H, W]
OnEpoch = Callable[[int, float], None]  # how many epochs are done, mean loss of the last
Net = TypeVar("Net", bound=nn.Module)


def check_images(images: NDArray[Any]) -> None:
    """Refuse what is not uint8 [N, C, H, W], grey or RGB."""
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1] not in (1, 3):
        raise UserError(
            f"images are {images.dtype} of shape {images.shape}: "
            "give uint8 [N, C, H, W] with 1 or 3 channels"
        )
    if 0 in images.shape:
        raise UserError(f"there are no images (shape {images.shape}): give at least one")


def initialised(build: Callable[[], Net], seed: int) -> Net:
    """A network whose first weights depend on the seed alone."""
    with torch.random.fork_rng():
        seed_torch(seed, "fitting/init")
        return build()


def fit(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[Indices], Tensor],
    n: int,
    *,
    epochs: int,
    batch_size: int,
    seed: int,
    on_epoch: OnEpoch | None = None,
) -> None:
    """Minimise loss(indices) over shuffled batches of n samples; leaves the net in eval mode.

    Batches are never partial, they run on into the next permutation: BatchNorm cannot do with
    one sample. Global randomness is left as it was.
    """
    if n < 2 or epochs < 1:
        raise UserError(f"{n} images for {epochs} epochs: training needs at least 2, and 1 epoch")
    batch_size = min(batch_size, n)
    n_batches = -(-n // batch_size)
    stream = UniformStream(n, seed, "fitting/order")
    net.train()
    with torch.random.fork_rng():
        for epoch in range(epochs):
            total = 0.0
            for step in range(epoch * n_batches, (epoch + 1) * n_batches):
                seed_torch(seed, "fitting/noise", step)  # dropout
                value = loss(stream.take(step * batch_size, batch_size))
                optimizer.zero_grad()
                torch.autograd.backward(value)
                optimizer.step()
                total += value.item()
            if on_epoch:
                on_epoch(epoch + 1, total / n_batches)
    net.eval()
