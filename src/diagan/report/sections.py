"""The sections of the page, one function each: what it shows, and the numbers in it."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diagan.report import figures, numbers, pictures
from diagan.report.contents import OTHER_COLOUR, PALETTE, Contents, Samples, arm_label, readable

N_THUMBNAILS = 48  # highest and lowest each
MAX_MAP_POINTS = 20_000
N_MAP_HIGHEST = 500  # always among them
MAX_CLOUD_POINTS = 5_000
N_TRACES = 5
TOP_SHARE = 0.05
HIGH, LOW = PALETTE[0], PALETTE[1]
STAGES = {
    "phase1": ("phase 1", OTHER_COLOUR),
    "plain": ("plain GAN", LOW),
    "weighted": ("Dia-GAN", HIGH),
}
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
    "thumbnails.npz": "the training images of this page",
    "tensorboard": "the curves for TensorBoard",
}


@dataclass(frozen=True)
class Section:
    """What the template shows, the figures in it by name, and what report.json keeps."""

    shown: dict[str, Any]
    numbers: Any = None
    figures: dict[str, Any] = field(default_factory=dict)


def head(c: Contents) -> Section:
    """The title."""
    kind = c.config.data.kind
    shown = {"name": c.name, "kind": kind, "date": c.date}
    return Section(shown, {"kind": kind, "date": c.date})


def summary(c: Contents) -> Section:
    """The run in a few sentences; with a rare group, its share in data and generated samples."""
    diagnosis = c.diagnosis or {}
    rare, data_at = c.rare, 0.0
    rows: list[dict[str, Any]] = []
    if rare is not None:
        lines = {
            label: of_group[rare["name"]]
            for label, of_group in c.shares.items()
            if rare["name"] in of_group
        }
        limit = 1.08 * max([rare["share"], *(_bounds(line)[1] for line in lines.values())])
        data_at = 100 * rare["share"] / limit
        rows = [{"label": label, "line": line} | _bar(line, limit) for label, line in lines.items()]
    about = {
        key: diagnosis.get(key) for key in ("n", "n_records", "first_step", "last_step", "auc")
    }
    about["steps"] = max((line.get("step", 0) for line in c.log), default=None)
    about["is_ldr"] = c.is_ldr
    return Section(
        {
            **about,
            "config": c.config,
            "rare": rare,
            "rows": rows,
            "data_at": data_at,
            "verdict": _verdict(c),
            "has_warnings": bool(_warnings(c)),
        },
        {
            **about,
            "rare": rare and {"name": rare["name"], "n": rare["n"], "share": rare["share"]},
            "shares": {row["label"]: _interval(row["line"]) for row in rows},
        },
    )


def warnings(c: Contents) -> Section | None:
    """What went wrong, and what was done to the data."""
    found, notes = _warnings(c), list(c.provenance.get("notes") or [])
    if not found and not notes:
        return None
    return Section({"warnings": found, "notes": notes}, {"warnings": found, "notes": notes})


def images(c: Contents) -> Section | None:
    """The highest and lowest scored training images beside generated ones."""
    training, generated = [], []
    samples = c.samples
    if samples is not None and c.thumbnails:
        rows = [row for row in samples.by_score if int(samples.index[row]) in c.thumbnails]
        n = min(N_THUMBNAILS, len(rows) // 2)
        for label, chosen in (("Highest scored", rows[:n]), ("Lowest scored", rows[::-1][:n])):
            training.append({"label": label, "thumbnails": _thumbnails(c, samples, chosen)})
    for label, file in c.generated(".png").items():
        with readable(file):
            generated.append({"label": _capital(label), "uri": pictures.grid(file)})
    if not training and not generated:
        return None
    own = [(name, colour) for name, colour in c.colours.items() if colour != OTHER_COLOUR]
    legend = own if training and len(c.colours) > 1 else []
    return Section({"training": training, "generated": generated, "legend": legend})


def points(c: Contents) -> Section | None:
    """Data of two dimensions: the generated points of each arm."""
    panels: dict[str, tuple[np.ndarray, str]] = {}
    for label, file in c.generated(".npy").items():
        with readable(file):
            values = np.load(file)
        panels[label] = (values[:MAX_CLOUD_POINTS], HIGH if "Dia-GAN" in label else LOW)
    if not panels:
        return None
    made = figures.scatter(panels)
    names = {label: f"points-{number}" for number, label in enumerate(made)}
    n_shown = {label: len(values) for label, (values, _) in panels.items()}
    return Section(
        {"names": names, "n": n_shown},
        {"n_shown": n_shown},
        {names[label]: figure for label, figure in made.items()},
    )


def ldr_map(c: Contents) -> Section | None:
    """LDRM against sqrt(LDRV), a point a training sample."""
    s = c.samples
    if s is None:
        return None
    rows = s.by_score[np.isfinite(s.ldrm[s.by_score]) & np.isfinite(s.ldrv[s.by_score])]
    if not len(rows):
        return None
    shown = choose_points(rows)
    visible = set(s.index[shown].tolist())
    sprite = pictures.sprite({i: image for i, image in c.thumbnails.items() if i in visible})
    k = (c.diagnosis or {}).get("k")
    line = None
    if k:  # LDRM + k sqrt(LDRV) = limit (Eq. 7)
        limit = float(np.quantile(s.score[rows], 1 - TOP_SHARE))
        line = (-1 / k, limit / k)
    what = "LDR" if c.is_ldr else "raw output of D"
    figure = figures.ldr_map(
        _clouds(c, s, shown),
        f"LDRM: mean {what}",
        f"√LDRV: standard deviation of the {what}",
        sprite,
        line,
    )
    about = {"n_points": len(rows), "n_shown": len(shown)}
    top = round(100 * TOP_SHARE) if line else None
    n_missing = len(s.index) - len(rows)
    return Section(
        {**about, "n_highest": N_MAP_HIGHEST, "n_missing": n_missing, "top": top, "k": k,
         "sprite": sprite, "groups": len(c.colours)},
        {**about, "k": k, "n_missing": n_missing},
        {"map": figure},
    )  # fmt: skip


def groups(c: Contents) -> Section | None:
    """A row a group: how it weighs in the data, the diagnosis and what is generated."""
    if not c.groups:
        return None
    rows = [
        {
            **group,
            "shares": {label: shares.get(group["name"]) for label, shares in c.shares.items()},
        }
        for group in c.groups
    ]
    probes = {
        (line["probe"], line.get("probe_accuracy"), line.get("probe_balanced_accuracy"))
        for shares in c.shares.values()
        for line in shares.values()
        if line.get("probe")
    }
    kept = ("name", "n", "share", "weight_share", "ldrm", "ldrv", "score")
    found = [
        {
            **{key: row.get(key) for key in kept},
            "generated": {label: _interval(line) for label, line in row["shares"].items() if line},
        }
        for row in rows
    ]
    about = [
        {"probe": name, "accuracy": accuracy, "balanced_accuracy": balanced}
        for name, accuracy, balanced in sorted(probes, key=str)
    ]
    return Section(
        {"rows": rows, "arms": list(c.shares), "probes": about, "colours": c.colours,
         "rare": c.rare and c.rare["name"]},
        {"groups": found, "probes": about},
    )  # fmt: skip


def measurements(c: Contents) -> Section | None:
    """What else was measured: the last value of each metric of each arm."""
    last = {
        (line.get("protocol"), line["metric"], line.get("group"), arm_label(line)): line
        for line in c.metrics
        if line["metric"] != "group_share"
    }
    if not last:
        return None
    rows = [
        {
            "metric": metric, "group": group, "arm": arm, "value": line["value"],
            "low": line.get("low"), "high": line.get("high"), "protocol": protocol,
            "n_real": line.get("n_real"), "n_fake": line.get("n_fake"),
        }
        for (protocol, metric, group, arm), line in last.items()
    ]  # fmt: skip
    seen = {line["extractor"]: line["comparable_with_published"]
            for line in last.values() if "extractor" in line}  # fmt: skip
    own = [name for name, comparable in seen.items() if not comparable]
    return Section({"rows": rows, "own_features": own}, rows)


def curves(c: Contents) -> Section | None:
    """Losses and D's opinion by stage, and the LDR of a few samples over the records."""
    panels: dict[str, tuple[str, Any]] = {}
    lines = [line for line in c.log if "step" in line and "warning" not in line]
    extra = sorted({key for line in lines for key in line if key.startswith("loss_")}
                   - {"loss_D", "loss_G"})  # fmt: skip
    for name, title, keys in (
        ("loss-d", "Loss of the discriminator", ["loss_D", *extra]),
        ("loss-g", "Loss of the generator", ["loss_G"]),
        ("opinion", "What D says: real (line) and fake (dashed)", ["d_real", "d_fake"]),
    ):
        drawn = _stage_lines(lines, keys)
        if drawn:
            y_label = "chance of being real" if name == "opinion" else "loss"
            panels[name] = (title, figures.curves(drawn, "step", y_label))
    traces = _traces(c)
    if traces:
        title = f"{'LDR' if c.is_ldr else 'Raw output of D'} of the {N_TRACES} highest and "
        title += f"{N_TRACES} lowest scored samples"
        panels["traces"] = (title, figures.curves(traces, "step", "LDR" if c.is_ldr else "raw"))
    if not panels:
        return None
    return Section(
        {"panels": {name: title for name, (title, _) in panels.items()}},
        {"n_log_lines": len(lines), "n_records": len(c.records)},
        {name: figure for name, (_, figure) in panels.items()},
    )


