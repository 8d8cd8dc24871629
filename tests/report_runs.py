"""Run folders for the tests of the report, written as docs/formats.md says, and a page's parts."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from diagan.config import DCGAN, MLP, Config, DemoDigits, Gaussians25, Record, to_json
from diagan.rundir import RunDir, append_line, write_json

RECORDS = [100, 200, 300]
NASTY = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>')


class Page(HTMLParser):
    """The attributes and visible text of a page, as a browser parses it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.rows: list[list[str]] = []
        self.ids: set[str] = set()
        self.words: list[str] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append((tag, attributes))
        self.ids.add(attributes.get("id", ""))
        self._inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data):
        if "script" in self._inside or "style" in self._inside:
            return
        self.words.append(data)
        if "td" in self._inside or "th" in self._inside:
            self.rows[-1][-1] += data.replace("\xa0", " ")

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def row(self, first: str, length: int = 0) -> list[str]:
        """The cells of the row that begins so, of the table with so many columns."""
        return next(r for r in self.rows if r and r[0] == first and len(r) >= length)


def read(path: Path) -> Page:
    return Page((path / "report.html").read_text(encoding="utf-8"))


def write_samples(run: RunDir, names, score_of, *, ldrv_missing=()) -> None:
    """A table of samples whose LDRM is their score less 0.5 and whose LDRV is 0.25 (k = 1)."""
    n = len(names)
    score = np.asarray(score_of, dtype=float)
    ldrv = [None if i in ldrv_missing else 0.25 for i in range(n)]
    columns = {
        "index": np.arange(n),
        "group": list(names),
        "file": [f"{name}/{i}.png" for i, name in enumerate(names)],
        "ldrm": score - 0.5,
        "ldrv": pa.array(ldrv, pa.float64()),
        "score": score,
        "weight": np.full(n, 1 / n),
    }
    run.path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), run.samples)


def write_record(run: RunDir, n: int, steps=RECORDS, is_ldr: bool = True) -> None:
    run.record.mkdir(parents=True)
    about = {"format": 1, "n": n, "mode": "eval", "is_ldr": is_ldr}
    write_json(run.record / "meta.json", about)
    for step in steps:
        np.save(run.record / f"{step:06d}.npy", np.linspace(0, 1, n, dtype=np.float32) + step)


def write_log(run: RunDir, stages) -> None:
    for stage, steps in stages.items():
        for step in steps:
            line = {"stage": stage, "step": step, "images": step * 64, "loss_D": 1.3, "loss_G": 0.8}
            line |= {"d_real": 0.6, "d_fake": 0.4, "lr": 1e-4, "time": 1_790_000_000.0 + step}
            line |= {"loss_critic": 1.2} if stage == "weighted" else {}
            append_line(run.log, line)


def share_line(group, arm, value, low, high, drs=False, n_fake=2_000):
    return {
        "metric": "group_share", "value": value, "arm": arm, "drs": drs, "n_fake": n_fake,
        "seed": 0, "checkpoint": f"{arm}-400", "group": group, "low": low, "high": high,
        "probe": "3nn_pixels", "probe_accuracy": 0.9984, "probe_balanced_accuracy": 0.981,
    }  # fmt: skip


def group_row(name, n, share, score, weight_share):
    return {"name": name, "n": n, "share": share, "ldrm": score - 0.5, "ldrv": 0.25,
            "score": score, "weight_share": weight_share}  # fmt: skip


def diagnosis(n, groups, rare, auc, **others):
    return {
        "format": 1, "n": n, "n_records": 3, "first_step": 100, "last_step": 300, "mode": "eval",
        "is_ldr": True, "k": 1.0, "k_is_auto": False, "centre": "none", "floor": 0.01,
        "ratio": 50.0, "clip": "cap", "exponent": 1.0, "groups": groups, "rare": rare, "auc": auc,
        "warnings": [], **others,
    }  # fmt: skip


