"""A generator, or images of any origin -> features once -> all metrics -> lines of numbers."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from diagan import checkpoint, protocols
from diagan.config import Config, ImageFolder
from diagan.data import Dataset, load_dataset
from diagan.data.dataset import fingerprint
from diagan.data.folder import side_of_first
from diagan.errors import UserError, did_you_mean
from diagan.features import Extractor, best_for, by_name
from diagan.features.inception import Resize
from diagan.findings.judging import keep_ldr
from diagan.measures import N_PICTURES, Fakes, Reals, Subset, measure, watch
from diagan.metrics.ranks import ascending
from diagan.progress import Display, Silent, duration
from diagan.protocols import Protocol
from diagan.random import numpy_generator
from diagan.rundata import load_data, read_settings
from diagan.rundir import RunDir, append_line, cut_lines, open_run, replacing
from diagan.sample import ARMS, image_grid, load_at
from diagan.thumbnails import add_thumbnails, small

BATCH = 1_000  # generated samples at a time
N_DEFAULT = 10_000
N_QUARTERS = 4
N_GRID = 64  # images in a grid
ATTRIBUTE = "attribute:"  # as its column in samples.parquet is called
Line = dict[str, Any]


@dataclass(frozen=True)
class Arm:
    """A generator of a run, drawn from with or without rejection: `weighted`, `plain+drs`."""

    name: str
    drs: bool = False

    @classmethod
    def of(cls, text: str) -> "Arm":
        name, plus, drs = text.partition("+")
        if name not in ARMS or (plus and drs != "drs"):
            known = ", ".join([*ARMS, *(f"{arm}+drs" for arm in ARMS)])
            raise UserError(f"there is no arm {text!r}; expected one of {known}")
        return cls(name, bool(plus))

    @property
    def file(self) -> str:
        return f"{self.name}_drs" if self.drs else self.name


@dataclass(frozen=True)
class Look:
    """How an evaluation looks at images."""

    extractor: str | None = None  # None: the best at hand
    weights: Path | None = None
    resize: Resize = "tf1"


def evaluate_run(
    path: str | Path,
    names: Sequence[str] = (),
    *,
    n: int = N_DEFAULT,
    arms: Sequence[str] = (),
    look: Look | None = None,
    by: str = "group",
    seed: int | None = None,
    shown: Display | None = None,
) -> list[Line]:
    """Measure every arm of a run; the lines are also in its metrics.jsonl."""
    run = open_run(path)
    settings = read_settings(run)
    data = load_data(run, settings)
    several = len(data.group_names) > 1 or by != "group"
    wanted = protocols.parse_all(names or protocols.defaults(n, with_groups=several))
    chosen = [Arm.of(arm) for arm in arms] or arms_of(run, settings)
    scores, shown = read_scores(run), shown or Silent()
    real = Reals(
        data, extractor_for(data, look or Look(), run), settings.seed if seed is None else seed,
        subsets_by(by, data, scores), scores, partial(Countdown, "real images", shown),
    )  # fmt: skip
    found = [evaluate_arm(run, arm, real, wanted, shown) for arm in chosen]
    return list(chain.from_iterable(found))


def evaluate_arm(
    run: RunDir, arm: Arm, real: Reals, wanted: Sequence[Protocol], shown: Display
) -> list[Line]:
    """Draw from an arm once, keep a grid of it, and measure; older lines of it go."""
    steps = checkpoint.steps(run.checkpoints, arm.name)
    if not steps:
        raise UserError(f"{run.path} has no checkpoint of {arm.name}; train it first")
    generator = load_at(run, arm.name, steps[-1])
    if not generator.is_finished:
        shown.say(f"warning: {generator}")
    drawn = generator.draw(real.seed, drs=arm.drs)
    n = max(protocol.n for protocol in wanted)
    counting = Countdown(f"images of {arm.file}", shown, n)
    fake = watch(drawn.batches(n, BATCH), real.extractor, wanted, counting)
    keep_pictures(run, arm.file, fake.samples[:N_PICTURES] if real.extractor else fake.features)
    looked_at = fake.samples if real.extractor else fake.features
    keep_ldr(run, arm.file, generator, looked_at[:N_PICTURES])
    about = {
        "arm": arm.name, "drs": arm.drs, "checkpoint": f"{arm.name}-{generator.step:06d}",
        "rejects_by": generator.rejects_by if arm.drs else None,
    }  # fmt: skip
    found = lines(real, fake, wanted, about, shown)
    for metric in ("acceptance_rate", "mean_ratio") if drawn.sampler else ():
        value = getattr(drawn.sampler, metric)
        found.append({"metric": metric, "value": value, "n_fake": n, "seed": real.seed} | about)
    add_thumbnails(run, real.data.values, found)
    new = {identity(line) for line in found}
    cut_lines(run.metrics, lambda line: identity(line) not in new and not outdated(line, about))
    for line in found:
        append_line(run.metrics, line)
    return found


def outdated(line: Line, about: Line) -> bool:
    """Whether a line is of an earlier checkpoint of the arm."""
    return bool(line["arm"] == about["arm"] and line.get("checkpoint") != about["checkpoint"])


def identity(line: Line) -> tuple[object, ...]:
    """What a newer line takes the place of."""
    keys = ("metric", "protocol", "group", "arm", "drs", "extractor", "real", "fake")
    return tuple(line.get(key) for key in keys)


def evaluate_folders(
    real: str | Path,
    fake: str | Path,
    names: Sequence[str] = (),
    *,
    n: int | None = None,
    look: Look | None = None,
    size: int | None = None,
    seed: int = 0,
    shown: Display | None = None,
) -> list[Line]:
    """Measure a folder of images against another; the groups are the sub-folders of `real`."""
    if missing := [path for path in (real, fake) if not Path(path).exists()]:
        raise UserError(f"{missing[0]} does not exist; expected a folder of images")
    side = size or side_of_first(Path(real))
    shown = shown or Silent()
    data, images = alike(*(whole_folder(path, side, shown) for path in (real, fake)))
    all_of_them = min(images.n, N_DEFAULT) if n is None else n
    names = names or protocols.defaults(all_of_them, with_groups=len(data.group_names) > 1)
    return evaluate_images(real=data, fake=images.values, names=names, look=look, seed=seed,
                           shown=shown, about={"real": str(real), "fake": str(fake)})  # fmt: skip


def evaluate_images(
    *,
    real: Dataset | np.ndarray,
    fake: np.ndarray,
    names: Sequence[str],
    look: Look | None = None,
    seed: int = 0,
    shown: Display | None = None,
    about: Line | None = None,
) -> list[Line]:
    """Measure generated images against real ones: uint8 [N, C, H, W] both, or points [N, 2]."""
    data = real if isinstance(real, Dataset) else without_heldout(real)
    wanted, shown = protocols.parse_all(names), shown or Silent()
    n = max(protocol.n for protocol in wanted)
    if n > len(fake):
        first = next(p.name for p in wanted if p.n > len(fake))
        raise UserError(
            f"{first} needs {n:,} generated images and there are {len(fake):,}; give more, or "
            "another number in the metric's name"
        )
    reals = Reals(data, extractor_for(data, look or Look(), None), seed,
                  subsets_by("group", data, None),
                  counting=partial(Countdown, "real images", shown))  # fmt: skip
    # Folders are often sorted by class: a part of one would be some of its classes.
    order = numpy_generator(seed, "evaluate/fakes").permutation(len(fake))[:n]
    batches = (fake[order[i : i + BATCH]] for i in range(0, n, BATCH))
    fakes = watch(batches, reals.extractor, wanted, Countdown("generated images", shown, n))
    return lines(reals, fakes, wanted, about or {}, shown)


class Countdown:
    """Says every so often how many samples were looked at and how long the rest will take."""

    EVERY = 15.0  # seconds

    def __init__(self, what: str, shown: Display, n: int) -> None:
        self.what, self.shown, self.n, self.done = what, shown, n, 0
        self.began = self.said = time.monotonic()

    def __call__(self, more: int) -> None:
        self.done += more
        now = time.monotonic()
        if now - self.said > self.EVERY and self.done < self.n:
            self.said = now
            left = duration((now - self.began) / self.done * (self.n - self.done))
            self.shown.say(f"{self.what}: looked at {self.done:,} of {self.n:,}, {left} left")


def lines(
    real: Reals, fake: Fakes, wanted: Sequence[Protocol], about: Line, shown: Display
) -> list[Line]:
    """Every number with all that it depends on; a metric's warnings are said, each once."""
    extractor = real.extractor
    how = {
        "seed": real.seed,
        "data": real.data.fingerprint,
        "extractor": extractor.name if extractor else "coordinates",
        "extractor_version": extractor.version if extractor else "",
        "comparable_with_published": bool(extractor and extractor.published),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [
            {"protocol": p.name, **line, "n_fake": p.n, **how, **about}
            for p in wanted
            for line in measure(p, real=real, fake=fake)
        ]
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        shown.say(f"warning: {text}")
    return found


def extractor_for(data: Dataset, look: Look, run: RunDir | None) -> Extractor | None:
    if not data.is_image:
        return None
    if look.extractor is None:
        return best_for(data, run, weights=look.weights, resize=look.resize)
    return by_name(look.extractor, data, weights=look.weights, resize=look.resize, run=run)


def arms_of(run: RunDir, settings: Config) -> list[Arm]:
    """Those that a run has at its end: plain, weighted, and the latter with valid rejection."""
    there = [arm for arm in ("plain", "weighted") if checkpoint.steps(run.checkpoints, arm)]
    arms = [Arm(name) for name in there or ["phase1"]]
    # Without a critic D would reject, whose density ratio is that to the weighted data.
    rejects = "weighted" in there and settings.critic.on
    return [*arms, Arm("weighted", drs=True)] if rejects else arms


def read_scores(run: RunDir) -> np.ndarray | None:
    if not run.samples.exists():
        return None
    scores: np.ndarray = pq.read_table(run.samples, columns=["score"])["score"].to_numpy()
    return scores


def subsets_by(by: str, data: Dataset, scores: np.ndarray | None) -> list[Subset]:
    """The groups of the data, an attribute, quarters of the score, or the indices in a file."""
    if by == "group":
        members = ((name, np.flatnonzero(data.groups == i))
                   for i, name in enumerate(data.group_names))  # fmt: skip
        return [Subset(name, indices) for name, indices in members if len(indices)]
    if by.startswith(ATTRIBUTE):
        name = by.removeprefix(ATTRIBUTE)
        if name not in data.attributes:
            raise UserError(f"--by {by}: the data have no attribute {name!r}"
                            f"{did_you_mean(name, list(data.attributes))}")  # fmt: skip
        return [Subset(by, np.flatnonzero(data.attributes[name] == 1))]
    if by == "score":
        if scores is None:
            raise UserError("--by score needs scores: diagnose the run first")
        parts = np.array_split(ascending(scores), N_QUARTERS)
        names = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
        return [Subset(f"score: {name}", np.sort(part)) for name, part in zip(names, parts)]
    return [Subset(Path(by).stem, read_indices(by, data.n))]


def read_indices(path: str, n: int) -> np.ndarray:
    """Dataset indices from an .npy file, or from a text file with one a line."""
    try:
        if path.endswith(".npy"):
            indices = np.load(path, allow_pickle=False)
        else:
            indices = np.array([int(word) for word in Path(path).read_text().split()], dtype=int)
    except (OSError, ValueError) as error:
        raise UserError(
            f"--by {path}: expected group, score, attribute:NAME, or a file of indices ({error})"
        ) from None
    if indices.ndim != 1 or not len(indices) or indices.dtype.kind not in "iu":
        raise UserError(f"{path} holds no list of indices; expected whole numbers, one a line")
    if indices.min() < 0 or indices.max() >= n:
        raise UserError(f"{path} has an index outside 0 to {n - 1}: it is of another dataset")
    return np.unique(indices)


def whole_folder(path: str | Path, side: int, shown: Display) -> Dataset:
    """All images of a folder, none held out."""
    data = load_dataset(ImageFolder(str(path), side), seed=0)
    for note in data.notes:
        shown.say(f"{path}: {note}")
    values = np.concatenate([data.values, data.heldout])
    groups = np.concatenate([data.groups, data.heldout_groups])
    return without_heldout(values, groups, data.group_names)


def without_heldout(
    values: np.ndarray, groups: np.ndarray | None = None, names: tuple[str, ...] = ("all",)
) -> Dataset:
    groups = np.zeros(len(values), dtype=np.int64) if groups is None else groups
    return Dataset(values, groups, names, values[:0], groups[:0], fingerprint(values, groups))


def alike(*folders: Dataset) -> list[Dataset]:
    """Grey images become coloured ones where the other folder's are."""
    channels = max(data.shape[0] for data in folders)
    return [replace(data, values=np.repeat(data.values, channels // data.shape[0], axis=1))
            for data in folders]  # fmt: skip


def keep_pictures(run: RunDir, name: str, samples: np.ndarray) -> None:
    """A grid of images and small ones of them, or the points themselves."""
    run.generated.mkdir(exist_ok=True)
    if samples.ndim == 2:
        with replacing(run.generated / f"{name}.npy") as temporary, temporary.open("wb") as file:
            np.save(file, samples)
        return
    with replacing(run.generated / f"{name}.png") as temporary:
        image_grid(samples[:N_GRID], scale=2).save(temporary, format="PNG")
    with replacing(run.generated / f"{name}.npz") as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, images=np.stack([small(image) for image in samples]))
