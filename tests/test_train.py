import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import DIGITS, POINTS, Overheard, data_of, same, world_of

from diagan import checkpoint, observers
from diagan.config import Critic, Optim, Record
from diagan.engine import launch
from diagan.errors import Diverged, UserError
from diagan.game import Moment, Observer, Parts, Term, Turn, compose
from diagan.ldr import free_moments
from diagan.losses import hinge, non_saturating
from diagan.record import LdrRecord
from diagan.report import write_report
from diagan.rundir import RunDir, read_lines
from diagan.sampling import UniformStream, WeightedStream
from diagan.stages import Stage, new_game, restore, stages, train_stage
from diagan.summary import run_summary
from diagan.train import train


def never() -> bool:
    return False


def game_of(config=POINTS, stage: Stage | None = None, weights=None):
    stage = stage or stages(config)[0]
    return new_game(config, data_of(config), launch(config), stage, weights)


def watched(game) -> list[Moment]:
    """The moments of a game, as they come."""
    seen: list[Moment] = []
    game.parts = compose([game.parts, Parts(observers=(Observer("test", seen.append),))])
    return seen


def trained_phase1(config, path):
    """A world after phase 1, and what its checkpoint holds."""
    world = world_of(config, path)
    phase1 = stages(config)[0]
    assert train_stage(world, phase1, None, never)
    return world, checkpoint.load(path / "checkpoints" / f"phase1-{phase1.end:06d}")


# --- recording leaves training as it is ----------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "d_norm"),
    [("float32", "batch"), ("bfloat16", "batch"), ("float32", "spectral")],
)
def test_recording_changes_no_bit_of_the_weights(tmp_path, precision, d_norm):
    """On a DCGAN, whose D has dropout and BatchNorm: buffers and randomness must come back."""
    ends, records = {}, []
    for mode in ("none", "eval", "train", "free"):
        record = Record(mode=mode, every=2, window=3)
        network = replace(DIGITS.network, d_norm=d_norm)
        config = replace(DIGITS, network=network, precision=precision, record=record)
        world, ends[mode] = trained_phase1(config, tmp_path / mode)
        if mode in ("eval", "train"):
            assert len(list(world.run.record.glob("*.npy"))) == 2 * 3  # heldout too
            records.append(LdrRecord(world.run.record, world.dataset.n).read(6))
    assert not np.allclose(*records)  # train mode did look with dropout
    for mode in ("eval", "train", "free"):
        for file in ("G", "D", "G.optim", "D.optim"):
            assert same(ends["none"][file], ends[mode][file]), (mode, file)


# --- the order of play ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_dis", [1, 3])
def test_n_dis_updates_of_d_to_one_of_g(n_dis):
    game = game_of(replace(POINTS, n_dis=n_dis))
    seen = watched(game)
    assert train(game, until=4)
    assert [moment.step for moment in seen] == [1, 2, 3, 4]
    for moment in seen:
        assert [turn.player for turn in moment.turns] == ["D"] * n_dis + ["G"]
    positions = [t.position for m in seen for t in m.turns if t.player == "D"]
    assert positions == list(range(4 * n_dis))
    drawn = torch.cat([t.indices for m in seen for t in m.turns if t.player == "D"])
    assert np.array_equal(drawn, UniformStream(48, POINTS.seed).take(0, 4 * n_dis * 8))
    counts = [next(iter(p.optimiser.state.values()))["step"].item() for p in (game.d, game.g)]
    assert counts == [4 * n_dis, 4]


def test_latents_are_fresh_in_every_turn():
    game = game_of(replace(POINTS, n_dis=2))
    seen = watched(game)
    train(game, until=2)
    latents = [turn.latents for moment in seen for turn in moment.turns]
    assert len(latents) == 6
    assert not any(torch.equal(a, b) for i, a in enumerate(latents) for b in latents[:i])


def test_fakes_have_a_graph_only_where_g_learns():
    game = game_of()
    seen = watched(game)
    train(game, until=1)
    d_turn, g_turn = seen[0].turns
    assert not d_turn.fake.requires_grad and g_turn.fake.requires_grad
    assert all(p.requires_grad for p in game.d.net.parameters())  # frozen for G's turn only


