"""The LDRV that the paper predicts from one look at D (Eq. 3 to 5), by Laplace's approximation.

D is taken as a logistic regression on the features under its last layer: its logit is theta^T phi,
with a constant 1 behind the features for the bias. Given the reals and fakes, theta has about a
Gaussian posterior with covariance S_n, and the logit of a sample the variance phi^T S_n phi.
"""

from dataclasses import dataclass
from math import inf

import torch
from torch import Tensor

from diagan.errors import UserError


class Information:
    """The sum over reals and fakes of D (1 - D) phi phi^T, [F + 1, F + 1] in float64.

    Batches are added one at a time, in any order; memory does not grow with their number.
    """

    def __init__(self, n_features: int) -> None:
        self.n = 0  # samples so far
        self.n_features = n_features
        self.matrix = torch.zeros(n_features + 1, n_features + 1, dtype=torch.float64)

    def add(self, logits: Tensor, features: Tensor) -> None:
        """Logits [B] of reals or fakes, and the features under D's last layer [B, F]."""
        phi = with_bias(features, self.n_features)
        if logits.shape != phi.shape[:1]:
            raise UserError(
                f"logits have shape {tuple(logits.shape)} beside features of {len(phi)} samples; "
                "give one logit a sample"
            )
        t = logits.detach().cpu().double()
        if not bool(t.isfinite().all()):
            raise UserError("the discriminator gave NaN or infinite logits: it has diverged")
        # 1 - sigmoid(t) would be 0 from t = 37 on.
        rows = phi * (t.sigmoid() * (-t).sigmoid()).sqrt()[:, None]
        self.matrix.addmm_(rows.T, rows)  # the sum of Eq. 4
        self.n += len(phi)

    def posterior(self, s_0: float | None = None) -> "Posterior":
        """S_n for the prior N(0, s_0 I) of the last layer's weights.

        By default s_0 is 1 / 3F, the variance that PyTorch draws the weights of a linear layer
        with. The paper leaves it open, and ranks of the predicted LDRV depend on it.
        """
        s_0 = 1 / (3 * self.n_features) if s_0 is None else check_prior(s_0)
        inverse = self.matrix.clone()
        inverse.diagonal().add_(1 / s_0)  # Eq. 4: S_n^{-1}
        root, failed = torch.linalg.cholesky_ex(inverse)
        if failed:
            raise UserError(
                f"s_0 {s_0}: some features are so nearly combinations of others that S_n cannot be "
                "computed; give a smaller s_0"
            )
        return Posterior(root, s_0)


@dataclass(frozen=True, eq=False)
class Posterior:
    """S_n of Eq. 4, as the lower triangle L with L L^T = S_n^{-1}."""

    root: Tensor  # L, [F + 1, F + 1]
    s_0: float

    def ldrv(self, features: Tensor) -> Tensor:
        """The predicted LDRV [B] in float64: 0 or more; higher: less settled by the data."""
        phi = with_bias(features, len(self.root) - 1)
        half: Tensor = torch.linalg.solve_triangular(self.root, phi.T, upper=False)  # L^{-1} phi
        return half.square().sum(0)  # Eq. 5: phi^T S_n phi


def check_prior(s_0: float) -> float:
    if not 0 < s_0 < inf:
        raise UserError(f"s_0 {s_0}: expected a positive number, the prior variance of weights")
    return s_0


def with_bias(features: Tensor, n_features: int) -> Tensor:
    """phi: the features in float64 with a constant 1 behind them, [B, F + 1]."""
    if features.dim() != 2 or features.shape[1] != n_features:
        raise UserError(
            f"features have shape {tuple(features.shape)}, expected [B, {n_features}]: what the "
            "discriminator's last, linear layer is given"
        )
    phi = torch.nn.functional.pad(features.detach().cpu().double(), (0, 1), value=1.0)
    if not bool(phi.isfinite().all()):
        raise UserError("the discriminator gave NaN or infinite features: it has diverged")
    return phi
