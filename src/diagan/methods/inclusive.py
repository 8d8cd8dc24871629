"""Inclusive GAN (Yu et al. 2020): every training image has a fake of its own, the nearest that was
found, and G is drawn to make the two more alike.

As its paper means it: gradients flow through the features, which the published code cuts (FACTS 4).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from diagan.game import Moment, Observer, Parts, Term, Turn

JITTER = 0.05  # on a matched latent whenever it is used
EPSILON = 1e-6  # inside the distance, whose slope at zero it bounds
CHUNK = 2**24  # numbers held of candidates' features at a time: 64 MiB
ROWS = 1_024  # training images compared with them at a time


def pixels(images: Tensor) -> Tensor:
    """Features [B, F] whose distance is the root mean square over the pixels, at any size."""
    return images.flatten(1) / float(images[0].numel() ** 0.5)


@dataclass(frozen=True)
class Inclusive:
    """Latents [N, nz] of the nearest fakes, searched anew every so many steps, and two G terms.

    Each step takes two batches of reals at `reals(position)`: indices and images. The first search
    is after the first step, which therefore goes without.
    """

    weight: float
    interpolation: float
    n_candidates: int
    every: int
    batch_size: int
    values: Tensor  # the dataset, as it is stored
    as_input: Callable[[Tensor], Tensor]
    reals: Callable[[int], tuple[Tensor, Tensor]]
    n_latent: int
    features: Callable[[Tensor], Tensor] = pixels

    def parts(self) -> Parts:
        if self.weight == self.interpolation == 0:
            return Parts()
        latents = torch.zeros(len(self.values), self.n_latent)
        n_searches = torch.zeros((), dtype=torch.int64)
        pairing = Pairing(self, latents)

        def look(moment: Moment) -> None:
            if n_searches == 0 or moment.step % self.every == 0:
                latents.copy_(self.search(moment.turns[-1], moment.step))
                n_searches.add_(1)

        def once_searched(term: Callable[[Turn], Tensor]) -> Callable[[Turn], Tensor]:
            return lambda turn: min(int(n_searches), 1) * term(turn)

        return Parts(
            g_terms=(
                Term("reconstruction", once_searched(pairing.reconstruction), self.weight),
                Term("interpolation", once_searched(pairing.between), self.interpolation),
            ),
            observers=(Observer("matching", look),),
            state={"inclusive.latents": latents, "inclusive.n_searches": n_searches},
        )

    def search(self, turn: Turn, step: int) -> Tensor:
        """Of fresh candidates the latent nearest to each training image [N, nz]: exact, in chunks,
        the same on every process."""
        draws = turn.draws.generator("inclusive/candidates", step)
        found = torch.zeros(len(self.values), self.n_latent)
        least = torch.full((len(self.values),), torch.inf)
        # In train mode, and in whole batches of the game's size: as G's images are in training.
        n_batches = ceil(self.n_candidates / self.batch_size)
        n_features = self.real_features(slice(1), turn.latents.device).shape[1]
        n_at_once = max(CHUNK // (n_features * self.batch_size), 1)
        with leaving_no_trace(turn.g):
            for start in range(0, n_batches, n_at_once):
                n = min(n_at_once, n_batches - start)
                latents = torch.randn(n, self.batch_size, self.n_latent, generator=draws)
                images = (turn.g(z).float() for z in latents.to(turn.latents.device))
                candidates = torch.cat([self.features(batch) for batch in images])
                self.compare(candidates, latents.flatten(0, 1), least, found)
        return found

    def real_features(self, rows: slice, device: torch.device) -> Tensor:
        """Of some of the training images [B, F]."""
        return self.features(self.as_input(self.values[rows].to(device)))

    def compare(self, candidates: Tensor, latents: Tensor, least: Tensor, found: Tensor) -> None:
        """Keep, in place, what is nearer than the nearest so far."""
        squared = candidates.square().sum(dim=1)
        for start in range(0, len(self.values), ROWS):
            rows = slice(start, start + ROWS)
            real = self.real_features(rows, candidates.device)
            # |c - r|^2 but for |r|^2, which is the same for every candidate
            distance, index = (squared - 2 * real @ candidates.T).cpu().min(dim=1)
            nearer = distance < least[rows]
            least[rows] = torch.where(nearer, distance, least[rows])
            found[rows] = torch.where(nearer[:, None], latents[index], found[rows])


@dataclass(frozen=True)
class Pairing:
    """The two terms of G, on reals and the latents that belong to them."""

    how: Inclusive
    latents: Tensor

    def pairs(self, turn: Turn, which: int) -> tuple[Tensor, Tensor]:
        """Matched latents with a little noise [B, nz], and features of their reals [B, F]."""
        indices, real = self.how.reals(2 * turn.position + which)
        noise = turn.draws.latents(f"inclusive/{which}", turn.position)
        return self.latents[indices].to(noise.device) + JITTER * noise, self.how.features(real)

    def reconstruction(self, turn: Turn) -> Tensor:
        """The mean distance of the fakes to their reals, over both batches."""
        (z_1, real_1), (z_2, real_2) = (self.pairs(turn, which) for which in (0, 1))
        fake = self.how.features(turn.g(torch.cat([z_1, z_2])).float())
        return distance(fake, torch.cat([real_1, real_2])).mean()

    def between(self, turn: Turn) -> Tensor:
        """A fake between two latents is to be near both reals, to each by its share."""
        (z_1, real_1), (z_2, real_2) = (self.pairs(turn, which) for which in (0, 1))
        share = turn.draws.uniforms("inclusive/shares", turn.position, rows=1, n=len(z_1))[0]
        z = share[:, None] * z_1 + (1 - share[:, None]) * z_2
        fake = self.how.features(turn.g(z).float())
        return (share * distance(fake, real_1) + (1 - share) * distance(fake, real_2)).mean()


def distance(mine: Tensor, other: Tensor) -> Tensor:
    """Euclidean, row by row [B]."""
    return F.pairwise_distance(mine, other, eps=EPSILON)


@contextmanager
def leaving_no_trace(net: nn.Module) -> Iterator[None]:
    """No graph, and BatchNorm's running statistics come back as they were."""
    buffers = [(buffer, buffer.clone()) for buffer in net.buffers()]
    with torch.no_grad():
        yield
        for buffer, value in buffers:
            buffer.copy_(value)
