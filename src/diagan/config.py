"""What a run is: frozen dataclasses <-> config.json. Unknown keys are refused by name."""

import dataclasses
import difflib
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any, ClassVar, Literal, Union

from tyro.conf import arg

from diagan.errors import UserError

FORMAT = 1


# --- data: each kind has the settings that it needs, and no others -------------------------------


@dataclass(frozen=True)
class SingleGaussian:
    """Points of one 2-D Gaussian; far points are the minor group (paper, App. F)."""

    kind: ClassVar[str] = "single_gaussian"
    n: int = 10_000
    sigma: float = 3.0  # a standard deviation, though the paper writes a covariance (FACTS 1.2)


@dataclass(frozen=True)
class Gaussians25:
    """A 5 x 5 grid of 2-D Gaussians."""

    kind: ClassVar[str] = "gaussians25"
    n: int = 10_000


@dataclass(frozen=True)
class ColoredMnist:
    """Red digits (major) and a few green ones (minor)."""

    kind: ClassVar[str] = "colored_mnist"
    n: int = 60_000
    majority: float = 0.99
    size: int = 32


@dataclass(frozen=True)
class MnistFmnist:
    """Digits (major) and a few pieces of clothing (minor)."""

    kind: ClassVar[str] = "mnist_fmnist"
    n: int = 60_000
    majority: float = 0.99
    size: int = 32


@dataclass(frozen=True)
class DemoDigits:
    """Coloured digits from the few thousand that ship with the package."""

    kind: ClassVar[str] = "demo_digits"
    n: int = 4_000
    majority: float = 0.97
    size: int = 16


@dataclass(frozen=True)
class Cifar10:
    """CIFAR-10; its classes are the groups."""

    kind: ClassVar[str] = "cifar10"
    n: int = 50_000
    size: int = 32


@dataclass(frozen=True)
class CelebA:
    """CelebA's aligned faces with their 40 attributes, in its own splits."""

    kind: ClassVar[str] = "celeba"
    n: int = 162_770
    size: int = 64
    attribute: str = "Bald"
    """Who has it is one group, who has not the other."""
    path: str | None = None
    """The folder with img_align_celeba, list_attr_celeba.txt and list_eval_partition.txt; without
    it, celeba in --data-root, or the Hugging Face hub."""


@dataclass(frozen=True)
class FFHQ:
    """The faces of FFHQ; up to 1,000 after the first n are held out."""

    kind: ClassVar[str] = "ffhq"
    n: int = 69_000
    size: int = 256
    path: str | None = None
    """A folder or zip of the images; without it, ffhq in --data-root, or the Hugging Face hub."""


@dataclass(frozen=True)
class DrawnFaces:
    """Faces drawn by code; each attribute is given to its share of them, whatever the others."""

    kind: ClassVar[str] = "drawn_faces"
    n: int = 10_000
    size: int = 32
    hat: float = 0.03
    glasses: float = 0.06
    moustache: float = 0.04
    pale: float = 0.05
    bald: float = 0.02
    attribute: Literal["hat", "glasses", "moustache", "pale", "bald"] = "hat"
    """Who has it is one group, who has not the other."""


@dataclass(frozen=True)
class ImageFolder:
    """A person's own images: a folder, a zip, a parquet file, a .npy or .npz, or a hub name."""

    kind: ClassVar[str] = "folder"
    path: str = ""
    size: int = 32
    """Side in pixels; `run --data` takes the nearest of 32, 64, 128, 256."""
    group_by: str | None = None
    """A column that names the groups (default: group, label or class, or else sub-folders)."""


DataConfig = (
    SingleGaussian
    | Gaussians25
    | ColoredMnist
    | MnistFmnist
    | DemoDigits
    | Cifar10
    | CelebA
    | FFHQ
    | DrawnFaces
    | ImageFolder
)


# --- networks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MLP:
    """The paper's 2-D network (Table A1), or one of its kind for small images."""

    kind: ClassVar[str] = "mlp"
    width: int = 512
    latent: int = 2
    init_std: float | None = None  # None: PyTorch's default; the published code has 0.02


