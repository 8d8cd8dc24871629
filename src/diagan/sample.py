"""Draw from a finished run: its generator, and rejection with its unbiased discriminator."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from diagan import checkpoint
from diagan.batches import at_once
from diagan.config import Config
from diagan.device import best_device, device_of
from diagan.errors import UserError
from diagan.losses import LOSSES
from diagan.methods.ema import averages
from diagan.methods.logistic_head import NAME as LOGISTIC_HEAD
from diagan.networks import Pair, build
from diagan.networks.common import Chain, settle, settle_generator
from diagan.progress import counted
from diagan.random import seed_torch
from diagan.reject import RejectionSampler
from diagan.rundata import read_settings
from diagan.rundir import RunDir, open_run, read_json, refuse_filled

BATCH = 256  # samples at once at most
N_HELD = 256  # samples in memory while a folder is filled
N_GRID = 64
ARMS = ("weighted", "plain", "phase1")  # by preference


@dataclass
class TrainedGenerator:
    """A generator with the discriminator that can reject for it, both in eval mode.

    They may be on another device; what goes in and comes out is on the CPU.
    """

    g: nn.Module
    d: nn.Module
    config: Config
    arm: str
    step: int
    rejects_by: str  # critic, critic and D, logistic head, or D
    shape: tuple[int, ...]  # of a sample

    @property
    def is_ldr(self) -> bool:
        """A critic and a logistic head always play the logistic loss, whatever D plays."""
        return self.rejects_by != "D" or LOSSES[self.config.loss].is_ldr

    @property
    def is_finished(self) -> bool:
        """Whether its training has come to its end."""
        c = self.config
        return self.step == (c.phase1_steps if self.arm == "phase1" else c.steps)

    def __str__(self) -> str:
        unfinished = "" if self.is_finished else ", its training unfinished"
        return f"{self.arm} at step {self.step}{unfinished}"

    def generate(self, n: int, generator: torch.Generator) -> Tensor:
        """n samples in [-1, 1], or points, straight from G."""
        latents = torch.randn(n, self.config.network.latent, generator=generator)
        with torch.no_grad():
            batches = latents.split(at_once(self.shape, BATCH))
            return torch.cat([self.g(z.to(device_of(self.g))).cpu() for z in batches])

    def ldr(self, samples: Tensor) -> Tensor:
        """The discriminator's logit of samples [B]."""
        with torch.no_grad():
            batches = samples.split(at_once(self.shape, BATCH))
            return torch.cat([self.d(x.to(device_of(self.d))).logits.cpu() for x in batches])

    def judge(self) -> "TrainedGenerator":
        """The one whose LDR rejects: where that is set, with a D whose BatchNorm knows fakes alone,
        as many as a burn-in has, dropout included.

        The published evaluation of the digits does so by a running mean, and to G as well.
        """
        r, source = self.config.rejection, torch.Generator().manual_seed(0)
        if r.statistics == "training":
            return self
        d, starts = deepcopy(self.d), range(0, r.burn_in, r.batch_size)
        with torch.random.fork_rng():
            seed_torch(0, "reject/settle")
            settle(d, (self.generate(r.batch_size, source).to(device_of(d)) for _ in starts))
        return replace(self, d=d)

    def rejection_sampler(self, seed: int = 0, budget: float | None = None) -> RejectionSampler:
        if not self.is_ldr:
            raise UserError(
                "rejection needs a density ratio, and the raw output of a hinge discriminator is "
                "none; sample with --no-drs"
            )
        if self.config.methods.packing > 1:
            raise UserError(
                "rejection needs a score of each image, and this discriminator scores "
                f"{self.config.methods.packing} at once; sample with --no-drs"
            )
        r = self.config.rejection
        return RejectionSampler(
            self.generate, self.judge().ldr, batch_size=r.batch_size, burn_in=r.burn_in,
            percentile=r.percentile, epsilon=r.epsilon, gamma=r.gamma,
            budget=r.budget if budget is None else budget, seed=seed,
        )  # fmt: skip

    def draw(self, seed: int = 0, *, drs: bool = True, budget: float | None = None) -> "Drawing":
        """Samples to be taken a few at a time; `budget` is for rejection, else the run's."""
        if drs:
            sampler = self.rejection_sampler(seed, budget)
            return Drawing(sampler.sample, sampler)
        source = torch.Generator().manual_seed(seed)
        return Drawing(lambda n: self.generate(n, source))

    def sample(
        self, n: int, *, seed: int = 0, drs: bool = True, budget: float | None = None
    ) -> np.ndarray:
        """n samples: uint8 images [n, C, H, W], or float32 points [n, 2]."""
        return as_stored(self.draw(seed, drs=drs, budget=budget).take(n))


@dataclass(frozen=True)
class Drawing:
    """What a generator makes, as much as is asked for; what rejection kept beyond it waits."""

    take: Callable[[int], Tensor]
    sampler: RejectionSampler | None = None

    @property
    def acceptance_rate(self) -> float | None:
        return self.sampler.acceptance_rate if self.sampler else None

    def batches(self, n: int, size: int) -> Iterator[np.ndarray]:
        """n samples as a dataset holds them, at most `size` at a time."""
        for start in range(0, n, size):
            yield as_stored(self.take(min(size, n - start)))


