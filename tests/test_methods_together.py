"""Every pair of methods plays a step with finite losses, or is refused with a sentence."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch
from playing import PLAIN, WEIGHTED, game_of
from tiny import DIGITS, same, world_of

from diagan import checkpoint
from diagan import config as configs
from diagan.config import (
    Augment,
    Config,
    Inclusive,
    Methods,
    Penalty,
    Record,
    Rotation,
    StyleGAN2,
    TopK,
)
from diagan.errors import UserError
from diagan.stages import Stage, stages, train_stage
from diagan.train import Game, train

METHODS = {
    "gold": {"gold": "published"},
    "gold, normalised": {"gold": "normalised"},
    "topk": {"topk": TopK(floor=0.5, decay=0.5)},
    "packing": {"packing": 2},
    "rotation": {"rotation": Rotation(1.0, 0.2)},
    "inclusive": {"inclusive": Inclusive(10.0, 4.0)},
    "ema": {"ema": 0.9},
    "augment": {"augment": Augment(True, 0.125, 0.5)},
    "logistic head": {"logistic_head": True},
}
PENALTIES = {
    "r1": {"r1": 1.0},
    "r1, lazy": {"r1": 1.0, "every": 2},
    "path length": {"path_length": 2.0, "path_every": 1},
    "path length, lazy": {"path_length": 2.0, "path_every": 2},
}
NAMES = [*METHODS, *PENALTIES, "critic"]
REFUSED = {
    frozenset({"packing", "rotation"}): "the rotation task needs one score per image",
    frozenset({"packing", "critic"}): "rejection sampling needs one score per image",
}


def one_kind(a: str, b: str) -> bool:
    """Two settings of the same method are no pair."""
    return a.split(",")[0] == b.split(",")[0]


PAIRS = [pair for pair in combinations(NAMES, 2) if not one_kind(*pair)]


def config_with(*names: str, base: Config = DIGITS) -> Config:
    on = {key: value for n in names for key, value in METHODS.get(n, {}).items()}
    penalty = {key: value for n in names for key, value in PENALTIES.get(n, {}).items()}
    if "packing" in names:
        base = replace(base, record=Record(mode="none"), weighted_arm=False)
    return replace(base, methods=Methods(**on), penalty=Penalty(**penalty))


def stage_with(*names: str) -> Stage:
    return WEIGHTED if "critic" in names else PLAIN


def assert_finite(game: Game) -> None:
    """`train` itself stops at a loss that is not."""
    for player in game.players:
        assert all(bool(p.isfinite().all()) for p in player.net.parameters()), player.name
    assert all(bool(tensor.isfinite().all()) for tensor in game.parts.state.values())


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [pair for pair in PAIRS if frozenset(pair) not in REFUSED])
def test_a_pair_plays(a, b):
    game = game_of(configs.check(config_with(a, b)), stage_with(a, b))
    assert train(game, until=8)  # the second step has what the first one searched
    assert_finite(game)


@pytest.mark.parametrize("pair", list(REFUSED), ids=lambda pair: ", ".join(sorted(pair)))
def test_a_pair_is_refused(pair):
    with pytest.raises(UserError, match=REFUSED[pair]):
        game_of(config_with(*pair), stage_with(*pair))


ALL = ("gold", "topk", "rotation", "inclusive", "ema", "augment", "logistic head", "r1, lazy",
       "path length, lazy")  # fmt: skip


@pytest.mark.parametrize("loss", ["non_saturating", "hinge"])
def test_all_play_together(loss):
    game = game_of(replace(config_with(*ALL), loss=loss, n_dis=2), WEIGHTED)
    assert train(game, until=8)
    assert_finite(game)


@pytest.mark.slow
def test_all_together_an_interrupted_run_ends_the_same(tmp_path):
    config = config_with(*ALL)
    phase1, plain, _ = stages(config)
    whole, again = world_of(config, tmp_path / "a"), world_of(config, tmp_path / "b")
    for stage in (phase1, plain):
        assert train_stage(whole, stage, None, lambda: False)
        answers = iter([False] * 3 + [True])
        assert not train_stage(again, stage, None, lambda: next(answers))  # noqa: B023
        again = world_of(config, tmp_path / "b")
        assert train_stage(again, stage, None, lambda: False)
    name = checkpoint.folder_name("plain", 12)
    mine, other = (checkpoint.load(world.run.checkpoints / name) for world in (whole, again))
    assert mine.keys() == other.keys() == {"G", "D", "G.optim", "D.optim", "state"}
    for file in mine:
        assert same(mine[file], other[file]), file


def test_a_stylegan_plays_with_its_penalties_and_its_average():
    small = StyleGAN2(width=1 / 32, latent=16)
    base = replace(DIGITS, data=replace(DIGITS.data, size=32), network=small, batch_size=4)
    game = game_of(config_with("ema", "r1, lazy", "path length, lazy", "augment", base=base))
    before = {name: value.clone() for name, value in game.g.net.state_dict().items()}
    assert train(game, until=2)
    assert_finite(game)
    assert game.parts.state["path_length.mean"] > 0
    moved = {name for name, p in game.g.net.named_parameters() if not torch.equal(p, before[name])}
    assert any(name.startswith("mapping") for name in moved)
