"""What the networks share: D's output, its linear heads, a quick dropout, settled BatchNorm."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

N_SETTLING, SETTLING_BATCH = 10, 64
N_REFERENCES = 3  # images beside which a D with batch statistics sees each image in eval mode


class Scores(NamedTuple):
    """What D says of a batch: logits [B], features under its last layer [B, F], further heads."""

    logits: Tensor
    features: Tensor
    heads: dict[str, Tensor]


class Discriminator(nn.Module):
    """A feature trunk, a linear layer to the logit, and a linear layer for each further head.

    `linear` makes these layers, for networks whose own are normalised or scaled; a head with one
    output is a logit of its own and must be free to choose its slope.
    """

    def __init__(
        self, trunk: nn.Module, n_features: int, heads: Mapping[str, int],
        linear: Callable[[int, int], nn.Module] = nn.Linear,
    ) -> None:  # fmt: skip
        super().__init__()
        self.trunk = trunk
        self.logit = linear(n_features, 1)
        self.heads = nn.ModuleDict(
            {name: (linear if n > 1 else nn.Linear)(n_features, n) for name, n in heads.items()}
        )

    def forward(self, x: Tensor) -> Scores:
        features = self.trunk(x)
        # The logit is what is recorded and exponentiated: always float32, whatever the autocast.
        with torch.autocast(x.device.type, enabled=False):
            features = features.float()
            logits = self.logit(features).squeeze(1)
            return Scores(logits, features, {n: head(features) for n, head in self.heads.items()})

    def set_references(self, images: Tensor) -> None:
        """Take N_REFERENCES images of the data; only a D with batch statistics needs them."""


class Chain(nn.Module):
    """Discriminators whose ratios are links: log p_data / p_s and log p_s / p_g add up to
    log p_data / p_g. As features it has their logits."""

    def __init__(self, *links: nn.Module) -> None:
        super().__init__()
        self.links = nn.ModuleList(links)

    def forward(self, x: Tensor) -> Scores:
        logits = torch.stack([link(x).logits for link in self.links], dim=1)  # [B, links]
        return Scores(logits.sum(dim=1), logits, {})


class Dropout(nn.Module):
    """Elementwise dropout whose masks come from random bytes, eight to a 64-bit draw.

    On a CPU `bernoulli_` is a quarter of the DCGAN's step. The rate is rounded to 1/256.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.threshold = min(round(p * 256), 255)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.threshold == 0:
            return x
        draws = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device)
        draws.random_(-(2**63), None)  # the full range of 64 bits
        dense = torch.empty_like(x, dtype=torch.uint8).stride()  # in x's own memory format
        bits = draws.view(torch.uint8)[: x.numel()].as_strided(x.shape, dense)
        keep = bits >= self.threshold
        # One factor of x's own type: a product with a bool is cast anew on the way back.
        return x * (keep.to(x.dtype) * (256 / (256 - self.threshold)))


@torch.no_grad()
def settle(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Take BatchNorm's statistics anew over some batches, and leave the net in eval mode.

    What was kept while training is of weights that the net no longer has.
    """
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
    if norms:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the mean of all batches
        net.train()
        for batch in batches:
            net(batch)
    net.eval()


def settle_generator(g: nn.Module, n_latent: int) -> None:
    """For averaged weights: G has kept the statistics of others."""
    source, device = torch.Generator().manual_seed(0), next(g.parameters()).device
    shape = (SETTLING_BATCH, n_latent)
    settle(g, (torch.randn(shape, generator=source).to(device) for _ in range(N_SETTLING)))