def making(c: Contents) -> Section:
    """How the run was made: everything that is needed to make it again."""
    known = ("command", "versions", "notes", "estimates", "format")
    provenance = c.provenance
    rows = {"seed": c.config.seed, **{k: v for k, v in provenance.items() if k not in known}}
    estimates = provenance.get("estimates") or {}
    if not isinstance(estimates, dict):
        estimates = {"": estimates}
    rows |= {f"estimate {key}".strip(): value for key, value in estimates.items()}
    files = [
        {"name": name, "what": what, "size": numbers.size(_n_bytes(c, name))}
        for name, what in FILES.items()
        if (c.run.path / name).exists()
    ]
    versions = provenance.get("versions") or {}
    return Section(
        {"command": provenance.get("command"), "rows": rows, "versions": versions, "files": files,
         "config": json.dumps(c.config_json, indent=2)},
        {"command": provenance.get("command"), **rows, "versions": versions},
    )  # fmt: skip


# --- parts of sections ---------------------------------------------------------------------------


def choose_points(rows: np.ndarray) -> np.ndarray:
    """Of rows by falling score: all, or the highest and a seeded sample of the others."""
    if len(rows) <= MAX_MAP_POINTS:
        return rows
    rest = np.random.default_rng(0).choice(
        rows[N_MAP_HIGHEST:], MAX_MAP_POINTS - N_MAP_HIGHEST, replace=False
    )
    return np.concatenate([rows[:N_MAP_HIGHEST], rest])


