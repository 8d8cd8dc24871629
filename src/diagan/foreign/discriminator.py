"""Anyone's discriminator, through a function that its owner names: `my_module:load`."""

import importlib
import sys
from pathlib import Path

import numpy as np

from diagan.checkpoint_diagnosis import AnyDiscriminator, from_look, look
from diagan.config import ROBUST_SCORE, Score
from diagan.errors import UserError
from diagan.evaluate import keep_pictures
from diagan.foreign import diagnosed
from diagan.foreign.diagnosed import Diagnosis
from diagan.foreign.folders import ARM


def load_discriminator(where: str, path: str | None = None) -> AnyDiscriminator:
    """What `module:function` returns, called with `path` where one is given.

    The one place where diagan runs code that it did not bring along: what the user typed.
    """
    module, colon, name = where.partition(":")
    if not (module and colon and name):
        raise UserError(f"--discriminator {where}: expected MODULE:FUNCTION, such as my_gan:load")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a command that pip installed does not look there by itself
    try:
        load = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise UserError(f"--discriminator {where}: cannot import {module} ({error})") from None
    except AttributeError:
        raise UserError(f"--discriminator {where}: {module} has no {name}") from None
    d = load(path) if path else load()
    if not callable(d):
        raise UserError(
            f"{where} returned {type(d).__name__}; expected a function of images [B, C, H, W] in "
            "[-1, 1] that returns logits [B] and features [B, F]"
        )
    return d  # type: ignore[no-any-return]


def diagnose_with(
    d: AnyDiscriminator, *, real: str, fake: str, out: str | Path, size: int | None = None,
    group_by: str | None = None, s_0: float | None = None, score: Score | None = None,
    is_ldr: bool = True,
) -> Diagnosis:  # fmt: skip
    """One look of a discriminator at two places of images, as the folder of a diagnosis."""
    diagnosed.refuse_other(Path(out))
    reals, fakes = diagnosed.read_both(real, fake, size, group_by=group_by)
    data, made = reals.data, fakes.data.values
    seen = look(d, real=np.array(data.values), fake=np.array(made), s_0=s_0)
    found = from_look(seen, score or ROBUST_SCORE, diagnosed.grouping_of(data))
    about = {"mode": "checkpoint", "is_ldr": is_ldr, "scored_by": "D", "first_step": 0,
             "last_step": 0, "s_0": seen.s_0, "n_fake": seen.n_fake}  # fmt: skip
    provenance = {"real": real, "fake": fake, "shape": list(data.shape),
                  "data": {"fingerprint": data.fingerprint, "n": data.n,
                           "notes": list(data.notes)}}  # fmt: skip
    with diagnosed.making(out) as run:
        keep_pictures(run, ARM, np.asarray(made[diagnosed.pictured(len(made))]))
        diagnosed.write(run, found, columns=data.columns, about=about, images=data.values,
                        provenance=provenance)  # fmt: skip
    return found
