"""What every extractor is, and how images run through one."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from diagan.errors import UserError


class Features(NamedTuple):
    """Of a batch: features float32 [B, F], and logits [B, K] where the network has classes."""

    features: Tensor
    logits: Tensor | None = None

    def cpu(self) -> "Features":
        return Features(self.features.cpu(), None if self.logits is None else self.logits.cpu())


class Extractor(Protocol):
    """Images uint8 [B, C, H, W] -> Features; the same image gives the same in any batch.

    Both are on the CPU, wherever the network is.
    """

    name: str
    dim: int
    version: str  # all that changes the numbers: hash of the weights, resize
    published: bool  # whether its numbers may be compared with published ones

    def __call__(self, images: Tensor) -> Features: ...


def extract(
    extractor: Extractor, images: np.ndarray | Iterable[np.ndarray], batch_size: int = 64
) -> Iterator[Features]:
    """Features batch by batch, in the order of the images: one array [N, C, H, W], or several.

    Only a batch is held at once.
    """
    if batch_size < 1:
        raise UserError(f"batch size {batch_size}: expected at least 1")
    for array in [images] if isinstance(images, np.ndarray) else images:
        expect_images(array)
        for start in range(0, len(array), batch_size):
            # a copy: the array may be a read-only memory map
            batch = torch.from_numpy(np.array(array[start : start + batch_size]))
            with torch.no_grad():
                found = extractor(batch)
            if not torch.isfinite(found.features).all():
                raise UserError(
                    f"the extractor {extractor.name} gave NaN or infinite features for images "
                    f"{start} to {start + len(batch) - 1}; check its weights"
                )
            yield found


def expect_images(images: np.ndarray) -> None:
    """Refuse what is no uint8 [N, C, H, W] with 1 or 3 channels."""
    shape = tuple(images.shape)
    if images.dtype != np.uint8 or images.ndim != 4 or shape[1] not in (1, 3) or 0 in shape[2:]:
        raise UserError(
            f"expected images as uint8 [N, C, H, W] with 1 or 3 channels, got {images.dtype} "
            f"{list(shape)}"
        )


def three_channels(images: Tensor) -> Tensor:
    """Grey images [B, 1, H, W] as red, green and blue alike; colour images as they are."""
    return images.expand(-1, 3, -1, -1)