def test_stopping_and_going_on_is_training_through():
    straight, halting = game_of(DIGITS), game_of(DIGITS)
    assert train(straight, until=5)
    answers = iter([False, False, True])
    assert not train(halting, until=5, should_stop=lambda: next(answers))
    assert halting.step == 2
    assert train(halting, until=5)
    for mine, its in zip(straight.players, halting.players):
        assert same(mine.net.state_dict(), its.net.state_dict())


# --- learning rate -------------------------------------------------------------------------------


def test_linear_decay_goes_to_zero_over_all_steps():
    config = replace(POINTS, steps=8, optim=Optim(lr=0.8, decay="linear"))
    game = game_of(config, Stage("phase1", 0, 8))
    rates = []
    keep = Observer("rate", lambda m: rates.append(game.g.optimiser.param_groups[0]["lr"]))
    game.parts = compose([game.parts, Parts(observers=(keep,))])
    train(game, until=8)
    assert rates == pytest.approx([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    assert game.learning_rate(8) == 0
    assert game.d.optimiser.param_groups[0]["lr"] == pytest.approx(0.1)


def test_no_decay_is_constant():
    rate = game_of(replace(POINTS, optim=Optim(lr=0.3, decay="none"))).learning_rate
    assert rate(0) == rate(11) == 0.3


def test_a_restart_begins_phase_2_with_the_full_rate():
    config = replace(POINTS, steps=8, phase1_share=0.5, optim=Optim(lr=0.8, decay="restart"))
    first, second = (game_of(config, Stage(name, start, end)).learning_rate
                     for name, start, end in (("phase1", 0, 4), ("weighted", 4, 8)))  # fmt: skip
    assert [first(step) for step in range(4)] == pytest.approx([0.8, 0.7, 0.6, 0.5])
    assert [second(step) for step in (4, 5, 6, 7, 8)] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0])


# --- phase 2 -------------------------------------------------------------------------------------


def test_phase_2_goes_on_from_phase_1(tmp_path):
    world, end = trained_phase1(DIGITS, tmp_path)
    p1, config = DIGITS.phase1_steps, world.config
    for stage in stages(config)[1:]:
        weights = np.ones(48) if stage.weighted else None
        game = new_game(config, world.dataset, world.fabric, stage, weights)
        restore(world, stage, game)
        assert game.step == p1
        assert game.learning_rate(game.step) == pytest.approx(config.optim.lr * 0.5)
        for player in game.players:
            source = "G" if player.name == "G" else "D"  # the critic starts as a copy of D
            assert same(player.net.state_dict(), end[source])
            moments = checkpoint.optimiser_tensors(player.net, player.optimiser)
            assert same(moments, end[f"{source}.optim"])
            steps = [value for name, value in moments.items() if name.endswith(".step")]
            assert steps and all(value == p1 for value in steps)
    assert [player.name for player in game.players] == ["G", "D", "critic"]
    assert game.critics[0].net is not game.d.net


@pytest.mark.slow
@pytest.mark.parametrize("fakes", ["shared", "own", "reals"])
def test_with_uniform_weights_and_no_decay_only_the_stream_differs(tmp_path, fakes):
    """The critic looks on: G and D play the same game with it and without."""
    ends = {}
    for on in (True, False):
        config = replace(POINTS, critic=Critic(on=on, fakes=fakes))
        world, _ = trained_phase1(config, tmp_path / str(on))
        weighted = stages(config)[-1]
        assert train_stage(world, weighted, np.ones(48), never)
        ends[on] = checkpoint.load(world.run.checkpoints / "weighted-000012")
    assert "critic" in ends[True] and "critic" not in ends[False]
    for file in ("G", "D", "G.optim", "D.optim"):
        assert same(ends[True][file], ends[False][file])
    assert not same(ends[True]["critic"], ends[True]["D"])


@pytest.fixture
def heavy() -> np.ndarray:
    """All weight on the first four of 48 samples."""
    return np.where(np.arange(48) < 4, 1.0, 0.0)


