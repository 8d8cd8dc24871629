"""The words that methods are written in: what a turn of the GAN game is, and the slots of it.

A method is a frozen dataclass whose `parts()` fills some of the slots of `Parts`; `compose` adds
the parts of several methods up; `d_loss` and `g_loss` fold the slots. The loop knows no method.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from diagan.errors import UserError
from diagan.losses import Loss

Fakes = Literal["shared", "own", "reals"]  # D's, a critic's own, or D's reals in their place


class Draws(Protocol):
    """Everything random of a run, as functions of a purpose and a position."""

    def latents(self, purpose: str, position: int, n: int | None = None) -> Tensor: ...
    def uniforms(self, purpose: str, position: int, rows: int, n: int) -> Tensor: ...
    def generator(self, purpose: str, position: int) -> torch.Generator: ...


class Scored(Protocol):
    """What a discriminator returns: logits [B], features [B, F] and the outputs of its heads."""

    @property
    def logits(self) -> Tensor: ...
    @property
    def features(self) -> Tensor: ...
    @property
    def heads(self) -> Mapping[str, Tensor]: ...


@dataclass
class Turn:
    """One update of one player: what a term of the game may look at and draw from."""

    step: int
    position: int  # counts the player's updates: of D step * n_dis + round, of G the step
    player: str
    g: nn.Module
    d: nn.Module
    fake: Tensor
    latents: Tensor
    draws: Draws
    views: tuple["View", ...] = ()
    joint: bool = False  # score real and fake in one forward
    real: Tensor | None = None  # none in G's turn
    indices: Tensor | None = None  # of the reals, in the dataset
    real_logits: Tensor | None = None  # filled by the losses
    fake_logits: Tensor | None = None
    real_features: Tensor | None = None  # filled by D's loss, without their graph
    fake_features: Tensor | None = None
    n_scored: int = 0  # batches that D has scored in this turn

    def score(self, images: Tensor) -> "Scored":
        """D's Scores of images, seen through the views."""
        for view in self.views:
            images = view.apply(images, self)
        self.n_scored += 1
        scores: Scored = self.d(images)
        return scores


@dataclass(frozen=True)
class View:
    """What D sees of images. Views apply in ascending order: augment (0), then pack (1)."""

    order: int
    apply: Callable[[Tensor, Turn], Tensor]


@dataclass(frozen=True)
class Term:
    """An addition to a loss. With an interval it has its own backward and optimiser step; a term
    of G then draws its own latents, since the graph of the turn's fakes is used up."""

    name: str
    value: Callable[[Turn], Tensor]
    weight: float = 1.0
    interval: int = 1


@dataclass(frozen=True)
class FurtherCritic:
    """Another D that plays all of D's parts on the uniform stream, or on another of its own."""

    name: str
    fakes: Fakes = "shared"
    joint: bool = False  # real and fake in one forward


@dataclass(frozen=True)
class Observer:
    """Is shown the game after every so many steps, from `start` on."""

    name: str
    look: Callable[["Moment"], None]
    every: int = 1
    start: int = 1
    at_end: bool = False  # and once more at the end of the stage

    def due(self, moment: "Moment") -> bool:
        on_beat = moment.step >= self.start and moment.step % self.every == 0
        return on_beat or (self.at_end and moment.is_last)


@dataclass(frozen=True)
class Moment:
    """What observers see: the step just done, its turns, and the losses by player."""

    step: int
    turns: Sequence[Turn]  # D's and the critics' of this step, then G's
    losses: Mapping[str, float]
    is_last: bool


Weigh = Callable[[Tensor, Turn], Tensor]


@dataclass(frozen=True)
class Parts:
    """The slots. Each combines in one way: in order, by product, by sum, or by union."""

    views: tuple[View, ...] = ()
    d_fake_weights: tuple[Weigh, ...] = ()  # product
    g_weights: tuple[Weigh, ...] = ()  # product
    d_terms: tuple[Term, ...] = ()
    g_terms: tuple[Term, ...] = ()
    heads: Mapping[str, int] = field(default_factory=dict)
    critics: tuple[FurtherCritic, ...] = ()
    observers: tuple[Observer, ...] = ()
    state: Mapping[str, Tensor] = field(default_factory=dict)
    images_per_score: int = 1
    needs_one_score_per_image: str = ""  # who needs it


