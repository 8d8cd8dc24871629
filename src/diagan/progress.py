"""What a person sees of a run: a live display on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")
PLAIN_EVERY = 30.0  # seconds between plain lines


class Display:
    """Plain lines: now and then where training stands, and what is said in between."""

    def __init__(self) -> None:
        self.stage, self.start, self.end = "", 0, 0
        self._shown = 0.0

    def begin(self, stage: str, start: int, end: int) -> None:
        self.stage, self.start, self.end = stage, start, end
        self._shown = 0.0

    def update(self, step: int, line: Mapping[str, float], speed: float) -> None:
        if time.monotonic() - self._shown > PLAIN_EVERY or step == self.end:
            self._shown = time.monotonic()
            self.say(self.describe(step, line, speed))

    def describe(self, step: int, line: Mapping[str, float], speed: float) -> str:
        left = duration((self.end - step) / speed) if speed else "?"
        return (
            f"{self.stage}: step {step}/{self.end}, {line['images']:,.0f} images, "
            f"loss D {line['loss_D']:.3f} G {line['loss_G']:.3f}, D(real) {line['d_real']:.2f} "
            f"D(fake) {line['d_fake']:.2f}, {speed:.1f} steps/s, {left} left"
        )

    def say(self, text: str) -> None:
        print(text, flush=True)

    def __enter__(self) -> "Display":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to tidy up here."""


class LiveDisplay(Display):
    """One bar with the numbers under it, kept at the bottom of the terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        super().__init__()
        self.console = Console()
        self.bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=self.console,
            transient=True,
        )
        self.task = self.bar.add_task("", total=1, numbers="", visible=False)
        self.bar.start()

    def begin(self, stage: str, start: int, end: int) -> None:
        super().begin(stage, start, end)
        self.bar.reset(self.task, total=end, completed=start, description=stage, visible=True)

    def update(self, step: int, line: Mapping[str, float], speed: float) -> None:
        numbers = self.describe(step, line, speed).partition(": ")[2]
        self.bar.update(self.task, completed=step, numbers=numbers)
        if step == self.end:
            self.say(self.describe(step, line, speed))
            self.bar.update(self.task, visible=False)

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self.bar.stop()


class Silent(Display):
    """Of the processes of a run one speaks; the others are silent."""

    def say(self, text: str) -> None:
        pass


def display(speaks: bool = True) -> Display:
    if not speaks:
        return Silent()
    return LiveDisplay() if sys.stdout.isatty() else Display()


def counted(things: Iterable[T], n: int, about: str) -> Iterable[T]:
    """The same n things; on a terminal with a bar that shows how many came."""
    if not sys.stdout.isatty():
        return things
    from rich.progress import track

    return track(things, about, total=n, transient=True)


def duration(seconds: float) -> str:
    """1:02:03, 4:05, or 12 s."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{rest:02d}"
    return f"{minutes}:{rest:02d}" if minutes else f"{rest} s"
