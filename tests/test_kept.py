from dataclasses import replace

import numpy as np
import pytest
from tiny import DIGITS, POINTS, world_of

from diagan.errors import UserError
from diagan.kept import kept_steps, record_kept
from diagan.stages import open_record, stages, train_stage


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


def test_half_a_file_is_told_in_a_sentence(tmp_path):
    live = trained(POINTS, tmp_path / "live", keep={2})
    later = without_records(live, POINTS, tmp_path / "later")
    (later.run.kept / "000002.safetensors").write_bytes(b"half")
    with pytest.raises(UserError, match=r"000002.* cannot be read"):
        record_kept(later, never)
