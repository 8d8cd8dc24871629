from dataclasses import dataclass

import pytest
import torch
from tiny import DIGITS, POINTS, data_of, same
from torch import Tensor, nn

from diagan.engine import launch
from diagan.errors import UserError
from diagan.game import FurtherCritic, Observer, Parts, Term, Turn, View, compose, d_loss, g_loss
from diagan.losses import hinge, non_saturating
from diagan.networks.common import Scores
from diagan.stages import Stage, new_game
from diagan.train import play_step, train

STAGE = Stage("phase1", 0, 6)


class Itself(nn.Module):
    """A discriminator whose logit is the sample: losses can be worked by hand."""

    def forward(self, x: Tensor) -> Scores:
        return Scores(x.flatten(), x, {})


REAL = torch.tensor([[2.0], [0.0], [-1.0], [1.0]])
FAKE = torch.tensor([[0.0], [1.0], [-2.0], [3.0]])


def turn_of(d: nn.Module, real: Tensor | None = REAL, fake: Tensor = FAKE, **also) -> Turn:
    return Turn(0, 0, "D", nn.Identity(), d, fake, fake, draws=None, real=real, **also)


def times(*factors: float):
    """A weight for each of the fakes of a turn."""
    return lambda logits, turn: torch.tensor(factors)


# --- tiny methods, one for each kind of slot -----------------------------------------------------


@dataclass(frozen=True)
class Shrink:
    """D is drawn to small logits on reals."""

    weight: float = 1.0
    interval: int = 1

    def parts(self) -> Parts:
        def value(turn: Turn) -> Tensor:
            return turn.score(turn.real).logits.square().mean()

        return Parts(d_terms=(Term("shrink", value, self.weight, self.interval),))


@dataclass(frozen=True)
class Stay:
    """G is drawn to the origin; it draws latents of its own."""

    weight: float = 1.0
    interval: int = 1

    def parts(self) -> Parts:
        def value(turn: Turn) -> Tensor:
            return turn.g(turn.draws.latents("stay", turn.position)).square().mean()

        return Parts(g_terms=(Term("stay", value, self.weight, self.interval),))


@dataclass(frozen=True)
class Scale:
    """Weights on the fakes of both players, and a view of what D sees."""

    factor: float = 1.0

    def parts(self) -> Parts:
        def weigh(logits: Tensor, turn: Turn) -> Tensor:
            return torch.full_like(logits, self.factor)

        view = View(0, lambda images, turn: images * self.factor)
        return Parts(views=(view,), d_fake_weights=(weigh,), g_weights=(weigh,))


def game_of(*methods, config=POINTS):
    game = new_game(config, data_of(config), launch(config), STAGE)
    game.parts = compose([game.parts, *(method.parts() for method in methods)])
    return game


# --- compose -------------------------------------------------------------------------------------


def test_views_apply_in_their_order_whoever_comes_first():
    def view(order: int, name: str) -> Parts:
        return Parts(views=(View(order, lambda x, turn: [*x, name]),))

    found = compose([view(1, "pack"), view(0, "colour"), view(0, "shift")])
    turn = turn_of(lambda x: x, views=found.views)
    assert turn.score([]) == ["colour", "shift", "pack"]


def test_weights_multiply():
    found = compose(
        [
            Parts(d_fake_weights=(times(1, 2, 0, 1),), g_weights=(times(2, 2, 2, 2),)),
            Parts(d_fake_weights=(times(1, 0.5, 1, 0),), g_weights=(times(1, 0, 0, 0.5),)),
        ]
    )
    # fakes 0, 1, -2, 3 cost D 1, 2, 0, 4; weights 1, 1, 0, 0 leave 3 / 4; reals cost 3 / 4
    assert d_loss(turn_of(Itself()), found, hinge).item() == pytest.approx(1.5)
    # they cost G 0, -1, 2, -3; weights 2, 0, 0, 1 leave -3 / 4
    assert g_loss(turn_of(Itself(), real=None), found, hinge).item() == pytest.approx(-0.75)


def test_terms_add_up_and_those_of_weight_zero_are_dropped():
    def term(name: str, weight: float) -> Parts:
        return Parts(d_terms=(Term(name, lambda turn: torch.tensor(10.0), weight),))

    found = compose([term("a", 0.5), term("b", 0.0), term("c", 2.0)])
    assert [t.name for t in found.d_terms] == ["a", "c"]
    plain = d_loss(turn_of(Itself()), Parts(), hinge).item()
    assert d_loss(turn_of(Itself()), found, hinge).item() == pytest.approx(plain + 25)
    zero = Parts(g_terms=(Term("nothing", lambda turn: torch.tensor(1.0), weight=0.0),))
    assert compose([zero]).g_terms == ()


def test_a_term_with_an_interval_is_no_part_of_the_loss():
    found = Parts(d_terms=(Term("now and then", lambda turn: torch.tensor(9.0), interval=4),))
    turn = turn_of(Itself())
    assert d_loss(turn, found, hinge).item() == d_loss(turn, Parts(), hinge).item()


