"""Values out of range are refused by the name of their flag."""

from math import inf

from diagan.config.datasets import (
    SIDES,
    ColoredMnist,
    DrawnFaces,
    Gaussians25,
    MnistFmnist,
    SingleGaussian,
)
from diagan.config.methods import Augment
from diagan.config.networks import MLP
from diagan.config.settings import Config, Score
from diagan.errors import UserError


def check(config: Config) -> Config:
    """Refuse values out of range, naming the flag and what was expected."""
    _check_training(config)
    _check_methods(config)
    _check_critic(config)
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
        "give --record.mode none --no-weighted-arm as well",
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
        m.augment == Augment() or c.record.mode != "free",
        "--record.mode free keeps the logits of what D sees in training, which --methods.augment "
        "changes; record in mode eval or train",
    )
    _expect(
        not (m.logistic_head and c.record.mode == "free"),
        "--record.mode free keeps D's own logit, not that of --methods.logistic-head; "
        "record in mode eval or train",
    )


def check_score(s: Score) -> Score:
    """The settings of the score alone, where there is no run."""
    _expect(s.k is None or 0 <= s.k < inf, f"--k {s.k}: expected 0 or more")
    _expect(s.floor > 0, f"--floor {s.floor}: expected a positive number")
    _expect(s.ratio >= 1, f"--ratio {s.ratio}: expected at least 1")
    _expect(s.exponent > 0, f"--exponent {s.exponent}: expected a positive number")
    return s


def _check_critic(c: Config) -> None:
    if c.critic.fakes != "reals":
        return
    _expect(c.critic.on, "--critic.fakes reals needs the critic; leave --no-critic.on out")
    gold = f"--methods.gold {c.methods.gold}" if c.methods.gold != "off" else ""
    spoiler = f"--loss {c.loss}" if c.loss != "non_saturating" else gold
    _expect(
        not spoiler or c.methods.logistic_head,
        f"--critic.fakes reals: rejection then adds D's logit, which is no density ratio with "
        f"{spoiler}; give --methods.logistic-head as well",
    )
    _expect(
        getattr(c.network, "d_norm", "") != "batch" or c.critic.forward == "joint",
        "--critic.fakes reals: with BatchNorm two forwards tell weighted batches from uniform "
        "ones; give --critic.forward joint as well, or --network.d-norm spectral",
    )
    _expect(
        c.critic.stream == "uniform",
        "--critic.fakes reals tells uniform reals from weighted ones; leave --critic.stream out",
    )


def _check_diagnosis(c: Config) -> None:
    start = c.record.start
    _expect(c.record.every >= 1, f"--record.every {c.record.every}: expected at least 1")
    _expect(c.record.window >= 2, f"--record.window {c.record.window}: expected at least 2")
    _expect(start is None or start >= 1, f"--record.start {start}: expected at least 1")
    check_score(c.score)
    _expect(0 < c.rejection.percentile < 100, "--rejection.percentile: expected between 0 and 100")
    _expect(c.rejection.budget is None or 1 <= c.rejection.budget < inf,
            "--rejection.budget: expected 1 or more")  # fmt: skip
    _expect(c.rejection.burn_in >= 1, "--rejection.burn-in: expected at least 1")
    _expect(c.rejection.batch_size >= 1, "--rejection.batch-size: expected at least 1")
    _expect(c.rejection.epsilon > 0, "--rejection.epsilon: expected a positive number")


def _check_data_and_network(c: Config) -> None:
    n, majority = getattr(c.data, "n", None), getattr(c.data, "majority", 0.5)
    size = getattr(c.data, "size", 32)
    _expect(n is None or n >= 2, f"--data.n {n}: expected at least 2")
    _expect(0 < majority < 1, f"--data.majority {majority}: expected between 0 and 1")
    _expect(
        size in SIDES,
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
    _expect(
        c.record.mode != "none" or not c.weighted_arm or end == c.steps,
        "--record.mode none leaves nothing to weigh the images by in phase 2; give "
        "--no-weighted-arm or --phase1-share 1 as well",
    )
    if c.record.mode in ("eval", "train"):
        n_records = max(0, (end - first) // c.record.every + c.record.include_end)
        _expect(
            n_records >= 2,
            f"--record.every {c.record.every} leaves {n_records} records in a phase 1 of {end} "
            "steps; at least 2 are needed: record more often or train longer",
        )
    _expect(
        c.record.mode != "free" or c.score.centre == "none",
        f"--record.mode free keeps moments and no records, which --centre {c.score.centre} would "
        "need: add --centre none",
    )
    if (n := getattr(c.data, "n", None)) is not None:
        check_sightings(c, n)


def check_sightings(c: Config, n: int) -> None:
    """Free recording of n samples: of a folder it is known only when it was read."""
    if c.record.mode != "free":
        return
    first = c.record_start
    seen = (c.phase1_steps - first + 1) * c.n_dis * c.batch_size / n
    _expect(
        seen >= 4,
        f"--record.mode free sees each sample {seen:.1f} times from step {first} on; at least "
        "4 are needed: give an earlier --record.start or more --steps",
    )