def _interval(line: dict[str, Any]) -> dict[str, Any]:
    return {key: line.get(key) for key in ("value", "low", "high", "n_fake")}


def _bounds(line: dict[str, Any]) -> tuple[float, float]:
    """The interval of a share; where none was measured, the share itself."""
    low, high = (line.get(key) for key in ("low", "high"))
    return (line["value"] if low is None else low), (line["value"] if high is None else high)


def _bar(line: dict[str, Any], limit: float) -> dict[str, float]:
    """Where a share and its interval sit on a scale from 0 to `limit`, in percent."""
    low, high = _bounds(line)
    return {"at": 100 * line["value"] / limit, "from": 100 * low / limit, "to": 100 * high / limit}


def _verdict(c: Contents) -> str | None:
    """Whether the repair is seen in the shares of the rare group, by their intervals."""
    if c.rare is None:
        return None
    name = c.rare["name"]
    plain, dia = (c.shares.get(label, {}).get(name) for label in ("plain GAN", "Dia-GAN"))
    if not plain or not dia or any(line.get("low") is None for line in (plain, dia)):
        return None
    if dia["low"] > plain["high"]:
        return "Dia-GAN makes the rare group more often than the plain GAN does."
    if dia["high"] < plain["low"]:
        return "Dia-GAN makes the rare group less often than the plain GAN does."
    return "The two GANs do not differ by more than chance in how often they make the rare group."


