"""GOLD (Mo et al. 2019): D looks harder at the fakes that it takes for real."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from diagan.game import Parts, Turn


@dataclass(frozen=True)
class Gold:
    """D's fake terms, weighed by D's own logit of each fake.

    published: the logit as it is, so that a fake with a negative one pushes D's logit up (FACTS 4).
    normalised: its positive part, divided by the mean; where no logit is positive, all weigh one.
    """

    weights: Literal["published", "normalised"]

    def parts(self) -> Parts:
        return Parts(d_fake_weights=(self.weigh,))

    def weigh(self, logits: Tensor, turn: Turn) -> Tensor:
        # Further critics stay as they are: rejection needs their log-density ratio.
        if turn.player != "D":
            return torch.ones_like(logits)
        return logits if self.weights == "published" else normalised(logits)


def normalised(logits: Tensor) -> Tensor:
    """Weights [n], at least 0, with mean 1."""
    positive = logits.relu()
    total = positive.sum()
    return torch.where(total > 0, positive * len(logits) / total, torch.ones_like(logits))
