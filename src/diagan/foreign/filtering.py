"""Keep the better part of a folder of fakes: rejection sampling by a probe between it and reals."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from diagan.data.folder import Whole
from diagan.data.listing import Listing
from diagan.errors import UserError
from diagan.foreign import diagnosed
from diagan.foreign.folders import probe
from diagan.foreign.probe import ProbeSettings, density_ratio
from diagan.progress import Display, Silent
from diagan.random import numpy_generator
from diagan.reject import rejection_logit
from diagan.rundir import command_line, refuse_filled, refuse_inside, write_json, writing

PERCENTILE = 80.0  # gamma: this percentile of F, as in the paper (Eq. F.5)
SUMMARY = "filter.json"


@dataclass(frozen=True)
class Filtered:
    n_kept: int
    n_fake: int
    is_blind: bool  # the probe learnt nothing

    @property
    def acceptance_rate(self) -> float:
        return self.n_kept / self.n_fake


def accept(
    ldr: NDArray[np.float64], *, n: int | None, seed: int
) -> tuple[NDArray[np.int64], float]:
    """Which fakes rejection sampling keeps, as rising indices, and its gamma.

    A fake is kept with probability sigmoid(F - gamma), that is where F - logit(u) > gamma for a
    uniform u. With `n`, gamma is what keeps exactly so many; else the 80th percentile of F.
    """
    f = rejection_logit(torch.from_numpy(ldr), float(ldr.max())).numpy()
    u = numpy_generator(seed, "filter/accept").uniform(1e-12, 1, size=len(f))
    keys = f - (np.log(u) - np.log1p(-u))
    if n is None:
        gamma = float(np.percentile(f, PERCENTILE))
        return np.flatnonzero(keys > gamma), gamma
    kept = np.argsort(-keys, kind="stable")[:n]
    return np.sort(kept), float(keys[kept[-1]])


def filter_folder(
    *, real: str, fake: str, out: str | Path, n: int | None = None, size: int | None = None,
    seed: int = 0, settings: ProbeSettings | None = None, shown: Display | None = None,
) -> Filtered:  # fmt: skip
    """Copy the fakes that are kept to `out`, as they are, with a filter.json beside them."""
    target = Path(out)
    refuse_filled(target)
    for images in (real, fake):
        refuse_inside(target, images)
    reals, fakes = diagnosed.read_both(real, fake, size)
    if n is not None and not 1 <= n <= fakes.data.n:
        raise UserError(f"--n {n}: expected 1 to {fakes.data.n:,}, the images in {fake}")
    sight = probe(real=reals.data.values, fake=fakes.data.values, seed=seed, settings=settings,
                  shown=shown or Silent())  # fmt: skip
    ratio = density_ratio(sight.found)
    kept, gamma = accept(ratio.fake, n=n, seed=seed)
    temperature = ratio.line.temperature
    result = Filtered(len(kept), fakes.data.n, is_blind=not np.isfinite(temperature))
    summary = {
        "format": 1, "command": command_line(), "real": real, "fake": fake, "seed": seed,
        "n_fake": result.n_fake, "n_kept": result.n_kept, "gamma": gamma,
        "acceptance_rate": result.acceptance_rate,
        "temperature": None if result.is_blind else temperature,
        "kept": {fakes.listing.names[fakes.kept[i]]: float(ratio.fake[i]) for i in kept},
    }  # fmt: skip
    copy(fakes, kept, target, summary)
    return result


def copy(fakes: Whole, kept: NDArray[np.int64], target: Path, summary: dict[str, Any]) -> None:
    """All of them or none: they lie in a temporary folder until the last is copied."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with writing(target):
        try:
            temporary.mkdir()
            copy_some(fakes.listing, set(fakes.kept[kept].tolist()), temporary)
            write_json(temporary / SUMMARY, summary)
            if target.exists():
                target.rmdir()
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def copy_some(listing: Listing, chosen: set[int], folder: Path) -> None:
    """The original files under their own names; rows of a table or an array as PNG."""
    for i, opener in enumerate(listing.openers()):
        if i not in chosen:
            continue
        source, name = opener(), listing.names[i]
        if isinstance(source, Image.Image):
            source.save(folder / f"{name.replace(' ', '-')}.png")
            continue
        content = source.read_bytes() if isinstance(source, Path) else source.read()
        # A row of a table has no name of its own; one in a folder or zip leads nowhere else.
        file = folder / (name if Path(name).suffix else f"{name.replace(' ', '-')}{kind(content)}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def kind(content: bytes) -> str:
    """The suffix of encoded bytes: PNG and JPEG say what they are in their first bytes."""
    return ".jpg" if content[:2] == b"\xff\xd8" else ".png"