@dataclass(frozen=True)
class DCGAN:
    """The paper's DCGAN (Tables A2, A3); `width` scales every layer."""

    kind: ClassVar[str] = "dcgan"
    width: float = 1.0
    latent: int = 100
    dropout: float = 0.5
    headroom: float = 0.0
    """How far G's tanh reaches beyond [-1, 1]; with none, black pixels have no gradient left."""
    d_norm: Literal["batch", "spectral"] = "batch"
    """D's normalisation: the paper's, or one that leaves a logit to its own image."""


@dataclass(frozen=True)
class SNGAN:
    """The paper's SNGAN ResNets for 32 and 64 pixels; `width` scales every layer."""

    kind: ClassVar[str] = "sngan"
    sizes: ClassVar[tuple[int, ...]] = (32, 64)
    width: float = 1.0
    latent: int = 128


@dataclass(frozen=True)
class StyleGAN2:
    """StyleGAN2 for a power-of-two side from 32 to 1024; `width` scales every convolution."""

    kind: ClassVar[str] = "stylegan2"
    sizes: ClassVar[tuple[int, ...]] = (32, 64, 128, 256, 512, 1024)
    width: float = 1.0
    latent: int = 512
    mixing: float = 0.9
    """How often in training later layers have the styles of a second latent."""


NetworkConfig = MLP | DCGAN | SNGAN | StyleGAN2


# --- the rest ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Optim:
    lr: float = 1e-4
    betas: tuple[float, float] = (0.5, 0.9)
    decay: Literal["linear", "none"] = "linear"  # linear: to zero at the last step
    d_lr: float | None = None
    """Of D and the critic, where it is not that of G."""
    d_betas: tuple[float, float] | None = None


@dataclass(frozen=True)
class Penalty:
    """On D's gradient at the reals (R1); keeps D, and so the LDR, smooth."""

    r1: float = 0.0
    """gamma; 0: none, as in the paper but for StyleGAN2."""
    every: int = 1
    """Every so many updates of D, and so many times as strong."""
    path_length: float = 0.0
    """On how unevenly G's images move with its latents; 0: none, 2 for StyleGAN2."""
    path_every: int = 4
    """Every so many updates of G, and so many times as strong."""


# --- methods: each is off unless a flag says otherwise -------------------------------------------


@dataclass(frozen=True)
class TopK:
    """G learns from its best fakes alone, of which there are fewer with every pass."""

    floor: float = 1.0
    """The least share of the batch; 1: off, 0.5 in the published code."""
    decay: float = 0.99
    """What a pass over the data leaves of the share."""


@dataclass(frozen=True)
class Rotation:
    """D tells by how much an image was turned (SSGAN), and G makes images that can be told."""

    d: float = 0.0
    """Weight in D's loss, on turned reals; 0: off, 1 in SSGAN."""
    g: float = 0.0
    """Weight in G's loss, on turned fakes; 0.2 in SSGAN."""


@dataclass(frozen=True)
class Inclusive:
    """Every training image draws the fake nearest to it closer (Inclusive GAN)."""

    weight: float = 0.0
    """Of the distance to the image; 0: off, 10 in the published code."""
    interpolation: float = 0.0
    """Of the distances of a fake between two to both; 4 in the published code."""
    candidates: int = 2
    """Fakes per training image among which the nearest is looked for; 10 in the published code."""
    passes: float = 20.0
    """Passes over the data between two such searches."""
    extractor: Literal["pixels", "classifier"] = "pixels"
    """What is near: in pixels, or to the first layers of the classifier of the MNIST sets."""


@dataclass(frozen=True)
class Augment:
    """D sees altered images, real and fake alike (DiffAugment); recording does not."""

    colour: bool = False
    """Brightness, saturation and contrast."""
    translation: float = 0.0
    """By up to this share of the side; 0: off, 0.125 is usual."""
    cutout: float = 0.0
    """A square with this share of the side becomes grey; 0: off, 0.5 is usual."""


