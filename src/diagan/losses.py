"""GAN losses on logits: per example, unreduced; beside each, what its logit says of the LDR."""

from collections.abc import Callable
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Loss:
    """The game's three terms, each a map of logits [B] to losses [B]."""

    d_real: Callable[[Tensor], Tensor]
    d_fake: Callable[[Tensor], Tensor]
    g: Callable[[Tensor], Tensor]
    is_ldr: bool  # whether the optimal logit is log p_data / p_g (Eq. 1)


# Eq. E.1, E.2. The published code adds 1e-8 inside G's logarithm, which kills the gradient for
# logits below -18; softplus does not.
non_saturating = Loss(
    d_real=lambda logits: F.softplus(-logits),
    d_fake=F.softplus,
    g=lambda logits: F.softplus(-logits),
    is_ldr=True,
)

# Eq. E.3, E.4. The optimal output is the sign of the LDR, not its value (Section 5.2).
hinge = Loss(
    d_real=lambda logits: F.relu(1 - logits),
    d_fake=lambda logits: F.relu(1 + logits),
    g=lambda logits: -logits,
    is_ldr=False,
)

LOSSES = {"non_saturating": non_saturating, "hinge": hinge}