def as_stored(samples: Tensor) -> np.ndarray:
    """From what G makes to what a dataset holds: uint8 for images, float32 for points."""
    if samples.dim() == 2:
        return samples.numpy()
    return ((samples.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).numpy()


def load_generator(path: str | Path, arm: str | None = None) -> TrainedGenerator:
    """The trained generator of a run folder; `arm` is weighted, plain or phase1."""
    run = open_run(path)
    arm = arm or next((a for a in ARMS if checkpoint.steps(run.checkpoints, a)), None)
    steps = checkpoint.steps(run.checkpoints, arm) if arm else []
    if not arm or not steps:
        raise UserError(f"{path} has no checkpoint of {arm or 'any stage'} yet; train it first")
    return load_at(run, arm, steps[-1])


def load_at(run: RunDir, arm: str, step: int) -> TrainedGenerator:
    settings = read_settings(run)
    where = run.checkpoints / checkpoint.folder_name(arm, step)
    tensors = checkpoint.load(where)
    shape = tuple(read_json(run.provenance)["shape"])
    # A critic that was shown D's reals knows p_data / p_s, and D knows p_s / p_g.
    chained = "critic" in tensors and settings.critic.fakes == "reals"
    names = ["critic", "D"] if chained else ["critic" if "critic" in tensors else "D"]
    pairs = [load_pair(name, tensors, settings, shape, str(where)) for name in names]
    g, ds = pairs[0][0], [d for _, d in pairs]
    d = Chain(*ds) if chained else ds[0]
    average = averages(tensors.get("state", {}))
    checkpoint.load_network(g, {**tensors["G"], **average}, str(where))
    for net in (g, d):
        net.eval().to(best_device())
    if average:
        settle_generator(g, settings.network.latent)
    has_head = names == ["D"] and LOGISTIC_HEAD in ds[0].heads
    rejects_by = "logistic head" if has_head else " and ".join(names)
    return TrainedGenerator(g, d, settings, arm, step, rejects_by, shape)


def load_pair(
    name: str, tensors: Mapping[str, Mapping[str, Tensor]], c: Config, shape: tuple[int, ...],
    where: str,
) -> Pair:  # fmt: skip
    """An empty G, and D or a critic; where D has a logistic head its logit is that one, a
    log-density ratio."""
    # A method may have given it heads; each has a bias.
    heads = {key.split(".")[1]: len(bias) for key, bias in tensors[name].items()
             if key.startswith("heads.") and key.endswith(".bias")}  # fmt: skip
    g, d = build(c.network, shape, heads, c.methods.packing)
    checkpoint.load_network(d, tensors[name], where)
    if name == "D" and LOGISTIC_HEAD in heads:
        d.logit = d.heads[LOGISTIC_HEAD]
    return g, d


def image_grid(images: np.ndarray, columns: int = 8, pad: int = 2, scale: int = 1) -> Image.Image:
    """uint8 images [n, C, H, W] side by side, on a mid grey."""
    n, c, h, w = images.shape
    rows = -(-n // columns)
    sheet = np.full((rows * (h + pad) + pad, columns * (w + pad) + pad, c), 128, dtype=np.uint8)
    for i, image in enumerate(images):
        y, x = pad + (i // columns) * (h + pad), pad + (i % columns) * (w + pad)
        sheet[y : y + h, x : x + w] = image.transpose(1, 2, 0)
    picture = Image.fromarray(sheet.squeeze(2) if c == 1 else sheet)
    return picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)


def write_samples(
    path: str | Path, n: int, out: str | Path, *, drs: bool = True, budget: float | None = None,
    arm: str | None = None, seed: int = 0,
) -> str:  # fmt: skip
    """PNGs (or points.npy) in a folder, and a grid beside it; what was written, in a sentence."""
    folder = Path(out)
    if n < 1:
        raise UserError(f"--n {n}: expected at least 1")
    if budget is not None and not drs:
        raise UserError("--budget is for rejection sampling; leave it out with --no-drs")
    refuse_filled(folder)
    grid = Path(f"{folder}.png")
    if grid.exists():
        raise UserError(f"{grid} is there already, where the grid would go; choose another --out")
    generator = load_generator(path, arm)
    drawing = generator.draw(seed, drs=drs, budget=budget)
    batches = drawing.batches(n, N_HELD)
    first = next(batches)  # before the folder: where nothing can be drawn, nothing is left behind
    folder.mkdir(parents=True, exist_ok=True)
    if first.ndim == 2:
        np.save(folder / "points.npy", np.concatenate([first, *batches]))
    else:
        image_grid(first[:N_GRID], scale=2).save(grid)
        images = chain(first, chain.from_iterable(batches))
        for number, image in enumerate(counted(images, n, "drawing")):
            pixels = image.transpose(1, 2, 0)
            picture = Image.fromarray(pixels.squeeze(2) if len(image) == 1 else pixels)
            picture.save(folder / f"{number:06d}.png")
    rate = drawing.acceptance_rate
    kept = "" if rate is None else f", {rate:.1%} of the proposals kept by {generator.rejects_by}"
    return f"wrote {n} samples of {generator} to {folder}{kept}"
