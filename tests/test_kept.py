import resource
from dataclasses import replace
from shutil import rmtree

import numpy as np
import pytest
from tiny import DIGITS, POINTS, world_of
from torch import nn

from diagan import checkpoint
from diagan.errors import UserError
from diagan.kept import kept_steps, record_kept
from diagan.stages import new_game, open_record, restore, stages, train_stage


def never() -> bool:
    return False


def trained(c, path, keep=()):
    world = replace(world_of(c, path), keep=keep)
    assert train_stage(world, stages(c)[0], None, never)
    return world


def records(world):
    record = open_record(world.run, world.config, world.dataset)
    parts = ("", "heldout")
    return {(step, part): record.read(step, part) for step in record.steps for part in parts}


def without_records(world, c, path):
    """A run with the settings `c` to which only D at some steps was given."""
    other = world_of(c, path)
    other.run.kept.parent.mkdir(parents=True)
    world.run.kept.rename(other.run.kept)
    return other


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("head", [False, True])
def test_a_record_of_a_d_that_was_kept_is_the_one_it_would_have_taken(mode, head, tmp_path):
    """BatchNorm, dropout and the order of train mode included."""
    c = replace(DIGITS, record=replace(DIGITS.record, mode=mode))
    c = replace(c, methods=replace(c.methods, logistic_head=head))
    live = trained(c, tmp_path / "live", keep={2, 4, 6})
    later = without_records(live, c, tmp_path / "later")
    assert record_kept(later, never)
    mine, theirs = records(live), records(later)
    assert mine.keys() == theirs.keys() and len(mine) == 6
    assert all(np.array_equal(mine[key], theirs[key]) for key in mine)
    assert np.ptp(mine[6, ""]) > 0


def test_keeping_d_changes_nothing_and_only_what_is_asked_for_is_kept(tmp_path):
    plain, keeping = trained(POINTS, tmp_path / "a"), trained(POINTS, tmp_path / "b", keep={1, 5})
    assert kept_steps(plain.run) == set() and kept_steps(keeping.run) == {1, 5}
    end = "checkpoints/phase1-000006"
    for name in ("G", "D", "D.optim"):
        files = [w.run.path / end / f"{name}.safetensors" for w in (plain, keeping)]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_what_is_recorded_is_not_recorded_again_and_a_stop_is_heard(tmp_path):
    live = trained(POINTS, tmp_path / "live", keep={2, 4, 6})
    assert record_kept(live, lambda: pytest.fail("there is nothing to do"))
    later = without_records(live, POINTS, tmp_path / "later")
    answers = iter([False, True])
    assert not record_kept(later, lambda: next(answers))
    assert open_record(later.run, POINTS, later.dataset).steps == [2]
    assert record_kept(later, never)
    assert open_record(later.run, POINTS, later.dataset).steps == [2, 4, 6]


def test_a_d_that_is_gone_is_told_before_anything_is_recorded(tmp_path):
    live = trained(POINTS, tmp_path / "live", keep={2, 4, 6})
    later = without_records(live, POINTS, tmp_path / "later")
    (later.run.kept / "000004.safetensors").unlink()
    with pytest.raises(UserError, match="neither a record nor D of step 4"):
        record_kept(later, never)
    assert open_record(later.run, POINTS, later.dataset).steps == []


def test_what_lies_beyond_the_step_that_a_run_goes_on_from_is_cut(tmp_path):
    live = trained(POINTS, tmp_path / "live", keep={2, 3, 5, 6})
    rmtree(live.run.checkpoints / "phase1-000006")
    restore(live, stages(POINTS)[0], new_game(POINTS, live.dataset, live.fabric, stages(POINTS)[0]))
    assert kept_steps(live.run) == {2, 3}


def test_a_full_disk_is_told_in_a_sentence(tmp_path):
    net = nn.Linear(1000, 100)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(UserError, match=r"cannot write .* free some disk"):
            checkpoint.keep_network(net, tmp_path / "000002.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_half_a_file_is_told_in_a_sentence(tmp_path):
    live = trained(POINTS, tmp_path / "live", keep={2, 4, 6})
    later = without_records(live, POINTS, tmp_path / "later")
    (later.run.kept / "000002.safetensors").write_bytes(b"half")
    with pytest.raises(UserError, match=r"000002.* cannot be read"):
        record_kept(later, never)
