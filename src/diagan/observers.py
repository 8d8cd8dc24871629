"""What looks on while a run trains: the record, the log, the grids, the checkpoints."""

import copy
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from diagan import checkpoint, ldr
from diagan.batches import at_once
from diagan.data import as_input
from diagan.engine import across
from diagan.errors import Diverged, UserError
from diagan.game import Moment, Observer, Parts, Turn
from diagan.methods.ema import averages
from diagan.networks.common import settle_generator
from diagan.progress import Display
from diagan.record import LdrRecord, score_all
from diagan.rundir import RunDir, append_line, read_lines, replacing
from diagan.sample import as_stored, image_grid
from diagan.train import Game, share_buffers

WON_LOSS = 0.05  # of a discriminator, where 1.39 is a draw
WON_LINES = 10
WON = {  # what is said, and what follows
    "D": ("D has won",
          "G learns nothing more from it, and its images may be noise; do not trust what comes "
          "after"),
    "critic": ("The critic has won",
               "It knows G's images by their batches or their flaws, and rejection by it will "
               "hardly correct; --critic.forward joint hides batches from it, and --critic.fakes "
               "reals hides fakes"),
}  # fmt: skip


def recording(
    record: LdrRecord, d: nn.Module, fabric: Fabric, sets: Mapping[str, Tensor], *,
    mode: Any, batch_size: int, every: int, start: int, at_end: bool, seed: int, head: str = "",
) -> Parts:  # fmt: skip
    """A pass of D over each of the sets ("" is the training data) every so many steps."""

    def look(moment: Moment) -> None:
        share_buffers(fabric, d)
        for part, values in sets.items():
            logits = score_all(
                d, values, as_input, mode=mode, batch_size=batch_size, seed=seed, step=moment.step,
                rank=fabric.global_rank, world_size=fabric.world_size, head=head,
            )  # fmt: skip
            everywhere = across(fabric, logits, "sum")
            if fabric.is_global_zero:
                record.write(moment.step, everywhere, part)

    observer = Observer("record", look, every, start, at_end)
    return Parts(observers=(observer,), needs_one_score_per_image="recording")


def keeping(folder: Path, d: nn.Module, fabric: Fabric, steps: Collection[int]) -> Observer:
    """D as it is at some steps, to be recorded in another mode later."""

    def look(moment: Moment) -> None:
        if moment.step in steps:
            share_buffers(fabric, d)
            if fabric.is_global_zero:
                checkpoint.keep_network(d, folder / f"{moment.step:06d}.safetensors")

    return Observer("keep", look)


def free_recording(record: LdrRecord, fabric: Fabric, n: int, start: int) -> Parts:
    """Running moments of the logits that D computes in training anyway: no extra pass."""
    state = {
        "record.count": torch.zeros(n, dtype=torch.int32),
        "record.mean": torch.zeros(n),
        "record.m2": torch.zeros(n),
    }

    def look(moment: Moment) -> None:
        count, mean, m2 = (tensor.numpy() for tensor in state.values())
        for turn in moment.turns:
            if turn.player == "D":
                indices, logits = gathered(fabric, turn)
                ldr.merge_batch(count, mean, m2, indices.numpy(), logits.numpy())
        if moment.is_last and fabric.is_global_zero:
            record.write_free(count, mean, m2)

    observer = Observer("record", look, start=start)
    return Parts(observers=(observer,), state=state, needs_one_score_per_image="recording")


def gathered(fabric: Fabric, turn: Turn) -> tuple[Tensor, Tensor]:
    """Indices and logits of the reals of a turn, of all processes."""
    assert turn.indices is not None and turn.real_logits is not None
    logits = turn.real_logits.detach().float().cpu()
    if fabric.world_size == 1:
        return turn.indices, logits
    parts = [fabric.all_gather(part) for part in (turn.indices, logits)]
    indices, logits = (part.flatten().cpu() for part in parts if isinstance(part, Tensor))
    return indices, logits


