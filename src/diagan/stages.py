"""The training stages of a run: who plays on which data, from where, to where."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from diagan import checkpoint, observers
from diagan.batches import at_once
from diagan.config import DCGAN, Config, Optim
from diagan.data import Dataset, as_input
from diagan.errors import UserError
from diagan.features.classifier import bundled, load_classifier
from diagan.features.slim import SlimClassifier
from diagan.game import Fakes, Method, Observer, Parts, compose
from diagan.losses import LOSSES
from diagan.methods.augment import Augment
from diagan.methods.critic import UnbiasedCritic
from diagan.methods.ema import EMA
from diagan.methods.gold import Gold
from diagan.methods.inclusive import Inclusive, pixels
from diagan.methods.logistic_head import NAME as LOGISTIC_HEAD
from diagan.methods.logistic_head import LogisticHead
from diagan.methods.packing import Packing
from diagan.methods.penalties import R1, PathLength
from diagan.methods.rotation import Rotation
from diagan.methods.topk import TopK
from diagan.networks import N_REFERENCES, build
from diagan.progress import Display
from diagan.random import seed_torch
from diagan.record import EVAL_BATCH, LdrRecord
from diagan.rundir import RunDir, cut_lines
from diagan.sampling import SwitchedStream, UniformStream, WeightedStream
from diagan.train import Draws, Game, Player, Stream, train


@dataclass(frozen=True)
class Stage:
    """A stretch of training. `weighted`: D's reals are drawn by the diagnosis' weights."""

    name: str
    start: int
    end: int
    weighted: bool = False


def stages(config: Config) -> list[Stage]:
    """Phase 1, and from its end on two arms: plain, and weighted (Dia-GAN's phase 2)."""
    p1, end = config.phase1_steps, config.steps
    found = [Stage("phase1", 0, p1)]
    if p1 < end:
        found += [Stage("plain", p1, end)] if config.plain_arm else []
        found += [Stage("weighted", p1, end, weighted=True)] if config.weighted_arm else []
    return found


@dataclass(frozen=True)
class World:
    """What all stages of a run share."""

    config: Config
    dataset: Dataset
    fabric: Fabric
    run: RunDir
    display: Display
    keep: Collection[int] = ()  # steps of phase 1 at which D is kept, to be recorded later

    def is_done(self, stage: Stage) -> bool:
        return stage.end in checkpoint.steps(self.run.checkpoints, stage.name)


def open_record(run: RunDir, c: Config, data: Dataset) -> LdrRecord:
    """The record of a run, begun if there is none."""
    return LdrRecord(run.record, data.n, fingerprint=data.fingerprint, mode=c.record.mode,
                     loss=c.loss, is_ldr=is_ldr(c))  # fmt: skip


def is_ldr(c: Config) -> bool:
    """Whether what is recorded of D is a log-density ratio."""
    return LOSSES[c.loss].is_ldr or c.methods.logistic_head


def adam(o: Optim, net: nn.Module, *, is_g: bool) -> tuple[torch.optim.Adam, float]:
    """The optimiser of a network, and its learning rate as a multiple of G's."""
    rate = 1.0 if is_g else (o.d_lr or o.lr) / o.lr
    betas = o.betas if is_g else o.d_betas or o.betas
    return torch.optim.Adam(net.parameters(), o.lr, betas, fused=True), rate


def networks(config: Config, dataset: Dataset, parts: Parts) -> dict[str, nn.Module]:
    """G, D and the critics by name, as the seed makes them."""
    seed_torch(config.seed, "init")
    how = (config.network, dataset.shape, parts.heads, parts.images_per_score)
    g, d = build(*how)
    ds = {"D": d} | {critic.name: build(*how)[1] for critic in parts.critics}
    for each in ds.values():
        each.set_references(references(dataset, parts.images_per_score))
    return {"G": g, **ds}


def new_game(
    config: Config,
    dataset: Dataset,
    fabric: Fabric,
    stage: Stage,
    weights: np.ndarray | None = None,
) -> Game:
    """The players of a stage as a fresh run has them, without observers."""
    parts = compose([method.parts() for method in stage_methods(config, stage, dataset.n)])
    nets = networks(config, dataset, parts)

    def player(
        name: str, stream: Stream | None = None, fakes: Fakes = "shared", joint: bool = False
    ) -> Player:
        net = nets[name].to(fabric.device)
        if is_quicker_channels_last(config):
            net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        # Rejection is only valid with the logistic loss, so a critic always plays that one.
        loss = LOSSES[config.loss if name in ("G", "D") else "non_saturating"]
        optimiser, rate = adam(config.optim, net, is_g=name == "G")
        return Player(name, net, optimiser, loss, stream, fakes, joint, rate)

    for_d, for_critic = streams(config, dataset.n, stage, weights)
    draws = Draws(config.seed, fabric, torch.from_numpy(dataset.values), as_input,
                  config.batch_size, config.network.latent)  # fmt: skip
    game = Game(
        g=player("G"),
        d=player("D", for_d),
        critics=[player(c.name, for_critic, c.fakes, c.joint) for c in parts.critics],
        parts=parts,
        draws=draws,
        n_dis=config.n_dis,
        learning_rate=learning_rate(config, stage),
        step=stage.start,
    )
    watching = [method.parts() for method in player_methods(config, game)]
    game.parts = compose([parts, *watching])
    return game


def is_quicker_channels_last(config: Config) -> bool:
    """Where a step was measured to be: by a sixth for the DCGAN in float32 on a CPU, not in
    bfloat16; StyleGAN2 takes a tenth longer. SNGAN is laid out so by itself."""
    where = config.device, config.precision
    return isinstance(config.network, DCGAN) and where == ("cpu", "float32")


def stage_methods(config: Config, stage: Stage, n: int) -> list[Method]:
    """The methods that play in a stage on n samples; `compose` drops what has weight zero."""
    m, n_batches, penalty = config.methods, ceil(n / config.batch_size), config.penalty
    has_r1 = stage.start > 0 or penalty.r1_from == "phase1"
    half_batch = max(config.batch_size // 2, 1)  # enough for path lengths (FACTS 6)
    methods: list[Method] = [
        R1(penalty.r1 if has_r1 else 0.0, penalty.every),
        PathLength(penalty.path_length, penalty.path_every, half_batch),
        TopK(m.topk.floor, m.topk.decay, steps_per_pass=n_batches),
        Packing(m.packing),
        Rotation(m.rotation.d, m.rotation.g),
        LogisticHead(m.logistic_head),
        Augment(m.augment.colour, m.augment.translation, m.augment.cutout),
    ]
    if m.gold != "off" and stage.start > 0:
        methods += [Gold(m.gold)]
    if stage.weighted and config.critic.on:
        how = config.critic
        methods += [UnbiasedCritic(how.fakes, joint=how.forward == "joint")]
    return methods


def player_methods(config: Config, game: Game) -> list[Method]:
    """The methods that need to know the players or the data."""
    m, draws, n = config.methods, game.draws, len(game.draws.values)
    stream = UniformStream(n, config.seed, purpose="inclusive")
    inclusive = Inclusive(
        m.inclusive.weight, m.inclusive.interpolation, n_candidates=m.inclusive.candidates * n,
        every=max(int(m.inclusive.passes * n / config.batch_size), 1),
        batch_size=config.batch_size, values=draws.values, as_input=as_input,
        reals=lambda position: draws.reals(stream, position),
        n_latent=config.network.latent, features=likeness(config, draws.fabric.device),
    )  # fmt: skip
    return [EMA(m.ema, game.g.net), inclusive]


def likeness(config: Config, device: torch.device) -> Callable[[Tensor], Tensor]:
    """The features in which Inclusive GAN compares images."""
    if config.methods.inclusive.extractor == "pixels":
        return pixels
    net, _ = load_classifier(bundled(config.data.kind))
    return SlimClassifier(net).to(device)


def streams(
    config: Config, n: int, stage: Stage, weights: np.ndarray | None
) -> tuple[Stream, Stream]:
    """Indices of reals: D's, and those of further critics."""
    uniform = UniformStream(n, config.seed)
    if not stage.weighted:
        return uniform, uniform
    assert weights is not None
    for_d = WeightedStream(weights, config.seed)
    if config.critic.stream == "uniform":
        return for_d, uniform
    # As published: when its loader runs out, the second D is given the weighted one (FACTS 0.1).
    start = stage.start * config.n_dis * config.batch_size
    again = WeightedStream(weights, config.seed, purpose="weighted/critic")
    return for_d, SwitchedStream(uniform, again, at=start + n)


def references(dataset: Dataset, images_per_score: int) -> Tensor:
    """A few samples from all over the dataset: mates for a D with batch statistics (DESIGN 4)."""
    n = N_REFERENCES * images_per_score
    return as_input(torch.from_numpy(dataset.values[np.arange(n) * dataset.n // n]))


def learning_rate(config: Config, stage: Stage) -> Callable[[int], float]:
    """The rate at a step; a later stage goes on where the one before ended, or begins anew."""
    lr, decay = config.optim.lr, config.optim.decay
    if decay == "none":
        return lambda step: lr
    full = stage.start if decay == "restart" else 0
    return lambda step: lr * (1 - (step - full) / (config.steps - full))


def train_stage(
    world: World, stage: Stage, weights: np.ndarray | None, should_stop: Callable[[], bool]
) -> bool:
    """Train a stage to its end, from wherever it stands; False where it was asked to stop."""
    config, run, fabric = world.config, world.run, world.fabric
    game = new_game(config, world.dataset, fabric, stage, weights)
    if not stage.weighted and stage.start == 0:
        game.parts = compose([game.parts, recording_parts(world, game)])
    restore(world, stage, game)
    logging = observers.Logging(run, stage.name, fabric, world.display, config.batch_size,
                                game.learning_rate, game.step, game.d.rate)  # fmt: skip
    watching = [Observer("log", logging.look, config.log_every, at_end=True)]
    if world.dataset.is_image:
        folder = run.generated / "progress"
        watching += [observers.grids(folder, stage.name, game, config.grid_every)]
    if world.keep and stage.start == 0:
        watching += [observers.keeping(run.kept, game.d.net, fabric, world.keep)]
    # Last of all: what a checkpoint's step has recorded and logged is on disk before it is.
    save = Observer("checkpoint", lambda _: observers.save_game(run.checkpoints, stage.name, game),
                    config.checkpoint_every, at_end=True)  # fmt: skip
    game.parts = compose([game.parts, Parts(observers=(*watching, save))])
    world.display.begin(stage.name, stage.start, stage.end)
    if not train(game, stage.end, should_stop):
        observers.save_game(run.checkpoints, stage.name, game)
        return False
    return True


def recording_parts(world: World, game: Game) -> Parts:
    """What records in phase 1."""
    c, dataset = world.config, world.dataset
    if c.record.mode == "none":
        return Parts()
    record = open_record(world.run, c, dataset)
    if c.record.mode == "free":
        return observers.free_recording(record, world.fabric, dataset.n, c.record_start)
    # The training data last: a step that has their record is recorded whole.
    sets = {"heldout": torch.from_numpy(dataset.heldout), "": game.draws.values}
    return observers.recording(
        record, game.d.net, world.fabric, sets, mode=c.record.mode,
        batch_size=record_batch(c, dataset.shape), every=c.record.every, start=c.record_start,
        at_end=c.record.include_end, seed=c.seed,
        head=LOGISTIC_HEAD if c.methods.logistic_head else "",
    )  # fmt: skip


def record_batch(c: Config, shape: tuple[int, ...]) -> int:
    """In train mode the batch is part of the measurement; in eval mode only of its speed."""
    return c.batch_size if c.record.mode == "train" else at_once(shape, EVAL_BATCH)


def restore(world: World, stage: Stage, game: Game) -> None:
    """Go on from the stage's last checkpoint, or from the end of phase 1; cut what lies beyond."""
    folder, run = world.run.checkpoints, world.run
    own = checkpoint.steps(folder, stage.name)
    if own:
        game.step = own[-1]
        observers.load_game(folder / checkpoint.folder_name(stage.name, own[-1]), game)
    elif stage.start > 0:
        start = folder / checkpoint.folder_name("phase1", stage.start)
        if not start.exists():
            raise UserError(f"{start} is gone, from which {stage.name} starts; run phase 1 again")
        observers.load_game(start, game)
    if world.fabric.is_global_zero:
        cut_lines(run.log, lambda line: line["stage"] != stage.name or line["step"] <= game.step)
        if stage.start == 0:
            run.diagnosis.unlink(missing_ok=True)  # of another window, if there is one already
            if run.record.exists():
                open_record(run, world.config, world.dataset).cut(after=game.step)
            for file in run.kept.glob("*.safetensors"):
                if int(file.stem) > game.step:
                    file.unlink()
    world.fabric.barrier()