def played_weighted(config, weights) -> list[Moment]:
    game = game_of(config, stages(config)[-1], weights)
    seen = watched(game)
    assert train(game, until=config.steps)
    return seen


def drawn(seen: list[Moment], player: str) -> np.ndarray:
    return torch.cat([t.indices for m in seen for t in m.turns if t.player == player]).numpy()


@pytest.mark.parametrize("n_dis", [1, 2])
def test_the_critic_sees_uniform_data_while_d_sees_weighted(heavy, n_dis):
    config = replace(POINTS, steps=32, n_dis=n_dis)
    seen = played_weighted(config, heavy)
    start, count = 16 * n_dis * 8, 16 * n_dis * 8
    assert drawn(seen, "D").max() < 4
    assert np.array_equal(drawn(seen, "D"), WeightedStream(heavy, 0).take(start, count))
    assert np.array_equal(drawn(seen, "critic"), UniformStream(48, 0).take(start, count))
    for moment in seen:
        players = [turn.player for turn in moment.turns]
        assert players == ["D", "critic"] * n_dis + ["G"]


def test_the_published_critic_sees_uniform_data_for_one_pass_only(heavy):
    config = replace(POINTS, steps=32, critic=Critic(stream="published"))
    indices = drawn(played_weighted(config, heavy), "critic")
    assert np.array_equal(indices[:48], UniformStream(48, 0).take(16 * 8, 48))
    assert len(indices) == 128 and indices[48:].max() < 4
    assert not np.array_equal(indices[48:], drawn(played_weighted(config, heavy), "D")[48:])


@pytest.mark.parametrize("fakes", ["shared", "own"])
def test_the_critic_shares_the_fakes_of_d_or_has_its_own(heavy, fakes):
    seen = played_weighted(replace(POINTS, critic=Critic(fakes=fakes)), heavy)
    for moment in seen:
        d, critic, _ = moment.turns
        assert (d.fake is critic.fake) == (fakes == "shared")
        assert torch.equal(d.fake, critic.fake) == (fakes == "shared")


def test_a_critic_of_reals_is_shown_those_of_d_for_fakes(heavy):
    seen = played_weighted(replace(POINTS, n_dis=2, critic=Critic(fakes="reals")), heavy)
    for moment in seen:
        for d, critic in (moment.turns[:2], moment.turns[2:4]):
            assert torch.equal(critic.fake, d.real)
            assert not torch.equal(critic.real, d.real)
            assert not torch.equal(d.fake, d.real)


@pytest.mark.parametrize("forward", ["joint", "separate"])
def test_only_the_critic_scores_reals_and_fakes_together(heavy, forward):
    seen = played_weighted(replace(POINTS, critic=Critic(forward=forward)), heavy)
    for moment in seen:
        assert [turn.joint for turn in moment.turns] == [False, forward == "joint", False]


def test_the_critic_of_a_hinge_game_plays_the_logistic_loss(heavy):
    config = replace(POINTS, loss="hinge")
    game = game_of(config, stages(config)[-1], heavy)
    assert game.d.loss is game.g.loss is hinge
    assert game.critics[0].loss is non_saturating


# --- many processes (more in test_distributed.py) ------------------------------------------------


@pytest.mark.parametrize("n", [3, 8])
def test_a_batch_that_cannot_be_shared_out_is_refused(monkeypatch, n):
    monkeypatch.setenv("WORLD_SIZE", str(n))
    with pytest.raises(UserError, match=f"--batch-size 8: expected a multiple of the {n} proc"):
        launch(POINTS)


# --- what goes wrong -----------------------------------------------------------------------------