@dataclass(frozen=True)
class Methods:
    """The paper's baselines and other changes to the game."""

    gold: Literal["off", "published", "normalised"] = "off"
    """Weigh D's fake terms by D's own logit in phase 2: as it is, or non-negative with mean 1."""
    topk: TopK = field(default_factory=TopK)
    packing: int = 1
    """Images that D scores together (PacGAN); 1: off, 2 in the paper. Nothing can be recorded."""
    rotation: Rotation = field(default_factory=Rotation)
    inclusive: Inclusive = field(default_factory=Inclusive)
    ema: float = 0.0
    """What a step leaves of the average of G's weights, from which is drawn; 0: off, 0.998."""
    augment: Augment = field(default_factory=Augment)
    logistic_head: bool = False
    """A second output of D, trained with the logistic loss on D's features: a density ratio
    whatever the loss, and what is recorded and rejected by (paper, Section 5.2)."""


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
    fakes: Literal["shared", "own"] = "shared"
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


def check(config: Config) -> Config:
    """Refuse values out of range, naming the flag and what was expected."""
    _check_training(config)
    _check_methods(config)
    _check_diagnosis(config)
    _check_data_and_network(config)
    _check_record_fits(config)
    return config


def _expect(ok: bool, what: str) -> None:
    if not ok:
        raise UserError(what)


def _check_training(c: Config) -> None:
    _expect(c.steps >= 1, f"--steps {c.steps}: expected at least 1")
    _expect(0 < c.phase1_share <= 1, f"--phase1-share {c.phase1_share}: expected over 0, at most 1")
    _expect(c.phase1_steps >= 1, f"--steps {c.steps}: too few for a phase 1; expected more")
    _expect(c.batch_size >= 2, f"--batch-size {c.batch_size}: expected at least 2")
    _expect(c.n_dis >= 1, f"--n-dis {c.n_dis}: expected at least 1")
    _expect(0 < c.optim.lr < inf, f"--optim.lr {c.optim.lr}: expected a positive number")
    _expect(all(0 <= b < 1 for b in c.optim.betas), "--optim.betas: expected two numbers in [0, 1)")
    d_lr, d_betas = c.optim.d_lr, c.optim.d_betas or (0, 0)
    _expect(d_lr is None or 0 < d_lr < inf, f"--optim.d-lr {d_lr}: expected a positive number")
    _expect(all(0 <= b < 1 for b in d_betas), "--optim.d-betas: expected two numbers in [0, 1)")
    _expect(0 <= c.penalty.r1 < inf, f"--penalty.r1 {c.penalty.r1}: expected 0 or more")
    _expect(c.penalty.every >= 1, f"--penalty.every {c.penalty.every}: expected at least 1")
    for name in ("log_every", "grid_every", "checkpoint_every", "n_evaluate"):
        flag = "--" + name.replace("_", "-")
        _expect(getattr(c, name) >= 1, f"{flag} {getattr(c, name)}: expected at least 1")


def _check_methods(c: Config) -> None:
    m, path, every = c.methods, c.penalty.path_length, c.penalty.path_every
    _expect(0 <= path < inf, f"--penalty.path-length {path}: expected 0 or more")
    _expect(every >= 1, f"--penalty.path-every {every}: expected at least 1")
    for name in ("floor", "decay"):
        value = getattr(m.topk, name)
        _expect(0 < value <= 1, f"--methods.topk.{name} {value}: expected over 0, at most 1")
    for flag, value in (
        ("rotation.d", m.rotation.d), ("rotation.g", m.rotation.g),
        ("inclusive.weight", m.inclusive.weight),
        ("inclusive.interpolation", m.inclusive.interpolation),
    ):  # fmt: skip
        _expect(0 <= value < inf, f"--methods.{flag} {value}: expected 0 or more")
    for name in ("translation", "cutout"):
        value = getattr(m.augment, name)
        _expect(0 <= value <= 1, f"--methods.augment.{name} {value}: expected between 0 and 1")
    n, passes = m.inclusive.candidates, m.inclusive.passes
    _expect(n >= 1, f"--methods.inclusive.candidates {n}: expected at least 1")
    _expect(0 < passes < inf, f"--methods.inclusive.passes {passes}: expected a positive number")
    has_one = isinstance(c.data, ColoredMnist | MnistFmnist) and c.data.size == 32
    _expect(
        m.inclusive.extractor == "pixels" or has_one,
        "--methods.inclusive.extractor classifier: there is one for the two MNIST sets at 32 "
        "pixels; take pixels",
    )
    _expect(0 <= m.ema < 1, f"--methods.ema {m.ema}: expected at least 0, under 1")
    _expect(m.packing >= 1, f"--methods.packing {m.packing}: expected at least 1")
    _check_methods_together(c)


