"""What is timed before a run: the game that will be played."""

from dataclasses import replace

import pytest
from tiny import POINTS, data_of

from diagan import estimate as module
from diagan.config import Critic, Methods, Penalty, Record
from diagan.engine import launch
from diagan.estimate import estimate


@pytest.fixture
def timed(monkeypatch):
    """The games that are timed, and how many discriminators score a fake."""
    games, judges = [], []
    monkeypatch.setattr(module, "time_step", lambda game: games.append(game) or 1.0)
    monkeypatch.setattr(
        module, "time_generate", lambda game, n, n_judges: judges.append(n_judges) or 1.0
    )
    return games, judges


def test_phase_2_is_timed_with_what_begins_there(timed):
    late = replace(
        POINTS, penalty=Penalty(r1=1.0, r1_from="phase2"), methods=Methods(gold="published")
    )
    estimate(late, data_of(late), launch(late))
    plain, weighted = timed[0]
    assert not plain.parts.d_terms and not plain.parts.d_fake_weights
    assert weighted.parts.d_terms and weighted.parts.d_fake_weights
    assert [critic.name for critic in weighted.critics] == ["critic"]


def test_without_a_weighted_arm_its_game_is_not_timed(timed):
    """PacGAN has none: its D cannot reject."""
    packed = replace(POINTS, methods=Methods(packing=2), record=Record(mode="none"),
                     weighted_arm=False)  # fmt: skip
    estimate(packed, data_of(packed), launch(packed))
    assert len(timed[0]) == 1


@pytest.mark.parametrize(("fakes", "n"), [("shared", 1), ("own", 1), ("reals", 2)])
def test_a_chain_takes_two_looks_at_a_fake(timed, fakes, n):
    config = replace(POINTS, critic=Critic(fakes=fakes))
    estimate(config, data_of(config), launch(config))
    assert timed[1] == [n]
