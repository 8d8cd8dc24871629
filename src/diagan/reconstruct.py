"""Reconstruction error of real images by an autoencoder trained on generated ones (Eq. E.9)."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import mse_loss

from diagan.data import as_input
from diagan.device import best_device, best_precision, device_of
from diagan.errors import UserError
from diagan.fitting import Images, OnEpoch, check_images, fit, initialised
from diagan.metrics.reconstruction import reconstruction_error
from diagan.networks.autoencoder import Autoencoder
from diagan.networks.common import settle
from diagan.sampling import Indices

BATCH = 256
N_SETTLING = 10_000  # images over which BatchNorm's statistics are taken


def train_autoencoder(
    fake: Images,
    *,
    seed: int,
    epochs: int = 50,
    batch_size: int = 128,
    on_epoch: OnEpoch | None = None,
) -> Autoencoder:
    """Learn to rebuild generated images; the published code's settings (FACTS 7.1), in bfloat16
    where the processor has it. `settle_on` the same images before it is shown any."""
    check_images(fake)
    device = best_device()
    short = best_precision(device) == "bfloat16"
    net = initialised(lambda: Autoencoder(fake.shape[1:]), seed).to(device)
    if device == "cpu" and not short:  # a little quicker: benchmarks/looking.py
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-7, weight_decay=5e-4, fused=True)

    def loss(indices: Indices) -> torch.Tensor:
        x = as_input(torch.from_numpy(fake[indices]).to(device))
        with torch.autocast(device, torch.bfloat16, enabled=short):
            rebuilt = net(x)
        return mse_loss(rebuilt.float(), x)

    fit(net, adam, loss, len(fake), epochs=epochs, batch_size=batch_size, seed=seed,
        on_epoch=on_epoch)  # fmt: skip
    return net


def settle_on(net: Autoencoder, fake: Images, batch_size: int = 128) -> None:
    """Take BatchNorm's statistics anew over generated images; a departure from the published code.

    Weight decay keeps the weights so small that an update changes them by a third. The statistics
    kept while training lag behind, and errors by them say more of the last updates than of the
    images (results/autoencoder.md).
    """
    size = min(batch_size, len(fake))
    starts = range(0, min(len(fake), N_SETTLING) - size + 1, size)
    parts = (torch.from_numpy(np.array(fake[i : i + size])) for i in starts)
    settle(net, (as_input(part.to(device_of(net))) for part in parts))


def rebuild(net: Autoencoder, images: Images) -> NDArray[np.float32]:
    """What the autoencoder makes of uint8 images, in [-1, 1], of the same shape."""
    check_images(images)
    if images.shape[1:] != net.shape:
        raise UserError(
            f"images of {images.shape[1:]} for an autoencoder of {net.shape}: give real images of "
            "the size and channels of the generated ones"
        )
    net.eval()
    with torch.no_grad():
        parts = (np.array(images[i : i + BATCH]) for i in range(0, len(images), BATCH))
        batches = (torch.from_numpy(part).to(device_of(net)) for part in parts)
        return np.concatenate([net(as_input(batch)).cpu().numpy() for batch in batches])


def errors(net: Autoencoder, real: Images) -> NDArray[np.float64]:
    """The reconstruction error of each real image, [N]; 0 is perfect, more is worse."""
    check_images(real)
    batches = (real[i : i + BATCH] for i in range(0, len(real), BATCH))
    return np.concatenate(
        [reconstruction_error(real=batch, rebuilt=rebuild(net, batch)) for batch in batches]
    )
