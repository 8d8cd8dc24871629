"""Top-k training (Sinha et al. 2020): G learns from the fakes that D likes best, and no others."""

from dataclasses import dataclass

import torch
from torch import Tensor

from diagan.game import Parts, Turn


@dataclass(frozen=True)
class TopK:
    """Of a batch the best int(rate * n) count; the rate falls with each pass of generator steps.

    A step of G counts as a batch of the data, whatever n_dis is (FACTS 4).
    """

    floor: float
    decay: float
    steps_per_pass: int

    def parts(self) -> Parts:
        return Parts(g_weights=(self.weigh,)) if self.floor < 1 else Parts()

    def rate(self, step: int) -> float:
        return max(self.decay ** (step // self.steps_per_pass), self.floor)

    def weigh(self, logits: Tensor, turn: Turn) -> Tensor:
        """n / k on the k largest logits [n] and 0 on the rest: the mean over n is that over k."""
        n = len(logits)
        k = max(int(self.rate(turn.step) * n), 1)
        return torch.zeros_like(logits).index_fill(0, logits.topk(k).indices, n / k)