def test_a_nan_image_stops_with_a_sentence_and_leaves_the_last_checkpoint(tmp_path):
    config = replace(POINTS, phase1_share=1.0, record=Record(mode="none"))
    world, stage = world_of(config, tmp_path), stages(config)[0]
    clean = world.dataset.values.copy()
    asked = []

    def poison() -> bool:
        asked.append(None)
        if len(asked) == 8:  # before the 8th step
            world.dataset.values[:] = np.nan
        return False

    with pytest.raises(Diverged, match=r"the loss of D is not finite at step 8;.*--optim\.lr"):
        train_stage(world, stage, None, poison)
    assert checkpoint.steps(world.run.checkpoints, "phase1") == [4, 6]
    assert [line["step"] for line in read_lines(world.run.log)] == [3, 6]

    world.dataset.values[:] = clean  # and from that checkpoint all is well again
    assert train_stage(world, stage, None, never)
    straight = world_of(config, tmp_path / "straight")
    assert train_stage(straight, stage, None, never)
    for file, tensors in checkpoint.load(world.run.checkpoints / "phase1-000012").items():
        assert same(tensors, checkpoint.load(straight.run.checkpoints / "phase1-000012")[file])


def test_a_huge_learning_rate_is_noticed(tmp_path):
    config = replace(POINTS, phase1_share=1.0, optim=Optim(lr=1e30), record=Record(mode="none"))
    with pytest.raises(Diverged, match=r"the (loss|state) of \w+ is not finite at step \d"):
        train_stage(world_of(config, tmp_path), stages(config)[0], None, never)


def test_the_sentence_names_the_network():
    game = game_of()
    bad = Term("bad", lambda turn: turn.fake.sum() * torch.nan)
    game.parts = compose([game.parts, Parts(g_terms=(bad,))])
    with pytest.raises(Diverged, match="the loss of G is not finite at step 1"):
        train(game, until=3)


def test_weights_that_are_not_finite_are_never_saved(tmp_path):
    """A finite loss can have a NaN gradient: sqrt at 0, as penalties on norms have it. Of D, G's
    loss tells at once; of G, only the next step would."""
    game = game_of()
    observers.save_game(tmp_path, "phase1", game)
    root = Term("root", lambda turn: (0 * turn.fake).square().sum().sqrt())
    save = Observer("save", lambda _: observers.save_game(tmp_path, "phase1", game))
    game.parts = compose([game.parts, Parts(g_terms=(root,), observers=(save,))])
    with pytest.raises(Diverged, match="the state of G is not finite at step 1"):
        train(game, until=3)
    assert checkpoint.steps(tmp_path, "phase1") == [0]


def moment_of(step: int, d_loss: float, **others: float) -> Moment:
    logits = torch.zeros(4)
    turn = Turn(step - 1, step - 1, "D", None, None, logits, logits, None, real_logits=logits,
                fake_logits=logits)  # fmt: skip
    return Moment(step, [turn], {"D": d_loss, **others, "G": 5.0}, is_last=False)


def logging_of(run: RunDir, display: Overheard) -> observers.Logging:
    return observers.Logging(run, "phase1", launch(POINTS), display, 8, lambda step: 1e-4, 0)


def test_that_d_has_won_is_said_once(tmp_path):
    run, display = RunDir(tmp_path), Overheard()
    logging = logging_of(run, display)
    for step in range(1, 30):
        logging.look(moment_of(step, 0.5 if step < 5 else 0.01))
    warnings = [line for line in read_lines(run.log) if "warning" in line]
    assert [line["step"] for line in warnings] == [14]  # the 10th line in a row
    assert warnings[0]["warning"].startswith("D has won: its loss stayed under 0.05")
    assert sum("D has won" in text for text in display.said) == 1

    later = logging_of(run, display)  # after a resume
    for step in range(30, 50):
        later.look(moment_of(step, 0.01))
    assert sum("D has won" in text for text in display.said) == 1
    assert run_summary(run).count("warning: D has won") == 1


def test_that_the_critic_has_won_is_said_beside_it(tmp_path):
    """Colored MNIST, k = 5: the critic knew fakes by their batches, and rejection did nothing."""
    run, display = RunDir(tmp_path), Overheard()
    for part in (range(1, 20), range(20, 40)):  # with a resume between
        logging = logging_of(run, display)
        for step in part:
            logging.look(moment_of(step, 1.3 if step < 25 else 0.01, critic=0.01))
    warnings = [line for line in read_lines(run.log) if "warning" in line]
    assert [line["step"] for line in warnings] == [10, 34]
    assert warnings[0]["warning"].startswith("The critic has won: its loss stayed under 0.05")
    assert "--critic.forward joint hides batches" in warnings[0]["warning"]
    assert warnings[0]["warning"].endswith("--critic.fakes reals hides fakes")
    assert warnings[1]["warning"].startswith("D has won")


