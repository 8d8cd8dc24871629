"""Faces drawn by code, with attributes at any rate: what CelebA is for those who cannot have it.

Everything about a face but its attributes varies from one to the next and is the same in kind for
all: colours, proportions, hair, expression, where it looks. Drawn large and reduced, so that edges
are smooth.
"""

from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageDraw

from diagan.config import DrawnFaces
from diagan.data.dataset import Dataset, fingerprint
from diagan.data.folder import rare_group
from diagan.data.pack import Rows, load_or_pack
from diagan.random import numpy_generator

NAMES = ("hat", "glasses", "moustache", "pale", "bald")
VERSION = 1  # of the drawing: another one is another dataset
SIDE = 128  # faces are drawn on a square of this side, or the size asked for if that is larger

SKINS = ((198, 134, 96), (224, 172, 125), (141, 85, 54), (176, 112, 74), (106, 66, 44))
PALE = (250, 236, 228)
HAIR = ((38, 26, 20), (92, 58, 32), (24, 22, 26), (150, 98, 44), (120, 50, 26), (110, 104, 100))
CLOTH = ((178, 40, 48), (36, 70, 140), (30, 110, 70), (220, 160, 40), (110, 60, 130), (60, 60, 66))

Colour = tuple[int, int, int]


def drawn_faces(config: DrawnFaces, seed: int, root: str | None = None) -> Dataset:
    """n faces and a tenth as many held out, of which each attribute has its share exactly."""
    values, table = _faces(config, config.n, seed, "data/drawn_faces")
    n_heldout = max(1, config.n // 10)
    heldout, heldout_table = _faces(config, n_heldout, seed, "data/drawn_faces/heldout")
    groups = table[config.attribute]
    counts = ", ".join(f"{int(has.sum()):,} {name}" for name, has in table.items())
    return Dataset(
        values=values,
        groups=groups,
        group_names=(f"not {config.attribute}", config.attribute),
        heldout=heldout,
        heldout_groups=heldout_table[config.attribute],
        fingerprint=fingerprint(values, groups),
        rare=rare_group(groups, 2),
        notes=(f"{config.n:,} drawn faces: {counts}",),
        attributes=table,
        heldout_attributes=heldout_table,
    )


def _faces(
    config: DrawnFaces, n: int, seed: int, purpose: str
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """uint8 [n, 3, size, size] and the table of attributes, int64 [n] each."""
    rates = {name: getattr(config, name) for name in NAMES}
    table = {name: _given(n, rate, seed, f"{purpose}/{name}") for name, rate in rates.items()}

    def rows() -> Iterator[np.ndarray]:
        random = numpy_generator(seed, purpose)
        for i in range(n):
            face = Face(random, {name: bool(table[name][i]) for name in NAMES})
            yield np.asarray(face.draw(config.size)).transpose(2, 0, 1)

    key = (VERSION, n, seed, purpose, config.size, *rates.values())
    shape = (3, config.size, config.size)
    images, _ = load_or_pack("drawn_faces", key, lambda: Rows(n, shape, rows()))
    return np.array(images), table


def _given(n: int, rate: float, seed: int, purpose: str) -> np.ndarray:
    """int64 [n]: 1 for round(n * rate) of them, chosen at random."""
    has = np.zeros(n, dtype=np.int64)
    has[numpy_generator(seed, purpose).permutation(n)[: round(n * rate)]] = 1
    return has


class Face:
    """One face: what is drawn of it, in units of which 100 are the picture's side."""

    def __init__(self, random: np.random.Generator, has: dict[str, bool]) -> None:
        def near(value: float, spread: float) -> float:
            return value + spread * float(random.uniform(-1, 1))

        def tint(colours: tuple[Colour, ...], spread: int) -> Colour:
            mixed = np.array(colours[random.integers(len(colours))]) + near(0, spread)
            mixed += random.uniform(-spread / 2, spread / 2, 3)
            return tuple(int(c) for c in np.clip(mixed, 0, 255))  # type: ignore[return-value]

        # All is drawn from `random` for every face: an attribute changes itself and nothing else.
        self.has = has
        self.ground = tuple(int(c) for c in random.integers((90, 110, 130), (190, 200, 225)))
        skin, self.hair, self.shirt = tint(SKINS, 14), tint(HAIR, 12), tint(CLOTH, 16)
        self.cap, pale = tint(CLOTH, 16), tint((PALE,), 4)
        self.skin = pale if has["pale"] else skin
        self.x, self.y = near(50, 4), near(54, 3)  # the middle of the face
        self.w, self.h = near(24, 3), near(30, 3)  # half its width and height
        self.eyes, self.eye = near(10.5, 1.5), near(3.2, 0.6)  # how far apart; how large
        self.look, self.brow = near(0, 1.2), near(0, 1.5)
        self.smile, self.mouth, self.lips = near(2.5, 3.5), near(9, 2), near(1.6, 0.5)
        self.nose = near(4, 1)
        self.long, self.part, self.fringe = random.random() < 0.45, near(0, 14), near(9, 3)

    def draw(self, size: int) -> Image.Image:
        side = max(SIDE, size)
        image = Image.new("RGB", (side, side), self.ground)
        self.pen, self.unit = ImageDraw.Draw(image), side / 100
        self._body()
        self._features()
        if self.has["moustache"]:
            self._moustache()
        if self.has["glasses"]:
            self._glasses()
        if self.has["hat"]:
            self._hat()
        return image.resize((size, size), Image.Resampling.BOX)

    def _body(self) -> None:
        x, y, w, h = self.x, self.y, self.w, self.h
        is_bald = self.has["bald"]
        if not is_bald:  # what hangs behind the face
            low = y + (h * 1.15 if self.long else h * 0.1)
            self._oval(x - w - 5, y - h - 6, x + w + 5, y + h * 0.5, self.hair)
            self._box(x - w - 5, y - h * 0.2, x + w + 5, low, self.hair)
        self._oval(x - 34, y + h + 4, x + 34, y + h + 60, self.shirt)
        self._box(x - 9, y + h - 10, x + 9, y + h + 8, self._shade(self.skin, 0.86))
        for side in (-1, 1):  # ears
            self._disc(x + side * w, y + 2, 5, self._shade(self.skin, 0.92))
        self._oval(x - w, y - h, x + w, y + h, self.skin)
        if is_bald:  # a wreath of hair, and a gleam
            for side in (-1, 1):
                self._oval(x + side * (w - 1) - 4, y - 12, x + side * (w - 1) + 4, y + 2, self.hair)
            self._oval(x - 9, y - h + 3, x - 1, y - h + 7, self._shade(self.skin, 1.18))
        else:  # a parting somewhere, and a fringe to both sides of it
            top, low, part = y - h - 2, y - h + self.fringe, x + self.part
            self._oval(x - w - 2, top - 2, part + 3, low + 6, self.hair)
            self._oval(part - 3, top - 2, x + w + 2, low + 6, self.hair)

    def _features(self) -> None:
        x, y, dark = self.x, self.y, self._shade(self.skin, 0.62)
        for side in (-1, 1):
            eye = x + side * self.eyes
            self._oval(eye - self.eye * 1.4, y - 4 - self.eye, eye + self.eye * 1.4,
                       y - 4 + self.eye, (250, 250, 250))  # fmt: skip
            self._disc(eye + self.look, y - 4, self.eye * 0.75, (34, 26, 24))
            self._line([(eye - 5, y - 11 - side * self.brow), (eye + 5, y - 11 + side * self.brow)],
                       1.8, self._shade(self.hair, 0.8))  # fmt: skip
        tip = y + self.nose + 2
        self._line([(x, y - 2), (x - 2.5, tip), (x + 2, tip)], 1.4, dark)
        at = np.linspace(-1, 1, 9)
        lips = [(x + self.mouth * t, y + 17 + self.smile * (0.5 - t * t)) for t in at]
        self._line(lips, 2 * self.lips, (168, 60, 62))

    def _moustache(self) -> None:
        x, y = self.x, self.y + self.nose + 4
        for side in (-1, 1):
            tips = [(x, y), (x + side * 7, y + 0.5), (x + side * 13, y + 5), (x, y + 5)]
            self._polygon(tips, self._shade(self.hair, 0.7))

    def _glasses(self) -> None:
        y, r = self.y - 4, 8
        for side in (-1, 1):
            eye = self.x + side * self.eyes
            box = self._scaled(eye - r, y - r, eye + r, y + r)
            self.pen.ellipse(box, outline=(16, 16, 20), width=max(1, round(2.2 * self.unit)))
            self._line([(eye + side * r, y), (self.x + side * self.w, y - 1)], 2, (16, 16, 20))
        self._line([(self.x - self.eyes + r, y), (self.x + self.eyes - r, y)], 2, (16, 16, 20))

    def _hat(self) -> None:
        x, w, brim = self.x, self.w, self.y - self.h * 0.52
        self._polygon([(x - w * 0.85, brim), (x - w * 0.7, brim - 27), (x + w * 0.7, brim - 27),
                       (x + w * 0.85, brim)], self.cap)  # fmt: skip
        self._box(x - w * 0.85, brim - 7, x + w * 0.85, brim - 1, self._shade(self.cap, 0.45))
        self._oval(x - w * 1.5, brim - 3, x + w * 1.5, brim + 4, self.cap)

    def _scaled(self, *numbers: float) -> list[float]:
        return [number * self.unit for number in numbers]

    def _oval(self, left: float, top: float, right: float, low: float, colour: Colour) -> None:
        self.pen.ellipse(self._scaled(left, top, right, low), fill=colour)

    def _disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        self._oval(x - radius, y - radius, x + radius, y + radius, colour)

    def _box(self, left: float, top: float, right: float, low: float, colour: Colour) -> None:
        self.pen.rectangle(self._scaled(left, top, right, low), fill=colour)

    def _polygon(self, points: list[tuple[float, float]], colour: Colour) -> None:
        self.pen.polygon([(x * self.unit, y * self.unit) for x, y in points], fill=colour)

    def _line(self, points: list[tuple[float, float]], width: float, colour: Colour) -> None:
        scaled = [(x * self.unit, y * self.unit) for x, y in points]
        self.pen.line(scaled, fill=colour, width=max(1, round(width * self.unit)), joint="curve")

    @staticmethod
    def _shade(colour: Colour, factor: float) -> Colour:
        red, green, blue = (min(255, int(c * factor)) for c in colour)
        return red, green, blue
