"""What the discriminators of a run say of reals and fakes, kept for the report."""

from pathlib import Path

import numpy as np
import torch

from diagan import checkpoint
from diagan.data import Dataset, as_input
from diagan.findings import calibration
from diagan.random import generator, numpy_generator
from diagan.rundir import RunDir, replacing
from diagan.sample import TrainedGenerator, load_at

N_JUDGED = 1_000  # of each: held-out reals, training reals, fakes


def keep_ldr(run: RunDir, name: str, trained: TrainedGenerator, samples: np.ndarray) -> None:
    """The LDR of generated samples by the discriminator that rejects for their arm.

    generated/NAME_ldr.npy, in the order of the samples; nothing where there is no LDR of one.
    """
    if trained.is_ldr and trained.config.methods.packing == 1:
        logits = trained.judge().ldr(as_input(torch.from_numpy(samples))).float().numpy()
        file = run.generated / f"{name}_ldr.npy"
        with replacing(file) as temporary, temporary.open("wb") as stream:
            np.save(stream, logits.flatten())


def judge_run(run: RunDir, data: Dataset) -> None:
    """Judge D at the end of phase 1, which was recorded, and the one that rejects at the end."""
    judge(run, data, "phase1", "the discriminator that was recorded", run.calibration)
    rejects = run.calibration.with_name(calibration.REJECTION)
    judge(run, data, "weighted", "the discriminator that rejects", rejects)


def judge(run: RunDir, data: Dataset, arm: str, name: str, path: Path) -> None:
    """Logits of held-out reals, of as many training reals and of as many fakes of the arm.

    Nothing for an arm that was not trained, a D that scores several images at once, or where too
    few reals were held out.
    """
    steps = checkpoint.steps(run.checkpoints, arm)
    n = min(len(data.heldout), data.n, N_JUDGED)
    if not steps or n < calibration.MIN_SAMPLES:
        return
    trained = load_at(run, arm, steps[-1])
    seed = trained.config.seed
    if trained.config.methods.packing > 1:
        return
    chosen = np.sort(numpy_generator(seed, "calibration/train").permutation(data.n)[:n])
    fake = trained.generate(n, generator(seed, "calibration/fake"))
    heldout, train = (as_input(torch.from_numpy(np.array(values)))
                      for values in (data.heldout[:n], data.values[chosen]))  # fmt: skip
    about = {"judge": name, "is_ldr": trained.is_ldr, "arm": arm, "step": trained.step,
             "scored_by": trained.rejects_by}  # fmt: skip
    logits = {"heldout": heldout, "train": train, "fake": fake}
    judging = (
        trained if arm == "phase1" else trained.judge()
    )  # as it was recorded, or as it rejects
    calibration.write(
        path, about=about, **{key: judging.ldr(x).float().numpy() for key, x in logits.items()}
    )
