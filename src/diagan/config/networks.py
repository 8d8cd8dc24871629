"""Networks, by the settings that each needs."""

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class MLP:
    """The paper's 2-D network (Table A1), or one of its kind for small images."""

    kind: ClassVar[str] = "mlp"
    width: int = 512
    latent: int = 2
    init_std: float | None = None  # None: PyTorch's default; the published code has 0.02


@dataclass(frozen=True)
class DCGAN:
    """The paper's DCGAN (Tables A2, A3); `width` scales every layer."""

    kind: ClassVar[str] = "dcgan"
    width: float = 1.0
    latent: int = 100
    dropout: float = 0.5
    headroom: float = 0.0
    """How far G's tanh reaches beyond [-1, 1]; with none, black pixels have no gradient left."""
    d_norm: Literal["batch", "spectral"] = "batch"
    """D's normalisation: the paper's, or one that leaves a logit to its own image."""


@dataclass(frozen=True)
class SNGAN:
    """The paper's SNGAN ResNets for 32 and 64 pixels; `width` scales every layer."""

    kind: ClassVar[str] = "sngan"
    sizes: ClassVar[tuple[int, ...]] = (32, 64)
    width: float = 1.0
    latent: int = 128


@dataclass(frozen=True)
class StyleGAN2:
    """StyleGAN2 for a power-of-two side from 32 to 1024; `width` scales every convolution."""

    kind: ClassVar[str] = "stylegan2"
    sizes: ClassVar[tuple[int, ...]] = (32, 64, 128, 256, 512, 1024)
    width: float = 1.0
    latent: int = 512
    mixing: float = 0.9
    """How often in training later layers have the styles of a second latent."""


NetworkConfig = MLP | DCGAN | SNGAN | StyleGAN2
