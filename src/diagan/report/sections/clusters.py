"""Clusters of what is under-represented, where no labels name it."""

import numpy as np

from diagan.findings.clusters import representatives
from diagan.findings.junk import small_pixels
from diagan.report.contents import Contents
from diagan.report.sections.common import Section, thumbs

N_SHOWN = 12


def clusters(c: Contents) -> Section | None:
    """A card a cluster of the rare but clean samples, by falling score: those in its middle."""
    s = c.samples
    if s is None or s.cluster is None or c.groups or c.sprite is None:
        return None
    index, images = c.thumbnails
    at = np.flatnonzero(s.cluster[index] >= 0)  # pictures of clustered samples
    if not len(at):
        return None
    place = small_pixels(images[at].transpose(0, 3, 1, 2), np.arange(len(at)))
    shown = representatives(place, s.cluster[index[at]], N_SHOWN)
    n_all = int(np.sum(s.cluster >= 0))
    cards = []
    for number in range(int(s.cluster.max()) + 1):
        rows = np.flatnonzero(s.cluster == number)
        nearest = index[at[shown[number]]] if number in shown else rows[:0]
        cards.append({"cluster": number, "n": len(rows), "share": len(rows) / n_all,
                      "score": float(s.score[rows].mean()), "thumbs": thumbs(c, nearest),
                      "index": s.index[nearest].tolist()})  # fmt: skip
    cards.sort(key=lambda card: -card["score"])
    contrast = ((c.diagnosis or {}).get("high_scored") or {}).get("contrast")
    about = {"n": n_all, "contrast": contrast}
    kept = [{key: value for key, value in card.items() if key != "thumbs"} for card in cards]
    return Section({"cards": cards, **about}, {**about, "clusters": kept},
                   sources=("samples.parquet", "diagnosis.json", "thumbnails.npz"))  # fmt: skip