def _check_methods_together(c: Config) -> None:
    m = c.methods
    _expect(
        c.batch_size % m.packing == 0,
        f"--methods.packing {m.packing}: expected a divisor of --batch-size {c.batch_size}",
    )
    _expect(
        m.packing == 1 or c.record.mode == "none",
        f"--methods.packing {m.packing} leaves no score of a single image to record; "
        "give --record.mode none as well",
    )
    _expect(
        m.rotation.g == 0 or m.rotation.d > 0,
        "--methods.rotation.g needs a D that learns the task; give --methods.rotation.d 1 as well",
    )
    on_images = m.rotation.d > 0 or m.augment != Augment()
    _expect(
        not (on_images and isinstance(c.data, SingleGaussian | Gaussians25)),
        "--methods.rotation and --methods.augment turn and shift images; leave them out for points",
    )
    _expect(
        not (m.logistic_head and c.record.mode == "free"),
        "--record.mode free keeps D's own logit, not that of --methods.logistic-head; "
        "record in mode eval or train",
    )


def _check_diagnosis(c: Config) -> None:
    start = c.record.start
    _expect(c.record.every >= 1, f"--record.every {c.record.every}: expected at least 1")
    _expect(c.record.window >= 2, f"--record.window {c.record.window}: expected at least 2")
    _expect(start is None or start >= 1, f"--record.start {start}: expected at least 1")
    _expect(c.score.k is None or 0 <= c.score.k < inf, f"--k {c.score.k}: expected 0 or more")
    _expect(c.score.floor > 0, f"--floor {c.score.floor}: expected a positive number")
    _expect(c.score.ratio >= 1, f"--ratio {c.score.ratio}: expected at least 1")
    _expect(c.score.exponent > 0, f"--exponent {c.score.exponent}: expected a positive number")
    _expect(0 < c.rejection.percentile < 100, "--rejection.percentile: expected between 0 and 100")
    _expect(c.rejection.burn_in >= 1, "--rejection.burn-in: expected at least 1")
    _expect(c.rejection.batch_size >= 1, "--rejection.batch-size: expected at least 1")
    _expect(c.rejection.epsilon > 0, "--rejection.epsilon: expected a positive number")


def _check_data_and_network(c: Config) -> None:
    n, majority = getattr(c.data, "n", None), getattr(c.data, "majority", 0.5)
    size = getattr(c.data, "size", 32)
    _expect(n is None or n >= 2, f"--data.n {n}: expected at least 2")
    _expect(0 < majority < 1, f"--data.majority {majority}: expected between 0 and 1")
    _expect(
        size in (16, 32, 64, 128, 256, 512, 1024),
        f"--data.size {size}: expected a power of two from 16 to 1024",
    )
    if isinstance(c.data, DrawnFaces):
        for name in ("hat", "glasses", "moustache", "pale", "bald"):
            rate = getattr(c.data, name)
            _expect(0 <= rate <= 1, f"--data.{name} {rate}: expected between 0 and 1")
    width, dropout = c.network.width, getattr(c.network, "dropout", 0.0)
    headroom, mixing = getattr(c.network, "headroom", 0.0), getattr(c.network, "mixing", 0.0)
    sizes, kind = getattr(c.network, "sizes", (size,)), c.network.kind
    _expect(size in sizes, f"--data.size {size}: expected one of {sizes} for the network {kind}")
    least = 1 if isinstance(c.network, MLP) else 1 / 16  # one channel
    _expect(least <= width < inf, f"--network.width {width}: expected at least {least}")
    _expect(c.network.latent >= 1, f"--network.latent {c.network.latent}: expected at least 1")
    _expect(0 <= dropout < 1, f"--network.dropout {dropout}: expected at least 0, under 1")
    _expect(0 <= headroom < 1, f"--network.headroom {headroom}: expected at least 0, under 1")
    _expect(0 <= mixing <= 1, f"--network.mixing {mixing}: expected between 0 and 1")


