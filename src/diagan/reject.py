"""Discriminator rejection sampling (Eq. F.5): corrects a generator by its discriminator's LDR."""

import inspect
import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from diagan.errors import UserError
from diagan.random import generator


def rejection_logit(ldr: Tensor, ldr_max: float, epsilon: float = 1e-6) -> Tensor:
    """F-hat of Eq. F.5 before gamma is taken off: any real number, grows with ldr.

    Without epsilon sigmoid(F) is exp(ldr - ldr_max), plain rejection sampling. In float64. An ldr
    over ldr_max counts as ldr_max.
    """
    a = (ldr.double() - ldr_max).clamp(max=0)
    return a - torch.log(-torch.expm1(a - epsilon))  # Eq. F.5: a - log(1 - e^(a - epsilon))


def acceptance_probability(
    ldr: Tensor, ldr_max: float, gamma: float, epsilon: float = 1e-6
) -> Tensor:
    """Probability to keep a sample: 0 to 1, grows with ldr and falls with gamma."""
    return torch.sigmoid(rejection_logit(ldr, ldr_max, epsilon) - gamma)


def budget_level(ldr: Tensor, budget: float) -> float:
    """The level whose `budget_acceptance` keeps one of `budget` samples, or more if it can do so
    without a bias; between the least and the largest ldr: budget 1 keeps all of these."""
    low, high = float(ldr.min()), float(ldr.max())
    for _ in range(64):  # halvings, down to the precision of float64
        middle = (low + high) / 2
        is_too_low = float(budget_acceptance(ldr, middle).mean()) > 1 / budget
        low, high = (middle, high) if is_too_low else (low, middle)
    return high


def budget_acceptance(ldr: Tensor, level: float) -> Tensor:
    """min(1, e^(ldr - level)): of all ways to keep as many, the one that ends nearest to the data
    by any f-divergence (Verine et al. 2023, OBRS). At the largest ldr it is plain rejection."""
    return torch.exp((ldr.double() - level).clamp(max=0))