def test_a_resume_still_counts_the_lines_before_it(tmp_path):
    run, display = RunDir(tmp_path), Overheard()
    for half in (range(1, 6), range(6, 11)):
        logging = logging_of(run, display)
        for step in half:
            logging.look(moment_of(step, 0.01))
    assert [line["step"] for line in read_lines(run.log) if "warning" in line] == [10]


def test_one_bad_line_is_no_defeat(tmp_path):
    run, display = RunDir(tmp_path), Overheard()
    logging = logging_of(run, display)
    for step in range(1, 30):
        logging.look(moment_of(step, 0.5 if step % 10 == 0 else 0.01))
    assert not any("warning" in line for line in read_lines(run.log))


def test_the_report_repeats_that_d_has_won(finished_run, tmp_path):
    run = RunDir(shutil.copytree(finished_run, tmp_path / "run"))
    warning = {"stage": "weighted", "step": 9, "warning": "D has won: its loss stayed low"}
    with run.log.open("a") as log:
        log.write(json.dumps(warning) + "\n")
    assert "D has won: its loss stayed low" in write_report(run.path).read_text()
    assert "warning: D has won: its loss stayed low" in run_summary(run)


# --- free recording ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_dis", [1, 2])
def test_free_moments_are_those_of_the_training_logits(tmp_path, n_dis):
    config = replace(POINTS, n_dis=n_dis, steps=40, phase1_share=1.0)
    game = game_of(config)
    record = LdrRecord(tmp_path, 48)
    free = observers.free_recording(record, game.draws.fabric, 48, start=5)
    game.parts = compose([game.parts, free])
    seen = watched(game)
    assert train(game, until=40)

    logits: dict[int, list[float]] = {i: [] for i in range(48)}
    for moment in seen[4:]:  # from step 5 on
        for turn in moment.turns[:-1]:
            for index, logit in zip(turn.indices.tolist(), turn.real_logits.tolist()):
                logits[index].append(logit)
    count, ldrm, ldrv = record.free_moments()
    assert count.tolist() == [len(values) for values in logits.values()]
    assert ldrm == pytest.approx([np.mean(v) for v in logits.values()], abs=1e-5)
    assert ldrv == pytest.approx([np.var(v, ddof=1) for v in logits.values()], abs=1e-5)


def test_ldrv_is_refused_under_4_sightings(tmp_path):
    config = replace(POINTS, record=Record(mode="free", start=1), phase1_share=1.0)
    world, _ = trained_phase1(config, tmp_path)  # 12 steps of 8: each of 48 is seen twice
    count, ldrm, ldrv = LdrRecord(world.run.record, 48).free_moments()
    assert set(count.tolist()) == {2}
    assert np.isfinite(ldrm).all() and np.isnan(ldrv).all()
    _, ldrv = free_moments(np.array([3, 4]), np.zeros(2, np.float32), np.ones(2, np.float32))
    assert np.isnan(ldrv[0]) and ldrv[1] == pytest.approx(1 / 3)


def test_free_moments_survive_a_resume(tmp_path):
    config = replace(POINTS, record=Record(mode="free", start=1), phase1_share=1.0)
    straight, _ = trained_phase1(config, tmp_path / "straight")
    halting = world_of(config, tmp_path / "halting")
    answers = iter([False] * 5 + [True])
    assert not train_stage(halting, stages(config)[0], None, lambda: next(answers))
    assert train_stage(halting, stages(config)[0], None, never)
    for mine, its in zip(
        LdrRecord(straight.run.record, 48).free_moments(),
        LdrRecord(halting.run.record, 48).free_moments(),
    ):
        assert np.array_equal(mine, its, equal_nan=True)


def test_records_refuse_a_discriminator_that_diverged(tmp_path):
    with pytest.raises(UserError, match="the record of step 3 holds values that are not finite"):
        LdrRecord(tmp_path, 2).add(3, np.array([1.0, np.nan]))
