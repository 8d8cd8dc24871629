"""Diagnose a finished model that has no record: its LDR now as LDRM, and a predicted LDRV."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagan import diagnosis, ldr
from diagan.batches import at_once
from diagan.config import Score
from diagan.data import as_input
from diagan.diagnosis import Diagnosis, Grouping
from diagan.errors import UserError
from diagan.findings import highscored
from diagan.networks.common import Chain
from diagan.pipeline import report
from diagan.random import generator
from diagan.record import EVAL_BATCH, untouched
from diagan.rundata import load_data, read_settings
from diagan.rundir import RunDir, open_run
from diagan.sample import TrainedGenerator, load_generator
from diagan.theory import Information, Posterior, check_prior
from diagan.thumbnails import keep_thumbnails

# Takes a batch of samples; returns Scores, or any tuple that begins with logits and features.
AnyDiscriminator = Callable[[Tensor], Any]
Samples = np.ndarray | Tensor
Batches = Samples | Iterable[Tensor]  # all in one, or one after the other


@dataclass(frozen=True)
class Look:
    """What one discriminator says of every real."""

    ldr: np.ndarray  # float32 [N], its logits
    ldrv: np.ndarray  # float64 [N], predicted (Eq. 5)
    s_0: float
    n_fake: int


def diagnose_discriminator(
    d: AnyDiscriminator, *, real: Samples, fake: Batches, s_0: float | None = None,
    score: Score | None = None, grouping: Grouping | None = None,
) -> Diagnosis:  # fmt: skip
    """Score and weigh every real by anyone's discriminator whose last layer is linear.

    It returns Scores or (logits [B], features [B, F]), is given uint8 images as float32 in [-1, 1]
    and floats as they are, and is in eval mode if it is a module. Give about as many fakes as
    reals. Leave k to be chosen: the predicted LDRV has another scale than a recorded one.
    """
    return from_look(look(d, real=real, fake=fake, s_0=s_0), score or Score(), grouping)


def from_look(found: Look, score: Score, grouping: Grouping | None) -> Diagnosis:
    ldrm = ldr.centre(found.ldr, score.centre)
    return diagnosis.from_moments(ldrm, found.ldrv, 1, score, grouping)


def look(d: AnyDiscriminator, *, real: Samples, fake: Batches, s_0: float | None = None) -> Look:
    """One pass over reals and fakes for the LDR and S_n, and one over the reals for their LDRV."""
    if s_0 is not None:
        check_prior(s_0)  # now, and not after minutes
    with looking(d):
        logits, information = ldr_pass(d, real=real, fake=fake)
        posterior = information.posterior(s_0)
        ldrv = ldrv_pass(d, posterior, real=real)
    return Look(logits, ldrv, posterior.s_0, n_fake=information.n - len(logits))


def looking(d: AnyDiscriminator) -> AbstractContextManager[None]:
    """Nothing of D changes, and no graph is built."""
    return untouched(d, training=False) if isinstance(d, nn.Module) else torch.no_grad()


def ldr_pass(
    d: AnyDiscriminator, *, real: Samples, fake: Batches
) -> tuple[np.ndarray, Information]:
    """D's logit of every real [N], and what reals and fakes tell of its last layer (Eq. 4)."""
    logits: list[Tensor] = []
    information: Information | None = None
    for batch in batches(real):
        found, features = scores(d, batch)
        information = information or Information(features.shape[1])
        information.add(found, features)
        logits.append(found)
    if information is None:
        raise UserError("there are no real samples to diagnose; give at least one")
    n_real = information.n
    for batch in batches(fake):
        information.add(*scores(d, batch))
    if information.n == n_real:
        raise UserError("there are no fakes; a predicted LDRV needs about as many as reals")
    return torch.cat(logits).numpy(), information


def ldrv_pass(d: AnyDiscriminator, posterior: Posterior, *, real: Samples) -> np.ndarray:
    """The predicted LDRV of every real [N] (Eq. 5).

    Features are computed again: S_n is known only when all were seen, and they are too many to
    keep (60,000 x 8,192 for the paper's DCGAN).
    """
    return torch.cat([posterior.ldrv(scores(d, batch)[1]) for batch in batches(real)]).numpy()


