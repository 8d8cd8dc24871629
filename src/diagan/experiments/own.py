"""The settings for a person's own images."""

from dataclasses import replace

from diagan.config import DCGAN, Config, ImageFolder, Optim, Penalty, Record, Score, StyleGAN2
from diagan.errors import UserError


def for_folder(path: str, size: str | None = None) -> Config:
    """A person's own images: the robust choices of FACTS 12 instead of the paper's.

    The side is the nearest of 32, 64, 128 and 256 unless given, and the network follows from it.
    """
    side = int(size) if size and size.isdecimal() else _side_of(path)
    width = 0.5 if side == 64 else 1.0  # D has four times the channels at twice the side
    small = Config(
        data=ImageFolder(path=path, size=side),
        network=DCGAN(width=width, dropout=0.0, headroom=0.02, d_norm="spectral"),
        steps=10_000,
        optim=Optim(lr=2e-4, betas=(0.5, 0.9)),
        record=Record(every=50),
        score=Score(centre="median", clip="floor"),
    )
    if side <= 64:
        return small
    return replace(
        small,
        network=StyleGAN2(width=0.25),
        batch_size=16,
        optim=Optim(lr=2e-3, betas=(0.0, 0.99), decay="none"),
        penalty=Penalty(r1=1.0, every=16),
    )


def _side_of(path: str) -> int:
    """32 where the images cannot be found or read: loading them says why."""
    from diagan.data.folder import list_images, nearest_side

    try:
        return nearest_side(list_images(path))
    except UserError:
        return 32