class Logging:
    """log.jsonl, TensorBoard and the display, every so many steps."""

    def __init__(
        self, run: RunDir, stage: str, fabric: Fabric, display: Display, batch_size: int,
        learning_rate: Callable[[int], float], first_step: int, d_rate: float = 1.0,
    ) -> None:  # fmt: skip
        from torch.utils.tensorboard import SummaryWriter

        self.run, self.stage, self.fabric, self.display = run, stage, fabric, display
        self.batch_size, self.learning_rate, self.d_rate = batch_size, learning_rate, d_rate
        self.clock = (first_step, time.monotonic())
        lines = [line for line in read_lines(run.log) if line["stage"] == stage]
        self.losses = {
            name: [line[f"loss_{name}"] for line in lines if f"loss_{name}" in line] for name in WON
        }
        said = " ".join(line.get("warning", "") for line in lines)
        self.warned = {name for name, (claim, _) in WON.items() if claim in said}
        if fabric.is_global_zero:
            self.curves = SummaryWriter(str(run.curves / stage), purge_step=first_step + 1)

    def look(self, moment: Moment) -> None:
        line = {f"loss_{name}": value for name, value in moment.losses.items()}
        line |= mean_outputs([turn for turn in moment.turns if turn.player == "D"])
        values = across(self.fabric, torch.tensor(list(line.values())), "mean")
        if not self.fabric.is_global_zero:
            return
        line = dict(zip(line, values.tolist()))
        then, at = self.clock
        self.clock = (moment.step, time.monotonic())
        speed = (moment.step - then) / max(self.clock[1] - at, 1e-9)
        n_rounds = sum(turn.player == "D" for turn in moment.turns)
        line |= {"images": moment.step * n_rounds * self.batch_size}
        line |= {"lr": self.learning_rate(moment.step - 1)}
        if self.d_rate != 1:
            line |= {"lr_D": self.d_rate * line["lr"]}
        for name, value in line.items():
            self.curves.add_scalar(name, value, moment.step)
        self.curves.flush()  # what the log has, the curves have, whatever comes
        where = {"stage": self.stage, "step": moment.step}
        append_line(self.run.log, where | line | {"time": time.time(), "steps_per_second": speed})
        self.display.update(moment.step, line, speed)
        for name in WON:
            if f"loss_{name}" in line:
                self.warn_if_won(name, where, line[f"loss_{name}"])

    def warn_if_won(self, name: str, where: dict[str, Any], loss: float) -> None:
        self.losses[name].append(loss)
        recent = self.losses[name][-WON_LINES:]
        if name not in self.warned and len(recent) == WON_LINES and max(recent) < WON_LOSS:
            self.warned.add(name)
            claim, so = WON[name]
            text = (
                f"{claim}: its loss stayed under {WON_LOSS} for the last {WON_LINES} lines of the "
                f"log up to step {where['step']}. {so}"
            )
            append_line(self.run.log, where | {"warning": text})
            self.display.say(text)


def mean_outputs(turns: list[Turn]) -> dict[str, float]:
    """D(real) and D(fake): the mean of the sigmoid of the logits."""

    def mean(name: str) -> float:
        logits = torch.cat([getattr(turn, name).detach() for turn in turns])
        return logits.sigmoid().mean().item()

    return {"d_real": mean("real_logits"), "d_fake": mean("fake_logits")}


def grids(folder: Path, stage: str, game: Game, every: int, n: int = 64) -> Observer:
    """G's images of the same latents every time, in eval mode; with the average of its weights
    where one is kept."""
    shape = (n, game.draws.n_latent)
    latents = torch.randn(shape, generator=game.draws.generator("grid", 0))
    latents = latents.to(game.draws.fabric.device)
    size = at_once(game.draws.values.shape[1:], n)

    def look(moment: Moment) -> None:
        if game.draws.fabric.is_global_zero:
            g = copy.deepcopy(game.g.net).eval()
            if average := averages(game.parts.state):
                g.load_state_dict(average, strict=False)
                settle_generator(g, game.draws.n_latent)
            with torch.no_grad():
                images = as_stored(torch.cat([g(z).float().cpu() for z in latents.split(size)]))
            with replacing(folder / f"{stage}-{moment.step:06d}.png") as temporary:
                image_grid(images, scale=2).save(temporary, format="PNG")

    return Observer("grids", look, every)


def save_game(folder: Path, stage: str, game: Game) -> None:
    """Networks, optimisers and methods' tensors as they are now, if they are fit to go on from."""
    fabric = game.draws.fabric
    for player in game.players:
        share_buffers(fabric, player.net)
        if not all(bool(tensor.isfinite().all()) for tensor in player.net.state_dict().values()):
            raise Diverged(player.name, "state", game.step)
    if fabric.is_global_zero:
        files: dict[str, Mapping[str, Tensor]] = {}
        for player in game.players:
            files[player.name] = player.net.state_dict()
            moments = checkpoint.optimiser_tensors(player.net, player.optimiser)
            files[f"{player.name}.optim"] = moments
        if game.parts.state:
            files["state"] = game.parts.state
        checkpoint.save(folder, stage, game.step, files)
        checkpoint.prune(folder, stage)
    fabric.barrier()


def load_game(path: Path, game: Game) -> None:
    """The reverse. A critic that the checkpoint does not know starts as a copy of D; one that is
    to see no fakes starts anew, since D has seen many."""
    files = checkpoint.load(path)
    for player in game.players:
        if player.fakes == "reals" and player.name not in files:
            continue
        source = player.name if player.name in files else "D"
        if missing := {source, f"{source}.optim"} - files.keys():
            raise UserError(f"{path} has no {min(missing)}.safetensors; delete this folder to go "
                            "on from the checkpoint before")  # fmt: skip
        checkpoint.load_network(player.net, files[source], str(path))
        checkpoint.load_optimiser(player.net, player.optimiser, files[f"{source}.optim"])
    for name, tensor in game.parts.state.items():
        if name in files.get("state", {}):
            tensor.copy_(files["state"][name])