def batches(samples: Batches) -> Iterator[Tensor]:
    """What D sees; an array in the contiguous batches of an eval-mode record."""
    parts = samples
    if isinstance(samples, Samples):
        parts = torch.as_tensor(samples).split(at_once(samples.shape[1:], EVAL_BATCH))
    return (as_input(part) for part in parts if len(part))


def scores(d: AnyDiscriminator, batch: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [B] and features [B, F] of any discriminator."""
    if isinstance(d, nn.Module) and (weight := next(d.parameters(), None)) is not None:
        batch = batch.to(weight.device)
    found = d(batch)
    if not isinstance(found, tuple) or not all(isinstance(part, Tensor) for part in found[:2]):
        raise UserError(
            "the discriminator returned neither Scores nor (logits, features); wrap it in a "
            "function that returns its logits [B] and what its last layer is given [B, F]"
        )
    logits, features = (part.detach().float().cpu() for part in found[:2])
    if logits.shape not in ((len(batch),), (len(batch), 1)) or features.dim() != 2:
        raise UserError(
            f"the discriminator gave logits {list(logits.shape)} and features "
            f"{list(features.shape)} for {len(batch)} samples; expected [B] and [B, F]"
        )
    return logits.flatten(), features


# --- a run folder --------------------------------------------------------------------------------


def diagnose_checkpoint(
    path: str | Path, *, arm: str | None = None, s_0: float | None = None,
    score: Score | None = None, out: str | Path | None = None,
) -> Diagnosis:  # fmt: skip
    """Diagnose the last checkpoint of a run; `arm` is weighted, plain or phase1.

    Writes samples.parquet, diagnosis.json and the report into the run, or, so that what a record
    has told is not lost, the first two to `out`. By default the run's score settings with k auto.
    """
    run = open_run(path)
    target = run if out is None else RunDir(Path(out))
    if any(target.record.glob("*.np[yz]")):
        raise UserError(
            f"{target.path} has a record, which tells more than one checkpoint: use `diagan "
            "diagnose run`, or give another folder by --out"
        )
    settings = read_settings(run)
    if (n := settings.methods.packing) > 1:
        raise UserError(f"the discriminator of {run.path} looks at {n} images at once; there is no "
                        "logit of one to diagnose by")  # fmt: skip
    data = load_data(run, settings)
    trained = load_generator(path, arm)
    if isinstance(trained.d, Chain):
        raise UserError(
            "rejection adds two discriminators in this run, and the LDRV of Eq. 5 is of one; give "
            "--arm plain or phase1"
        )
    fake = fakes(trained, data.n, settings.seed)
    seen = look(trained.d, real=data.values, fake=fake, s_0=s_0)
    grouping = Grouping(data.groups, data.group_names, data.rare)
    found = from_look(seen, score or replace(settings.score, k=None), grouping)
    found = replace(found, warnings=(*found.warnings, *doubts(trained)))
    about = {"mode": "checkpoint", "is_ldr": trained.is_ldr, "arm": trained.arm,
             "scored_by": trained.rejects_by, "first_step": trained.step,
             "last_step": trained.step, "s_0": seen.s_0, "n_fake": seen.n_fake}  # fmt: skip
    columns, high = highscored.mark(found.score, data.values, seed=settings.seed)
    diagnosis.write(target, found, data.columns | columns, about | high)
    if data.is_image:
        keep_thumbnails(target, data.values)
    if out is None:
        report(run)
    return found


def fakes(trained: TrainedGenerator, n: int, seed: int) -> Iterator[Tensor]:
    """n samples straight from G, a batch at a time."""
    draws = generator(seed, "checkpoint/fakes")
    size = at_once(trained.shape, EVAL_BATCH)
    return (trained.generate(min(size, n - i), draws) for i in range(0, n, size))


def doubts(trained: TrainedGenerator) -> list[str]:
    """Why the diagnosis may be off, in plain words."""
    found = []
    if not trained.is_ldr:
        found.append(
            f"The output of a {trained.config.loss} discriminator is no log-density ratio, and "
            "the predicted LDRV takes it for one."
        )
    if trained.rejects_by != "critic" and trained.arm == "weighted":
        found.append(
            "This discriminator was trained on weighted draws: what it finds under-represented "
            "is so beside these, and not beside the data."
        )
    return found
