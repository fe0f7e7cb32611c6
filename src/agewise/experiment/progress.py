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
_PATIENCE_S = 1.0
#: Between two lines where there is no terminal.
_INTERVAL_S = 10.0


def say(sentence: str, *, quiet: bool) -> None:
    """A sentence that people should see while results are made, beside standard output."""
    if not quiet:
        print(visible(sentence), file=sys.stderr, flush=True)  # noqa: T201


class Progress:
    """Counts finished runs and rounds.

    ``expected_s`` is how long all is expected to take, where somebody knows: it is what the time
    left goes by until the first run is done. Until then kernels are loaded or compiled.
    """

    def __init__(self, total: int, what: str = "runs", expected_s: float | None = None) -> None:
        self.total, self.what, self.done, self.rounds = total, what, 0, 0
        self.expected_s = expected_s
        self.start = time.monotonic()

    def advance(self, rounds: int) -> None:
        """One more run is done, which had so many rounds."""
        self.done += 1
        self.rounds += rounds

    @property
    def speed(self) -> str:
        """Rounds done and rounds a second so far; before the first, what goes on."""
        if not self.done:
            return "compiling"
        speed = self.rounds / (time.monotonic() - self.start)
        each = f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"
        return f"{self.rounds:,} rounds, {each} a second"

    @property
    def left_s(self) -> float | None:
        """Seconds to the end, by the pace so far or as expected; ``None`` if nobody knows."""
        elapsed = time.monotonic() - self.start
        if self.done:
            return elapsed / self.done * (self.total - self.done)
        return None if self.expected_s is None else max(self.expected_s - elapsed, 1.0)

    @property
    def line(self) -> str:
        """Everything in one line."""
        known = self.left_s
        left = "time left unknown" if known is None else f"about {duration_text(known)} left"
        return f"{self.done:,} of {self.total:,} {self.what}, {self.speed}, {left}"


def duration_text(seconds: float) -> str:
    """A length of time to the precision that a guess has.

    >>> [duration_text(x) for x in (0.4, 50.0, 3000.0, 40_000.0, 400_000.0, 1e9)]
    ['1 s', '50 s', '50 min', '11 h', '5 days', '32 years']
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.0f} h"
    days = seconds / 86_400
    return f"{days:,.0f} days" if days < 1000 else f"{days / 365:,.0f} years"


@contextlib.contextmanager
def progress(
    total: int, *, quiet: bool, what: str = "runs", expected_s: float | None = None
) -> Iterator[Progress]:
    """Progress over this many runs, shown by a thread of its own while the work goes on."""
    counted = Progress(total, what, expected_s)
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
    wait_s = _PATIENCE_S
    while not over.wait(wait_s):
        print(counted.line, file=sys.stderr, flush=True)  # noqa: T201
        wait_s = _INTERVAL_S


def _show_bar(counted: Progress, over: threading.Event) -> None:
    if over.wait(_PATIENCE_S):
        return
    with _bar() as bar:
        task = bar.add_task("", total=counted.total, said="")
        while not over.wait(0.2):
            bar.update(task, completed=counted.done, said=counted.line)


def _bar() -> rich_progress.Progress:
    return rich_progress.Progress(
        rich_progress.BarColumn(bar_width=20),
        rich_progress.TextColumn("{task.fields[said]}"),
        console=Console(stderr=True),
        transient=True,
    )
