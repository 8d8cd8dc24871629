"""What a run is, part by part and as a whole."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from tyro.conf import arg

from diagan.config.datasets import DataConfig
from diagan.config.methods import Methods
from diagan.config.networks import NetworkConfig


@dataclass(frozen=True)
class Optim:
    lr: float = 1e-4
    betas: tuple[float, float] = (0.5, 0.9)
    decay: Literal["linear", "restart", "none"] = "linear"
    """To zero at the last step; restart: from phase 2 on once more from the full rate."""
    d_lr: float | None = None
    """Of D and the critic, where it is not that of G."""
    d_betas: tuple[float, float] | None = None


@dataclass(frozen=True)
class Penalty:
    """On D's gradient at the reals (R1); keeps D, and so the LDR, smooth."""

    r1: float = 0.0
    """gamma; 0: none, as in the paper but for StyleGAN2."""
    r1_from: Literal["phase1", "phase2"] = "phase1"
    """phase2: phase 1 stays as it is, and what is trained from its end is kept smooth."""
    every: int = 1
    """Every so many updates of D, and so many times as strong."""
    path_length: float = 0.0
    """On how unevenly G's images move with its latents; 0: none, 2 for StyleGAN2."""
    path_every: int = 4
    """Every so many updates of G, and so many times as strong."""


@dataclass(frozen=True)
class Record:
    mode: Literal["eval", "train", "free", "none"] = "eval"
    """eval or train: D's mode in a pass over the data; free: moments of the training logits."""
    every: int = 100
    window: int = 50
    """How many records the diagnosis reads: the last ones of phase 1."""
    include_end: bool = True
    """Whether the record at the very end of phase 1 belongs to the window (the paper: yes,
    its published code: no)."""
    start: int | None = None
    """First step to record; by default where the window begins."""


@dataclass(frozen=True)
class Score:
    k: float | None = None
    """Weight of sqrt(LDRV) in the score; none: sd(LDRM) / sd(sqrt(LDRV))."""
    centre: Literal["none", "mean", "median"] = "none"
    """What is taken off each record before the moments (D's offset drifts)."""
    floor: float = 0.01
    ratio: float = 50.0
    clip: Literal["cap", "floor"] = "cap"
    """cap: at ratio x the minimum, as in the paper; floor: at the maximum / ratio."""
    exponent: float = 1.0
    """Strength of the emphasis, between floor and ratio clip."""
    terms: Literal["both", "ldrm", "ldrv"] = "both"
    """ldrm or ldrv: that alone is the score, whatever k (paper, Table A10)."""


# For data and records of a person's own: what FACTS 12 shows to be robust.
ROBUST_SCORE = Score(centre="median", clip="floor")
# For a probe between two folders, whose record is centred already. With the k that is chosen where
# none is given LDRV counts as much as LDRM; of a probe it is mostly noise (results/folders.md).
PROBE_SCORE = Score(k=1.0, clip="floor")


@dataclass(frozen=True)
class Critic:
    """The second, unbiased discriminator of phase 2."""

    on: bool = True
    stream: Literal["uniform", "published"] = "uniform"
    """published: uniform for one pass and weighted after it, as the released code does."""
    fakes: Literal["shared", "own", "reals"] = "shared"
    """What it tells uniform reals from: D's fakes, or its own. reals: the weighted reals of D, so
    that it learns what the weights did and no flaws of fakes; rejection then adds D's logit."""
    forward: Literal["separate", "joint"] = "separate"
    """joint: reals and fakes in one forward, so that BatchNorm cannot tell batches apart and the
    logit stays a matter of the image."""


@dataclass(frozen=True)
class Rejection:
    burn_in: int = 12_800
    batch_size: int = 256
    percentile: float = 80.0
    epsilon: float = 1e-6
    gamma: Literal["batch", "global"] = "batch"
    """Whether gamma is the percentile of each batch (the published code) or of the burn-in."""
    budget: float | None = None
    """Proposals for a kept sample, spent as well as can be instead of by gamma."""
    statistics: Literal["training", "fakes"] = "training"
    """Of D's BatchNorm while it rejects: as training left them, or taken anew over fakes, as in
    the published evaluation of the digits."""


@dataclass(frozen=True)
class Config:
    data: DataConfig
    network: NetworkConfig
    steps: int = 20_000
    """Generator steps in all."""
    phase1_share: float = 0.75
    """The part of the steps before the diagnosis; 1: diagnosis only."""
    batch_size: int = 64
    n_dis: int = 1
    """D updates per generator step."""
    loss: Literal["non_saturating", "hinge"] = "non_saturating"
    optim: Optim = field(default_factory=Optim)
    penalty: Penalty = field(default_factory=Penalty)
    methods: Methods = field(default_factory=Methods)
    record: Record = field(default_factory=Record)
    score: Annotated[Score, arg(name="")] = field(default_factory=Score)  # flags: --k, --clip, ...
    critic: Critic = field(default_factory=Critic)
    rejection: Rejection = field(default_factory=Rejection)
    plain_arm: bool = True
    """Also train on without weights from the same phase 1, to compare with."""
    weighted_arm: bool = True
    """Train on with weights: Dia-GAN. Off for baselines that change the game instead."""
    n_evaluate: int = 10_000
    """Generated images per arm from which group shares are counted."""
    log_every: int = 50
    """Steps between two lines of the log."""
    grid_every: int = 500
    """Steps between two grids of generated images."""
    checkpoint_every: int = 1_000
    """Steps between two checkpoints."""
    seed: int = 0
    device: str = "auto"
    """auto, cpu, cuda, mps."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 where the processor has the instructions."""
    data_root: str | None = None
    """Folder with <name>/<split>.parquet; without it the Hugging Face hub is asked."""

    @property
    def phase1_steps(self) -> int:
        return round(self.steps * self.phase1_share)

    @property
    def record_start(self) -> int:
        """The first step at which a record is taken."""
        if self.record.start is not None:
            return self.record.start
        last = (
            self.phase1_steps if self.record.include_end else self.phase1_steps - self.record.every
        )
        return max(last - (self.record.window - 1) * self.record.every, self.record.every)