def _warnings(c: Contents) -> list[str]:
    """The diagnosis's warnings and the log's; one that repeats is told once."""
    found = list((c.diagnosis or {}).get("warnings") or [])
    repeated: dict[tuple[str, str], list[int]] = defaultdict(list)
    for line in c.log:
        if "warning" in line:
            repeated[line.get("stage", ""), line["warning"]].append(line.get("step", 0))
    for (stage, text), steps in repeated.items():
        label, _ = STAGES.get(stage, (stage, ""))
        where = _capital(f"{label}, step {steps[0]:,}".removeprefix(", "))
        again = f" (told again until step {steps[-1]:,})" if len(steps) > 1 else ""
        found.append(f"{where}: {text}{again}")
    return found


def _thumbnails(c: Contents, samples: Samples, rows: Sequence[int]) -> list[dict[str, str]]:
    return [
        {
            "uri": pictures.data_uri(pictures.thumbnail(c.thumbnails[int(samples.index[row])])),
            "about": samples.describe(row),
            "colour": c.colours[samples.group_names[samples.group[row]]],
        }
        for row in rows
    ]


def _clouds(c: Contents, s: Samples, rows: np.ndarray) -> list[figures.Cloud]:
    """A cloud for each group that has a colour of its own, the small ones on top."""
    members: dict[str, list[int]] = defaultdict(list)
    names = {colour: name for name, colour in c.colours.items()}
    n_other = sum(colour == OTHER_COLOUR for colour in c.colours.values())
    names[OTHER_COLOUR] = f"{n_other} other groups"
    for row in rows.tolist():
        members[c.colours[s.group_names[s.group[row]]]].append(row)
    return [
        figures.Cloud(
            names[colour], colour, s.ldrm[own], np.sqrt(s.ldrv[own]), s.index[own], s.score[own],
            [s.group_names[i] for i in s.group[own]],
        )
        for colour, own in sorted(members.items(), key=lambda item: -len(item[1]))
    ]  # fmt: skip


def _stage_lines(lines: list[dict[str, Any]], keys: list[str]) -> list[figures.Line]:
    """A line for each stage and key: colours tell stages, dashes keys."""
    drawn = []
    for stage in dict.fromkeys(line.get("stage", "") for line in lines):
        label, colour = STAGES.get(stage, (stage, OTHER_COLOUR))
        for key, dash in zip(keys, ("solid", "dashed", "dotted", "dotdash")):
            own = [line for line in lines if line.get("stage", "") == stage and key in line]
            if own:
                short = key.removeprefix("loss_").removeprefix("d_")
                name = f"{label}: {short}" if len(keys) > 1 else label
                x, y = [line["step"] for line in own], [line[key] for line in own]
                drawn.append(figures.Line(name, name, x, y, colour, dash))
    return drawn


def _traces(c: Contents) -> list[figures.Line]:
    """The recorded values of the highest and lowest scored samples."""
    s = c.samples
    if s is None or len(c.records) < 2 or len(s.by_score) < 2:
        return []
    n = min(N_TRACES, len(s.by_score) // 2)
    rows = np.concatenate([s.by_score[:n], s.by_score[-n:]])
    values = []
    for file in c.records.values():
        with readable(file):
            values.append(np.load(file, mmap_mode="r")[s.index[rows]])  # [2 n]
    steps = list(c.records)
    kinds = [("highest scored", HIGH)] * n + [("lowest scored", LOW)] * n
    return [
        figures.Line(s.describe(int(row)), legend, steps, trace, colour)
        for row, trace, (legend, colour) in zip(rows, np.stack(values, axis=1), kinds)
    ]


def _n_bytes(c: Contents, name: str) -> int:
    path = c.run.path / name
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
