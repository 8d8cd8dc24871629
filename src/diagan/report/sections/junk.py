"""Rare or junk: the high scored samples by their flags."""

import numpy as np
import pyarrow.parquet as pq

from diagan.findings.junk import BLANK, COMMON, FAR, FLAGS, HIGH_SHARE, JUNK, MAX_HIGH, K
from diagan.report.contents import Contents, readable
from diagan.report.sections.common import Section, thumbs

N_SHOWN = 24
WORDS = {
    "rare": ("Rare but clean", "Others in the data look like it: a rare group, or what G has not "
             "learned yet."),
    "outlier": ("Outliers", "Nothing in the data is near it: a stray, or one of a kind."),
    "duplicate": ("Duplicates", "The data hold a copy of it."),
    "corrupt": ("Corrupt", "Half blank, of one colour, or noise."),
}  # fmt: skip


def junk(c: Contents) -> Section | None:
    """A card a flag, with its highest scored samples; what share of the draws goes to junk."""
    s = c.samples
    if s is None or s.flag is None:
        return None
    flag = s.flag.astype(str)
    high = s.by_score[flag[s.by_score] != ""]
    if not len(high):
        return None
    with readable(c.run.samples):
        weight = pq.read_table(c.run.samples, columns=["weight"])["weight"].to_numpy()
    is_junk = np.isin(flag, JUNK)
    cards = []
    for name in FLAGS:
        rows = high[flag[high] == name]
        title, words = WORDS[name]
        files = [] if s.files is None else [s.files[int(row)].as_py() for row in rows[:N_SHOWN]]
        cards.append({"name": name, "title": title, "words": words, "n": len(rows),
                      "thumbs": thumbs(c, rows[:N_SHOWN]), "files": files,
                      "index": s.index[rows[:N_SHOWN]].tolist()})  # fmt: skip
    found = {
        "n_high": len(high),
        "n_junk": int(is_junk.sum()),
        "share": float(is_junk.mean()),
        "weight": float(weight[is_junk].sum()),
        **{card["name"]: card["n"] for card in cards},
    }
    how = {"k": K, "far": FAR, "blank": BLANK, "common": COMMON, "tenth": HIGH_SHARE,
           "most": MAX_HIGH, "is_cut": len(high) == MAX_HIGH,
           "pictures": c.sprite is not None}  # fmt: skip
    shown = {
        "cards": [card for card in cards if card["n"]],
        "n_shown": N_SHOWN,
        "how": how,
        **found,
    }
    return Section(shown, found, sources=("samples.parquet", "thumbnails.npz"))
