"""What changed: the same latents without and with Dia-GAN (Figures 4 and A9), and all grids."""

from typing import Any

import numpy as np

from diagan.findings.closeness import image_features
from diagan.report import pictures
from diagan.report.contents import Contents, readable
from diagan.report.sections.common import Section, capital

N_PAIRS = 32
WITHOUT, WITH = "plain GAN", "Dia-GAN"


def changed(c: Contents) -> Section | None:
    """Pairs that differ most first; the grids of every arm below."""
    pairs = _pairs(c)
    grids = []
    for label, file in c.generated(".png").items():
        with readable(file):
            grids.append({"label": capital(label), "uri": pictures.grid(file)})
    if not pairs and not grids:
        return None
    numbers = {"most_changed": [pair["number"] for pair in pairs]} if pairs else None
    arms = list(c.fakes)
    return Section(
        {"pairs": pairs, "grids": grids, "names": (WITHOUT, WITH), "n_pairs": N_PAIRS,
         "arms": [arms.index(name) for name in (WITHOUT, WITH)] if pairs else []},
        numbers,
        sources=("generated",),
    )  # fmt: skip


def _pairs(c: Contents) -> list[dict[str, Any]]:
    """The first images of either arm come from the same latents, one by one."""
    if not {WITHOUT, WITH} <= c.fakes.keys():
        return []
    if c.fakes[WITHOUT].shape[1:] != c.fakes[WITH].shape[1:]:
        return []
    n = min(2 * N_PAIRS, *(len(c.fakes[name]) for name in (WITHOUT, WITH)))
    before, after = (image_features(c.fakes[name][:n]) for name in (WITHOUT, WITH))
    order = np.argsort(-((before - after) ** 2).sum(axis=1), kind="stable")[:N_PAIRS]
    return [
        {"number": int(i), "positions": [c.fake_sprites[name].position(int(i))
                                         for name in (WITHOUT, WITH)]}
        for i in order
    ]  # fmt: skip
