"""The LDR record: a pass over the data that leaves training as it was, and the files it fills."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor, nn

from diagan import ldr
from diagan.batches import at_once
from diagan.errors import UserError
from diagan.random import generator, seed_torch
from diagan.rundir import read_json, replacing, write_json

FORMAT = 1
EVAL_BATCH = 500  # samples at once at most


class LdrRecord:
    """A folder of float32 arrays, one a recorded step, each indexed by dataset index.

    `add` what any discriminator says of all training samples; the files are in docs/formats.md.
    """

    def __init__(self, folder: str | Path, n: int, **about: Any) -> None:
        self.folder, self.n, self._is_fresh = Path(folder), n, True
        meta = self.folder / "meta.json"
        if not meta.exists():
            write_json(meta, {"format": FORMAT, "n": n, **about})
        self.about = read_json(meta)
        if self.about.get("format") != FORMAT:
            raise UserError(
                f"{meta} has record format {self.about.get('format')}; this diagan reads {FORMAT}"
            )
        if self.about.get("n") != n:
            raise UserError(
                f"the record in {folder} is of {self.about.get('n')} samples, but the dataset has "
                f"{n}; use the data that was recorded"
            )
        if self.about.get("fingerprint") != about.get("fingerprint", self.about.get("fingerprint")):
            raise UserError(
                f"the record in {folder} is of other samples than the dataset holds now; "
                "use the data that was recorded"
            )

    def add(self, step: int, logits: Tensor | np.ndarray) -> None:
        """Keep the logits of all samples at a step of a training, [N] or [N, 1], from any device,
        with a graph or without.

        Refused where an earlier training has records beyond it: they would pass for this one's.
        """
        if isinstance(step, bool) or step < 0 or step != int(step):
            raise UserError(f"step {step}: expected a whole number, 0 or more")
        if self._is_fresh and (later := [s for s in self.steps if s > step]):
            raise UserError(
                f"the record in {self.folder} has steps up to {later[-1]} of an earlier training; "
                "give this one a folder of its own, or, where it goes on from a checkpoint, call "
                "record.cut(after=...) with the step of that"
            )
        self._is_fresh = False
        self.write(int(step), logits)

    def write(self, step: int, logits: Tensor | np.ndarray, part: str = "") -> None:
        """The same in any order; `part` names another set, such as heldout."""
        if isinstance(logits, Tensor):
            logits = logits.detach().float().cpu().numpy()
        values = np.asarray(logits, dtype=np.float32)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if not part and values.shape != (self.n,):
            raise UserError(f"a record needs {self.n} logits, one a sample, got {values.shape}")
        if not np.isfinite(values).all():
            raise UserError(f"the record of step {step} holds values that are not finite")
        with replacing(self._file(step, part)) as temporary, temporary.open("wb") as file:
            np.save(file, values)

    def read(self, step: int, part: str = "") -> np.ndarray:
        file = self._file(step, part)
        try:
            values: np.ndarray = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"the record {file} cannot be read: {error}") from None
        if not part and values.shape != (self.n,):
            raise UserError(
                f"the record {file} has shape {values.shape}, but the dataset has {self.n} samples"
            )
        if n_bad := int(np.count_nonzero(~np.isfinite(values))):
            raise UserError(
                f"the record {file} holds {n_bad} values that are NaN or infinite; record anew, or "
                "diagnose without it: delete that file"
            )
        return values

    @property
    def steps(self) -> list[int]:
        return sorted(int(f.stem) for f in self.folder.glob("*.npy") if f.stem.isdigit())

    def __iter__(self) -> Iterator[np.ndarray]:
        """All records in order, one at a time."""
        return (self.read(step) for step in self.steps)

    def cut(self, after: int) -> None:
        """Forget what was recorded beyond a step."""
        for file in self.folder.glob("*.npy"):
            step = file.stem.partition(".")[0]
            if step.isdigit() and int(step) > after:
                file.unlink()

    def write_free(self, count: np.ndarray, mean: np.ndarray, m2: np.ndarray) -> None:
        """Keep running moments instead of records."""
        with replacing(self.folder / "free.npz") as temporary, temporary.open("wb") as file:
            np.savez(file, count=count, mean=mean, m2=m2)

    def free_moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How often each sample was seen, its LDRM and its LDRV (NaN where refused)."""
        file = self.folder / "free.npz"
        try:
            with np.load(file, allow_pickle=False) as free:
                count, mean, m2 = free["count"], free["mean"], free["m2"]
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise UserError(f"the record {file} cannot be read: {error}") from None
        if count.shape != (self.n,):
            raise UserError(f"{file} has shape {count.shape}, but the dataset has {self.n} samples")
        return count, *ldr.free_moments(count, mean, m2)

    def _file(self, step: int, part: str) -> Path:
        return self.folder / (f"{step:06d}.{part}.npy" if part else f"{step:06d}.npy")


@contextmanager
def untouched(net: nn.Module, training: bool) -> Iterator[None]:
    """Look at a network without leaving a trace: modes, buffers and randomness come back."""
    modes = [(module, module.training) for module in net.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in net.buffers()]
    with torch.random.fork_rng(), torch.no_grad():
        net.train(training)
        try:
            yield
        finally:
            for module, mode in modes:
                module.training = mode
            for buffer, value in buffers:
                buffer.copy_(value)


def score_all(
    net: nn.Module,
    values: Tensor,
    as_input: Callable[[Tensor], Tensor],
    *,
    mode: Literal["eval", "train"] = "eval",
    batch_size: int | None = None,
    seed: int = 0,
    step: int = 0,
    rank: int = 0,
    world_size: int = 1,
    head: str = "",
) -> Tensor:
    """D's logit, or that of one of its heads, of every sample [N], in float32; of other ranks'
    batches zeros.

    Eval mode: fixed contiguous batches, by default as large as memory bears. Train mode: batches of
    the training size in a new seeded permutation, because BatchNorm makes a logit depend on its
    batch mates (FACTS 12).
    """
    batch_size = batch_size or at_once(values.shape[1:], EVAL_BATCH)
    logits = torch.zeros(len(values))
    device = next(net.parameters()).device
    with untouched(net, training=mode == "train"):
        batches = index_batches(len(values), mode, batch_size, seed, step)
        for number, (indices, n_new) in enumerate(batches):
            if number % world_size == rank:
                seed_torch(seed, f"noise/record/{number}", step)
                scores = net(as_input(values[indices].to(device)))
                found = scores.heads[head].squeeze(1) if head else scores.logits
                logits[indices[:n_new]] = found[:n_new].float().cpu()
    return logits


def index_batches(
    n: int, mode: str, batch_size: int, seed: int, step: int
) -> Iterator[tuple[Tensor, int]]:
    """Index batches over n samples, and how many of each are new.

    In train mode the last batch is filled up with samples that were scored before, so that
    BatchNorm never sees a small one.
    """
    if mode == "eval":
        order = torch.arange(n)
    else:
        order = torch.randperm(n, generator=generator(seed, "record/order", step))
    for start in range(0, n, batch_size):
        new = order[start : start + batch_size]
        fill = order[: batch_size - len(new)] if mode == "train" else new[:0]
        yield torch.cat([new, fill]), len(new)