def image_run(path: Path, names=("red", "green"), n: int = 200, n_rare: int = 6) -> RunDir:
    """Two groups; the last n_rare samples are of the rare one and score highest."""
    run = RunDir(path)
    rng = np.random.default_rng(0)
    config = Config(DemoDigits(n=n), DCGAN(), steps=400, record=Record(every=100), seed=7)
    write_json(run.config, to_json(config))
    write_json(
        run.provenance,
        {
            "command": f"diagan run --data.kind {names[1]}",
            "versions": {"diagan": "0.1.0", "torch": "2.13"},
            "fingerprint": "0123456789abcdef",
            "estimates": {"seconds": 180},
            "notes": [f"2 unreadable, skipped: {names[0]}.png"],
        },
    )
    group = [names[0]] * (n - n_rare) + [names[1]] * n_rare
    score = np.r_[np.linspace(1, 2, n - n_rare), np.linspace(4, 5, n_rare)]
    write_samples(run, group, score)
    groups = [
        group_row(names[0], n - n_rare, 1 - n_rare / n, 1.5, 0.9),
        group_row(names[1], n_rare, n_rare / n, 4.5, 0.1),
    ]
    auc = {"ldrm": 0.9, "ldrv": 0.5, "score": 0.974}
    warning = "The weights are nearly uniform: 1.0% of the draws move."
    write_json(run.diagnosis, diagnosis(n, groups, names[1], auc, warnings=[warning]))
    write_record(run, n)
    write_log(run, {"phase1": range(50, 301, 50), "plain": [350, 400], "weighted": [350, 400]})
    for step in (350, 400):
        append_line(run.log, {"stage": "weighted", "step": step, "warning": "D has won: stop."})
    for name, data, plain, dia, rejected in (
        (names[1], 0.029, (0.004, 0.0017, 0.0078), (0.041, 0.033, 0.051), (0.028, 0.021, 0.036)),
        (names[0], 0.971, (0.996, 0.9922, 0.998), (0.959, 0.949, 0.967), (0.972, 0.964, 0.979)),
    ):
        append_line(run.metrics, share_line(name, "data", data, data - 0.01, data + 0.01))
        append_line(run.metrics, share_line(name, "plain", 0.5, 0.4, 0.6))  # measured again below
        append_line(run.metrics, share_line(name, "plain", *plain))
        append_line(run.metrics, share_line(name, "weighted", *dia))
        append_line(run.metrics, share_line(name, "weighted", *rejected, drs=True))
    rate = {"metric": "acceptance_rate", "value": 0.213, "arm": "weighted", "drs": True,
            "n_fake": 2_000, "seed": 0, "checkpoint": "weighted-400"}  # fmt: skip
    append_line(run.metrics, rate)
    mode = {
        "real_share": 0.031,
        "fake_share": 0.002,
        "low": 0.001,
        "high": 0.004,
        "examples": [199, 198, 100],
    }  # 100 has no picture
    for arm, modes in (("weighted", []), ("plain", [mode])):
        append_line(
            run.metrics,
            {
                "metric": "missing_modes",
                "value": len(modes),
                "n_real": n,
                "n_fake": 2_000,
                "arm": arm,
                "drs": False,
                "modes": modes,
                "extractor": "pixels",
                "checkpoint": f"{arm}-400",
            },
        )
    index = np.r_[np.arange(n - 60, n), np.arange(60)] if n > 120 else np.arange(n)
    images = rng.integers(0, 255, (len(index), 16, 16, 3), dtype=np.uint8)
    np.savez(run.thumbnails, index=index, images=images)
    (run.generated / "progress").mkdir(parents=True)
    for arm in ("plain", "weighted", "weighted_drs", "phase1"):
        pixels = rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(run.generated / f"{arm}.png")
        Image.fromarray(pixels).save(run.generated / "progress" / f"{arm.split('_')[0]}-000100.png")
        fakes = rng.integers(0, 255, (80, 16, 16, 3), dtype=np.uint8)
        np.savez(run.generated / f"{arm}.npz", images=fakes)
    return run


def point_run(path: Path) -> RunDir:
    """Two-dimensional data with 25 groups, none of them rare."""
    run = RunDir(path)
    config = Config(Gaussians25(n=250), MLP(), steps=400, record=Record(every=100))
    write_json(run.config, to_json(config))
    names = [f"mode {i % 25}" for i in range(250)]
    write_samples(run, names, np.linspace(0, 3, 250), ldrv_missing=(0, 1))
    groups = [group_row(f"mode {i}", 10, 0.04, 1.5, 0.04) for i in range(25)]
    write_json(run.diagnosis, diagnosis(250, groups, None, None))
    write_record(run, 250)
    run.generated.mkdir()
    points = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    np.save(run.generated / "plain.npy", points)
    np.save(run.generated / "weighted.npy", points + 1)
    return run


def phase1_run(path: Path) -> RunDir:
    """A run that was stopped after one record: no groups, no diagnosis, no metrics."""
    run = RunDir(path)
    config = Config(DemoDigits(n=50), DCGAN(), steps=400, phase1_share=1.0)
    write_json(run.config, to_json(config))
    write_record(run, 50, steps=[100])
    write_log(run, {"phase1": [50, 100]})
    run.generated.mkdir()
    Image.new("L", (32, 32)).save(run.generated / "phase1.png")
    return run