class RejectionSampler:
    """Draws from any generator, keeping a sample with a probability that grows with its LDR.

    `generate(n, generator)` makes n samples from that generator's randomness, `ldr` gives each its
    discriminator logit; both networks should be in eval mode. The largest logit is looked for in
    a burn-in before the first draw, and raised when a larger one turns up. gamma is a percentile
    of F: of each batch, which makes acceptance rank-like within it (the published code), or of
    the burn-in. The higher the percentile, the fewer are kept. With a `budget`, the number of
    proposals for a kept sample, neither is used: they are spent as well as can be.
    """

    def __init__(
        self,
        generate: Callable[[int, torch.Generator], Tensor],
        ldr: Callable[[Tensor], Tensor],
        *,
        batch_size: int = 256,
        burn_in: int = 12_800,
        percentile: float = 80.0,
        epsilon: float = 1e-6,
        gamma: Literal["batch", "global"] = "batch",
        budget: float | None = None,
        seed: int = 0,
        max_proposals_per_sample: int = 1000,
    ) -> None:
        if batch_size < 1 or burn_in < 1:
            raise UserError(f"batch size {batch_size}, burn-in {burn_in}: expected at least 1 each")
        if not 0 <= percentile <= 100:
            raise UserError(f"percentile {percentile}: expected between 0 and 100")
        if gamma not in ("batch", "global"):
            raise UserError(f"gamma {gamma!r}: expected batch or global")
        if budget is not None and not 1 <= budget < math.inf:
            raise UserError(f"budget {budget}: expected 1 proposal for a kept sample, or more")
        try:
            inspect.signature(generate).bind(batch_size, None)
        except TypeError:
            raise UserError(
                "`generate` is called as generate(n, generator): n samples, [n, ...], from latents "
                "drawn with that torch.Generator, torch.randn(n, n_latent, generator=generator)"
            ) from None
        except ValueError:  # a builtin tells nothing of itself
            pass
        self._generate, self._ldr = generate, ldr
        self._batch_size, self._burn_in = batch_size, burn_in
        self._percentile, self._epsilon, self._gamma = percentile, epsilon, gamma
        self._budget = budget
        self._seed = seed
        self._max_proposals_per_sample = max(max_proposals_per_sample, 10 * math.ceil(budget or 1))
        self._n_batches = 0  # so far, burn-in included: the step of their randomness
        self._burn_in_ldr: Tensor | None = None  # [burn_in], float64
        self._queue: list[Tensor] = []  # accepted, not yet handed out
        self.ldr_max = -math.inf
        self.proposals = 0  # after the burn-in
        self.accepted = 0

    @property
    def acceptance_rate(self) -> float:
        """Accepted / proposed since the burn-in, 0 to 1; NaN before the first draw."""
        return self.accepted / self.proposals if self.proposals else math.nan

    @property
    def mean_ratio(self) -> float:
        """Mean of e^LDR over the burn-in, 0 or more: 1 where the LDR is right, near 0 where D knows
        the samples by their flaws and cannot correct their shares; NaN before the first draw."""
        if self._burn_in_ldr is None:
            return math.nan
        return float(self._burn_in_ldr.clamp(max=700).exp().mean())  # finite in float64

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """The next n accepted samples, [n, ...]; sample(30) and sample(70) make sample(100)."""
        if n < 1:
            raise UserError(f"{n} samples were asked for; expected at least 1")
        if self._burn_in_ldr is None:
            n_batches = math.ceil(self._burn_in / self._batch_size)
            self._burn_in_ldr = torch.cat([self._propose()[1] for _ in range(n_batches)])
        limit = self.proposals + self._max_proposals_per_sample * n
        while sum(map(len, self._queue)) < n:
            if self.proposals >= limit:
                raise UserError(
                    f"{self._max_proposals_per_sample * n} proposals did not give {n} samples "
                    f"(acceptance rate {self.acceptance_rate:.2%}): lower the percentile or "
                    "the budget, use gamma 'batch', or check that the discriminator fits the "
                    "generator"
                )
            self._queue.append(self._accept_batch(self._burn_in_ldr))
        accepted = torch.cat(self._queue)
        self._queue = [accepted[n:]]
        return accepted[:n]

    def _propose(self) -> tuple[Tensor, Tensor]:
        """The next batch and its LDR, [B, ...] and [B]; ldr_max is raised before it is used."""
        source = generator(self._seed, "reject/propose", self._n_batches)
        samples = self._generate(self._batch_size, source)
        if not isinstance(samples, Tensor):
            raise UserError(f"`generate` returned a {type(samples).__name__}; expected a tensor")
        ldr = self._ldr(samples).detach().cpu().double().flatten()
        if not len(samples) == len(ldr) == self._batch_size:
            raise UserError(
                f"{self._batch_size} samples were asked for, {len(samples)} came with {len(ldr)} "
                "logits; `generate` must return as many as asked, and `ldr` one for each"
            )
        if not bool(torch.isfinite(ldr).all()):
            raise UserError(
                "the discriminator gave NaN or infinite logits for generated samples; "
                "use a checkpoint from before the training diverged"
            )
        self._n_batches += 1
        self.ldr_max = max(self.ldr_max, float(ldr.max()))
        return samples, ldr

    def _accept_batch(self, burn_in_ldr: Tensor) -> Tensor:
        uniforms = generator(self._seed, "reject/accept", self._n_batches)
        samples, ldr = self._propose()
        p = self._probability(ldr, burn_in_ldr)
        kept = torch.rand(len(p), generator=uniforms, dtype=torch.float64) < p
        self.proposals += len(p)
        self.accepted += int(kept.sum())
        return samples[kept.to(samples.device)]

    def _probability(self, ldr: Tensor, burn_in_ldr: Tensor) -> Tensor:
        if self._budget is not None:
            return budget_acceptance(ldr, budget_level(burn_in_ldr, self._budget))
        # The burn-in's F is taken anew with the present maximum, on which F depends.
        reference = ldr if self._gamma == "batch" else burn_in_ldr
        f = rejection_logit(reference, self.ldr_max, self._epsilon)
        gamma = float(torch.quantile(f, self._percentile / 100))
        return acceptance_probability(ldr, self.ldr_max, gamma, self._epsilon)
