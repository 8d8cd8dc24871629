"""D as it was at some steps of phase 1, kept so that it can be recorded in another mode later.

Recording does not touch training, so such a record is, bit for bit, the one that a run in that mode
would have taken itself.
"""

from collections.abc import Callable

from diagan import checkpoint
from diagan.config import Config
from diagan.errors import UserError
from diagan.game import Moment
from diagan.rundir import RunDir
from diagan.stages import World, new_game, open_record, recording_parts, stages
from diagan.train import agreed

PASSES = ("eval", "train")  # modes in which a record is a pass over the data


def needed_records(c: Config, step: int) -> list[int]:
    """The records up to a step that the diagnosis of `c` will read."""
    if c.record.mode not in PASSES:
        return []
    beats = range(c.record.every, step + 1, c.record.every)
    found = [beat for beat in beats if beat >= c.record_start]
    at_end = [step] if c.record.include_end and step == c.phase1_steps else []
    return sorted({*found, *at_end})


def kept_steps(run: RunDir) -> set[int]:
    return {int(file.stem) for file in run.kept.glob("[0-9]*.safetensors")}


def record_kept(world: World, should_stop: Callable[[], bool]) -> bool:
    """Take the records that the diagnosis needs and phase 1 has not taken, where D is kept; False
    where it was asked to stop."""
    c, run, fabric = world.config, world.run, world.fabric
    if not fabric.broadcast(run.kept.exists()):
        return True
    taken, kept = open_record(run, c, world.dataset).steps, kept_steps(run)
    wanted = set(needed_records(c, c.phase1_steps)) - set(taken)
    missing: list[int] = fabric.broadcast(sorted(wanted))
    if not missing:
        return True
    if lost := [step for step in missing if step not in kept]:
        raise UserError(
            f"{run.path} has neither a record nor D of step {lost[0]}, which the diagnosis needs; "
            "delete that folder to begin again"
        )
    world.display.say(f"recording D in {c.record.mode} mode as it was at {len(missing)} steps")
    game = new_game(c, world.dataset, fabric, stages(c)[0])
    (observer,) = recording_parts(world, game).observers
    for step in missing:
        if agreed(fabric, should_stop()):
            return False
        checkpoint.load_kept(game.d.net, run.kept / f"{step:06d}.safetensors")
        observer.look(Moment(step, turns=(), losses={}, is_last=False))
    return True