def test_lists_join_unions_unite_and_packs_multiply():
    def seen(name: str) -> Observer:
        return Observer(name, lambda moment: None)

    one = Parts(heads={"a": 4}, state={"x": torch.zeros(1)}, observers=(seen("1"),))
    two = Parts(heads={"b": 1}, state={"y": torch.zeros(2)}, observers=(seen("2"),))
    packs = [Parts(images_per_score=2), Parts(images_per_score=3)]
    found = compose([one, two, Parts(critics=(FurtherCritic("other"),)), *packs])
    assert found.heads == {"a": 4, "b": 1}
    assert set(found.state) == {"x", "y"}
    assert [observer.name for observer in found.observers] == ["1", "2"]
    assert [critic.name for critic in found.critics] == ["other"]
    assert found.images_per_score == 6


def test_nothing_composes_to_nothing():
    assert compose([]) == Parts()


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        (Parts(heads={"rotation": 4}), "heads named 'rotation'"),
        (Parts(state={"mean": torch.zeros(1)}), "state named 'mean'"),
        (Parts(critics=(FurtherCritic("second"),)), "critics named 'second'"),
    ],
)
def test_a_name_that_comes_twice_is_refused(parts, what):
    with pytest.raises(UserError, match=what):
        compose([parts, parts])


@pytest.mark.parametrize("packing_first", [True, False])
def test_packing_and_recording_are_refused_with_a_sentence(packing_first):
    parts = [Parts(images_per_score=2), Parts(needs_one_score_per_image="recording")]
    with pytest.raises(UserError) as refusal:
        compose(parts if packing_first else parts[::-1])
    assert str(refusal.value) == (
        "recording needs one score per image, but D scores 2 images at once here; "
        "leave one of the two out"
    )


def test_a_refusal_is_not_forgotten_by_composing_in_two_steps():
    recording = compose([Parts(needs_one_score_per_image="recording"), Parts()])
    with pytest.raises(UserError, match="recording needs one score"):
        compose([recording, compose([Parts(images_per_score=2)])])


# --- the losses ----------------------------------------------------------------------------------


def test_losses_on_a_batch_of_four_by_hand():
    """softplus of -2, -1, 0, 1, 2, 3: 0.126928, 0.313262, 0.693147, 1.313262, 2.126928, 3.048587"""
    turn = turn_of(Itself())
    real = (0.126928 + 0.693147 + 1.313262 + 0.313262) / 4  # softplus(-x) of 2, 0, -1, 1
    fake = (0.693147 + 1.313262 + 0.126928 + 3.048587) / 4  # softplus(x) of 0, 1, -2, 3
    assert d_loss(turn, Parts(), non_saturating).item() == pytest.approx(real + fake, abs=1e-5)
    assert turn.real_logits.tolist() == [2, 0, -1, 1]
    assert turn.fake_logits.tolist() == [0, 1, -2, 3]
    turn = turn_of(Itself(), real=None)
    g = (0.693147 + 0.313262 + 2.126928 + 0.048587) / 4  # softplus(-x) of 0, 1, -2, 3
    assert g_loss(turn, Parts(), non_saturating).item() == pytest.approx(g, abs=1e-5)

    assert d_loss(turn_of(Itself()), Parts(), hinge).item() == 3 / 4 + 7 / 4
    assert g_loss(turn, Parts(), hinge).item() == -(0 + 1 - 2 + 3) / 4


def test_weights_are_no_path_for_the_gradient():
    fake = FAKE.clone().requires_grad_()
    turn = turn_of(Itself(), fake=fake)
    parts = Parts(d_fake_weights=(lambda logits, turn: logits.square(),))
    d_loss(turn, parts, hinge).backward()
    # d/dx of w * relu(1 + x) / 4 with w = x^2 held fixed
    assert fake.grad.flatten().tolist() == [0.0, 0.25, 0.0, 2.25]


def test_real_and_fake_are_scored_in_two_forwards():
    """BatchNorm's statistics are part of the game: D never sees the two in one batch."""
    seen = []

    class Seeing(Itself):
        def forward(self, x: Tensor) -> Scores:
            seen.append(x)
            return super().forward(x)

    d_loss(turn_of(Seeing()), Parts(), hinge)
    assert len(seen) == 2 and seen[0] is REAL and seen[1] is FAKE


def test_a_joint_turn_scores_both_in_one_forward():
    seen = []

    class Seeing(Itself):
        def forward(self, x: Tensor) -> Scores:
            seen.append(len(x))
            return super().forward(x)

    turn = turn_of(Seeing(), joint=True)
    joint = d_loss(turn, Parts(), hinge)
    assert seen == [8]
    assert turn.real_logits.tolist() == [2, 0, -1, 1]
    assert turn.fake_logits.tolist() == [0, 1, -2, 3]
    assert joint.item() == d_loss(turn_of(Itself()), Parts(), hinge).item()


