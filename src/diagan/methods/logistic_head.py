"""A logistic head on D's features (paper, Section 5.2): a log-density ratio, whatever D plays."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diagan.game import Parts, Term, Turn
from diagan.losses import non_saturating

NAME = "logistic"


@dataclass(frozen=True)
class LogisticHead:
    """D's features as they are, and a linear layer on them that plays the logistic loss (Eq. 3).

    No gradient passes to the features: the game is played as without the head, bit for bit.
    """

    on: bool

    def parts(self) -> Parts:
        if not self.on:
            return Parts()
        return Parts(d_terms=(Term("logistic head", logistic_loss),), heads={NAME: 1})


def logistic_loss(turn: Turn) -> Tensor:
    """The head's own loss (Eq. E.1) on the features that D's loss has computed."""
    assert turn.real_features is not None and turn.fake_features is not None
    head = turn.d.get_submodule(f"heads.{NAME}")
    with torch.autocast(turn.fake.device.type, enabled=False):
        real = head(turn.real_features).squeeze(1)
        fake = head(turn.fake_features).squeeze(1)
    return non_saturating.d_real(real).mean() + non_saturating.d_fake(fake).mean()
