"""How this was made."""

import json
from collections.abc import Iterator
from typing import Any

from diagan.report import numbers
from diagan.report.contents import Contents
from diagan.report.sections.common import Section

FILES = {
    "config.json": "what ran; diagan run --config runs it again",
    "provenance.json": "versions, command, fingerprint of the data",
    "log.jsonl": "losses, one line a logged step",
    "metrics.jsonl": "one measured number a line",
    "samples.parquet": "a row a training sample: group, LDRM, LDRV, score, weight",
    "diagnosis.json": "the summary of it",
    "record": "the discriminator's raw output for every training sample",
    "checkpoints": "the networks",
    "generated": "generated samples",
    "calibration.npz": "logits of held-out reals, training reals and fakes",
    "thumbnails.npz": "the training images of this page",
    "tensorboard": "the curves for TensorBoard",
}


def making(c: Contents) -> Section:
    """How the run was made: everything that is needed to make it again."""
    known = ("command", "versions", "notes", "format")
    provenance = c.provenance
    rows = dict(_flat({key: value for key, value in provenance.items() if key not in known}))
    if c.config:
        rows = {"seed": c.config.seed} | rows
    files = [
        {"name": name, "what": what, "size": numbers.size(_n_bytes(c, name))}
        for name, what in FILES.items()
        if (c.run.path / name).exists()
    ]
    versions = provenance.get("versions") or {}
    command = provenance.get("command")
    return Section(
        {"command": command, "rows": rows, "versions": versions, "files": files,
         "config": json.dumps(c.config_json, indent=2) if c.config_json else ""},
        {"command": command, **rows, "versions": versions},
        sources=("provenance.json", "config.json"),
    )  # fmt: skip


def _flat(tree: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """`data: {n: 1}` as `data n: 1`; notes are told elsewhere."""
    for key, value in tree.items():
        name = f"{above} {key}".strip().replace("_", " ")
        if isinstance(value, dict):
            yield from _flat(value, name)
        elif key != "notes":
            yield name, value


def _n_bytes(c: Contents, name: str) -> int:
    path = c.run.path / name
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
