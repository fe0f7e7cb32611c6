"""How far a long piece of work is."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol

_PATIENCE_S = 2.0
_INTERVAL_S = 10.0


class Progress(Protocol):
    """Told of every finished cell."""

    def advance(self, rounds: int) -> None:
        """One more cell is done, which had so many rounds."""
        ...


class _Quiet:
    def advance(self, rounds: int) -> None:
        pass


class _Lines:
    """A line at intervals, for logs and pipes."""

    def __init__(self, cells: int) -> None:
        self.cells, self.done, self.rounds = cells, 0, 0
        self.start = self.last = time.monotonic()

    def advance(self, rounds: int) -> None:
        self.done += 1
        self.rounds += rounds
        now = time.monotonic()
        if now - self.last >= _INTERVAL_S:
            self.last = now
            print(self.line(now - self.start), file=sys.stderr, flush=True)  # noqa: T201

    def line(self, elapsed: float) -> str:
        left = elapsed / self.done * (self.cells - self.done)
        return (
            f"{self.done} of {self.cells} cells, {self.rounds / elapsed:,.0f} rounds/s, "
            f"{left:.0f} s left"
        )


class _Bar(_Lines):
    """A bar that a terminal draws over and over, once the work takes longer than a moment."""

    def __init__(self, cells: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        super().__init__(cells)
        self.bar = RichProgress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cells · {task.fields[speed]} ·"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task("", total=cells, speed="")
        self.shown = False

    def advance(self, rounds: int) -> None:
        self.done += 1
        self.rounds += rounds
        elapsed = time.monotonic() - self.start
        if not self.shown and elapsed > _PATIENCE_S:
            self.bar.start()
            self.shown = True
        speed = f"{self.rounds / elapsed:,.0f} rounds/s"
        self.bar.update(self.task, completed=self.done, speed=speed)


@contextlib.contextmanager
def progress(cells: int, *, quiet: bool) -> Iterator[Progress]:
    """Progress over so many cells: a bar in a terminal, lines elsewhere, or nothing."""
    if quiet or cells == 0:
        yield _Quiet()
    elif sys.stderr.isatty():
        shown = _Bar(cells)
        try:
            yield shown
        finally:
            if shown.shown:
                shown.bar.stop()
    else:
        yield _Lines(cells)