class Method(Protocol):
    """A frozen dataclass that returns its parts."""

    def parts(self) -> Parts: ...


def compose(parts: Sequence[Parts]) -> Parts:
    """Add parts up. Terms of weight zero are dropped; what cannot go together is refused."""

    def joined(name: str) -> tuple[Any, ...]:
        return tuple(item for p in parts for item in getattr(p, name))

    def refuse_twins(slot: str, names: list[str]) -> None:
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UserError(f"two methods both bring {slot} named {twice[0]!r}; use one of them")

    def united(name: str) -> dict[str, Any]:
        refuse_twins(name, [key for p in parts for key in getattr(p, name)])
        return {key: value for p in parts for key, value in getattr(p, name).items()}

    refuse_twins("critics", [critic.name for critic in joined("critics")])

    packed = prod(p.images_per_score for p in parts)
    needing = [p.needs_one_score_per_image for p in parts if p.needs_one_score_per_image]
    if packed > 1 and needing:
        raise UserError(
            f"{needing[0]} needs one score per image, but D scores {packed} images at once here; "
            "leave one of the two out"
        )
    return Parts(
        views=tuple(sorted(joined("views"), key=lambda view: view.order)),
        d_fake_weights=joined("d_fake_weights"),
        g_weights=joined("g_weights"),
        d_terms=tuple(t for t in joined("d_terms") if t.weight != 0),
        g_terms=tuple(t for t in joined("g_terms") if t.weight != 0),
        heads=united("heads"),
        critics=joined("critics"),
        observers=joined("observers"),
        state=united("state"),
        images_per_score=packed,
        needs_one_score_per_image=needing[0] if needing else "",
    )


def d_loss(turn: Turn, parts: Parts, loss: Loss) -> Tensor:
    """D's loss (Eq. E.1 or E.3, with minus V_D) with weights on its fake terms and added terms.

    Real and fake are scored in two forwards: BatchNorm's statistics are part of the game. In a
    joint turn they share a forward, and D has nothing but the images to tell them apart.
    """
    assert turn.real is not None
    if turn.joint:
        both = turn.score(torch.cat([turn.real, turn.fake]))
        turn.real_logits, turn.fake_logits = both.logits.chunk(2)
        turn.real_features, turn.fake_features = both.features.detach().chunk(2)
    else:
        real, fake = turn.score(turn.real), turn.score(turn.fake)
        turn.real_logits, turn.fake_logits = real.logits, fake.logits
        turn.real_features, turn.fake_features = real.features.detach(), fake.features.detach()
    on_fake = _weighted(loss.d_fake(turn.fake_logits), turn.fake_logits, parts.d_fake_weights, turn)
    on_real = loss.d_real(turn.real_logits)
    return on_real.mean() + on_fake.mean() + _terms(parts.d_terms, turn)


def g_loss(turn: Turn, parts: Parts, loss: Loss) -> Tensor:
    """G's loss (Eq. E.2 or E.4) with weights on its terms and added terms."""
    turn.fake_logits = turn.score(turn.fake).logits
    per_fake = _weighted(loss.g(turn.fake_logits), turn.fake_logits, parts.g_weights, turn)
    return per_fake.mean() + _terms(parts.g_terms, turn)


def _weighted(losses: Tensor, logits: Tensor, weighs: Sequence[Weigh], turn: Turn) -> Tensor:
    for weigh in weighs:
        losses = losses * weigh(logits.detach(), turn)
    return losses


def _terms(terms: Sequence[Term], turn: Turn) -> Tensor:
    total = turn.fake.new_zeros(())
    for term in terms:
        if term.interval == 1:
            total = total + term.weight * term.value(turn)
    return total