# --- methods in the loop -------------------------------------------------------------------------


def gradient(net: nn.Module, loss: Tensor) -> Tensor:
    """Of a loss in all parameters of a network, zero where it does not reach."""
    parameters = list(net.parameters())
    grads = torch.autograd.grad(loss, parameters, materialize_grads=True, allow_unused=True)
    return torch.cat([g.flatten() for g in grads])


@pytest.mark.parametrize("w", [0.5, 3.0])
def test_a_term_adds_its_weight_times_its_own_gradient_to_d(w):
    game = game_of()
    latents = game.draws.latents("D", 0)
    _, real = game.draws.reals(game.d.stream, 0)
    turn = Turn(0, 0, "D", game.g.net, game.d.net, game.g.net(latents).detach(), latents,
                game.draws, real=real)  # fmt: skip
    method = Shrink(w).parts()

    plain = gradient(game.d.net, d_loss(turn, Parts(), non_saturating))
    own = gradient(game.d.net, method.d_terms[0].value(turn))
    both = gradient(game.d.net, d_loss(turn, method, non_saturating))
    assert own.abs().max() > 0
    assert torch.allclose(both, plain + w * own, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("w", [0.5, 3.0])
def test_a_term_adds_its_weight_times_its_own_gradient_to_g(w):
    game = game_of()
    latents = game.draws.latents("G", 0)

    def turn() -> Turn:
        return Turn(0, 0, "G", game.g.net, game.d.net, game.g.net(latents), latents, game.draws)

    method = Stay(w).parts()
    plain = gradient(game.g.net, g_loss(turn(), Parts(), non_saturating))
    own = gradient(game.g.net, method.g_terms[0].value(turn()))
    both = gradient(game.g.net, g_loss(turn(), method, non_saturating))
    assert own.abs().max() > 0
    assert torch.allclose(both, plain + w * own, rtol=1e-5, atol=1e-7)


def adam_steps(player) -> float:
    return next(iter(player.optimiser.state.values()))["step"].item()


@pytest.mark.parametrize(
    ("n_dis", "n_d", "n_g"),
    # 6 steps. D has n_dis updates a step and one more each 4th; G one a step and one each 4th.
    [(1, 6 + 2, 6 + 2), (4, 24 + 6, 6 + 2), (5, 30 + 8, 6 + 2)],
)
def test_interval_terms_have_their_own_optimiser_step(n_dis, n_d, n_g):
    game = game_of(Shrink(interval=4), Stay(interval=4))
    game.n_dis = n_dis
    assert train(game, until=6)
    assert (adam_steps(game.d), adam_steps(game.g)) == (n_d, n_g)


def test_an_interval_step_descends_the_weighted_term_alone():
    """Of a term with an interval, a step is: the plain step, then one on weight x term."""
    together, apart = game_of(Shrink(0.5, interval=2)), game_of()
    for game in (together, apart):
        for player in game.players:
            player.optimiser = torch.optim.SGD(player.net.parameters(), lr=0.1)
        game.learning_rate = lambda step: 0.1
    played = []
    together.parts = compose([together.parts, Parts(observers=(Observer("keep", played.append),))])
    train(together, until=1)
    turn = played[0].turns[0]

    apart.g.optimiser = torch.optim.SGD(apart.g.net.parameters(), lr=0.0)
    play_step(apart)
    value = Shrink().parts().d_terms[0].value
    mine = Turn(0, 0, "D", apart.g.net, apart.d.net, turn.fake, turn.latents, apart.draws,
                real=turn.real)  # fmt: skip
    apart.d.optimiser.zero_grad(set_to_none=True)
    (0.5 * value(mine)).backward()
    apart.d.optimiser.step()
    assert same(together.d.net.state_dict(), apart.d.net.state_dict())


@pytest.mark.parametrize("config", [POINTS, DIGITS], ids=["mlp", "dcgan"])
@pytest.mark.parametrize(
    "neutral",
    [
        Shrink(weight=0.0),
        Stay(weight=0.0),
        Shrink(weight=0.0, interval=2),
        Scale(1.0),
    ],
    ids=repr,
)
def test_a_neutral_method_is_the_plain_gan_bit_for_bit(config, neutral):
    plain, other = game_of(config=config), game_of(neutral, config=config)
    for game in (plain, other):
        assert train(game, until=3)
    for mine, its in zip(plain.players, other.players):
        assert same(mine.net.state_dict(), its.net.state_dict())


@pytest.mark.parametrize("method", [Shrink(0.1), Stay(0.1), Stay(0.1, interval=2), Scale(2.0)])
def test_a_method_that_is_not_neutral_changes_something(method):
    plain, other = game_of(), game_of(method)
    for game in (plain, other):
        assert train(game, until=3)
    assert not same(plain.g.net.state_dict(), other.g.net.state_dict())
