"""The columns `flag` and `cluster` of samples.parquet: which high scored samples are what."""

from typing import Any

import numpy as np

from diagan.findings import clusters, junk


def mark(
    scores: np.ndarray, values: np.ndarray, *, seed: int = 0
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Scores and samples (images or points) -> the two columns [N], and a summary of them.

    The clusters are of those flagged rare; -1 is no cluster. The summary is for diagnosis.json.
    """
    found = junk.find_junk(scores, values, seed=seed)
    flag = np.full(len(scores), "", dtype=f"<U{max(map(len, junk.FLAGS))}")
    flag[found.index] = found.flag
    rare = found.index[found.flag == "rare"]
    member = np.full(len(scores), -1, dtype=np.int64)
    contrast = None
    if len(rare):
        kinds = clusters.cluster(junk.small_pixels(values, rare), seed=seed)
        member[rare], contrast = kinds.member, kinds.contrast
    summary = {
        "n_high": len(found.index),
        **{name: int(np.sum(found.flag == name)) for name in junk.FLAGS},
        "far": found.far if np.isfinite(found.far) else None,
        "n_clusters": int(member.max()) + 1,
        "contrast": contrast,
    }
    return {"flag": flag, "cluster": member}, {"high_scored": summary}