def _check_record_fits(c: Config) -> None:
    """Enough records, or enough sightings of each sample, for a variance."""
    first, end = c.record_start, c.phase1_steps
    if c.record.mode in ("eval", "train"):
        n_records = max(0, (end - first) // c.record.every + c.record.include_end)
        _expect(
            n_records >= 2,
            f"--record.every {c.record.every} leaves {n_records} records in a phase 1 of {end} "
            "steps; at least 2 are needed: record more often or train longer",
        )
    n = getattr(c.data, "n", None)
    if c.record.mode == "free" and n is not None:
        seen = (end - first + 1) * c.n_dis * c.batch_size / n
        _expect(
            seen >= 4,
            f"--record.mode free sees each sample {seen:.1f} times from step {first} on; at least "
            "4 are needed: give an earlier --record.start or more --steps",
        )


# --- JSON ----------------------------------------------------------------------------------------


def to_json(config: Config) -> dict[str, Any]:
    return {"format": FORMAT, **_encode(config)}


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        kind = getattr(value, "kind", None)
        return {"kind": kind, **fields} if kind else fields
    return list(value) if isinstance(value, tuple) else value


def flat(config: Config) -> dict[str, Any]:
    """Every setting under its dotted name."""

    def walk(value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            return {name: value}
        return {k: v for key in value for k, v in walk(value[key], f"{name}.{key}").items()}

    return {key.removeprefix("."): value for key, value in walk(to_json(config), "").items()}


def from_json(obj: Mapping[str, Any]) -> Config:
    """The config that `to_json` wrote; a key that does not exist is refused with its neighbours."""
    values = dict(obj)
    version = values.pop("format", FORMAT)
    if version != FORMAT:
        raise UserError(f"config.json has format {version}; this diagan reads format {FORMAT}")
    config = _decode(Config, values, "config")
    assert isinstance(config, Config)
    return check(config)


def loads(text: str, where: str) -> Config:
    try:
        obj = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not valid JSON: {error}") from None
    if not isinstance(obj, dict):
        raise UserError(f"{where} holds no config: expected a JSON object")
    return from_json(obj)


def _decode(kind: Any, value: Any, where: str) -> Any:
    if typing.get_origin(kind) in (Union, types.UnionType):
        return _decode_union(typing.get_args(kind), value, where)
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    if typing.get_origin(kind) is Literal:
        choices = typing.get_args(kind)
        if value not in choices:
            raise UserError(f"{where}: expected one of {', '.join(choices)}, got {value!r}")
        return value
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list) or len(value) != len(typing.get_args(kind)):
            raise UserError(f"{where}: expected a list of {len(typing.get_args(kind))} numbers")
        return tuple(_decode(k, v, where) for k, v in zip(typing.get_args(kind), value))
    wanted = (int, float) if kind is float else kind
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
        raise UserError(f"{where}: expected {kind.__name__}, got {value!r}")
    return kind(value)


def _decode_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    named = {k.kind: k for k in kinds if hasattr(k, "kind")}
    if not named:
        return _decode(next(k for k in kinds if k is not type(None)), value, where)
    if not isinstance(value, dict) or value.get("kind") not in list(named):  # may be a list
        raise UserError(f"{where}: expected a kind of {', '.join(named)}")
    rest = {key: v for key, v in value.items() if key != "kind"}
    return _decode_dataclass(named[value["kind"]], rest, where)


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise UserError(f"{where}: expected an object, got {value!r}")
    hints = typing.get_type_hints(kind)
    fields = {f.name: hints[f.name] for f in dataclasses.fields(kind)}
    for key in value:
        if key not in fields:
            raise UserError(f"{where} has no key {key!r}{did_you_mean(key, fields)}")
    decoded = {key: _decode(fields[key], v, f"{where}.{key}") for key, v in value.items()}
    for f in dataclasses.fields(kind):
        is_needed = f.default is f.default_factory is dataclasses.MISSING
        if is_needed and f.name not in decoded:
            raise UserError(f"{where} needs the key {f.name!r}")
    return kind(**decoded)


def did_you_mean(word: str, known: typing.Iterable[str]) -> str:
    """`; did you mean X?`, or the list of what there is."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    return f"; did you mean {close[0]}?" if close else f"; expected one of {', '.join(names)}"
