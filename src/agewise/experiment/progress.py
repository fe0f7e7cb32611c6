"""How far a long piece of work is: a bar in a terminal, lines elsewhere."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from rich import progress as rich_progress
from rich.console import Console

from agewise.checks import visible

#: Work that is done sooner needs no progress.
_PATIENCE_S = 2.0
#: Between two lines where there is no terminal.
_INTERVAL_S = 10.0


def say(sentence: str, *, quiet: bool) -> None:
    """A sentence that people should see while results are made, beside standard output."""
    if not quiet:
        print(visible(sentence), file=sys.stderr, flush=True)  # noqa: T201


class Progress:
    """Counts finished runs and rounds."""

    def __init__(self, total: int, what: str = "runs") -> None:
        self.total, self.what, self.done, self.rounds = total, what, 0, 0
        self.start = time.monotonic()

    def advance(self, rounds: int) -> None:
        """One more run is done, which had so many rounds."""
        self.done += 1
        self.rounds += rounds

    @property
    def speed(self) -> str:
        """Rounds a second so far."""
        speed = self.rounds / (time.monotonic() - self.start)
        return f"{speed:,.0f} rounds/s" if speed >= 10 or speed == 0 else f"{speed:.2g} rounds/s"

    @property
    def line(self) -> str:
        """Everything in one line."""
        elapsed = time.monotonic() - self.start
        left = f"{elapsed / self.done * (self.total - self.done):.0f} s" if self.done else "unknown"
        return f"{self.done} of {self.total} {self.what}, {self.speed}, time left {left}"


@contextlib.contextmanager
def progress(total: int, *, quiet: bool, what: str = "runs") -> Iterator[Progress]:
    """Progress over so many runs, shown by a thread of its own while the work goes on."""
    counted = Progress(total, what)
    if quiet or total == 0:
        yield counted
        return
    over = threading.Event()
    show = _show_bar if sys.stderr.isatty() else _print_lines
    shower = threading.Thread(target=show, args=(counted, over), daemon=True)
    shower.start()
    try:
        yield counted
    finally:
        over.set()
        shower.join()


def _print_lines(counted: Progress, over: threading.Event) -> None:
    while not over.wait(_INTERVAL_S):
        print(counted.line, file=sys.stderr, flush=True)  # noqa: T201


def _show_bar(counted: Progress, over: threading.Event) -> None:
    if over.wait(_PATIENCE_S):
        return
    with _bar(counted.what) as bar:
        task = bar.add_task("", total=counted.total, speed="")
        while not over.wait(0.2):
            bar.update(task, completed=counted.done, speed=counted.speed)


def _bar(what: str) -> rich_progress.Progress:
    return rich_progress.Progress(
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn(what + " · {task.fields[speed]} ·"),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    )
