"""How far a long piece of work is: a bar in a terminal, lines elsewhere."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rich import progress as rich_progress
from rich.console import Console

from agewise.checks import visible

#: Work that is done sooner needs no progress.
_PATIENCE_S = 1.0
#: Between two lines where there is no terminal.
_INTERVAL_S = 10.0
#: Between two looks at how far the work is.
_LOOK_S = 0.2


def say(sentence: str, *, quiet: bool) -> None:
    """A sentence that people should see while results are made, beside standard output."""
    if not quiet:
        print(visible(sentence), file=sys.stderr, flush=True)  # noqa: T201


class Progress:
    """Counts runs and rounds that are done.

    ``underway`` says how many rounds runs have done that are not finished yet, where somebody
    counts them. ``expected_s`` is how long all is expected to take, where somebody knows: the time
    left goes by it until rounds are counted. Until then kernels are loaded or compiled.
    """

    def __init__(
        self,
        runs: int,
        rounds: int,
        what: str = "runs",
        expected_s: float | None = None,
        underway: Callable[[], int] | None = None,
    ) -> None:
        self.total, self.all_rounds, self.what = runs, rounds, what
        self.expected_s, self._underway = expected_s, underway
        self.done = self.rounds = self._finished = 0
        self.start = time.monotonic()
        self._first: tuple[float, int] | None = None

    def advance(self, rounds: int) -> None:
        """One more run is done, with its rounds."""
        self.reach(self.done + 1, self._finished + rounds)

    def reach(self, done: int, rounds: int) -> None:
        """All runs that are done, and their rounds together."""
        self.done, self._finished = done, rounds
        self.look()

    def look(self) -> None:
        """See how many rounds are done by now."""
        underway = self._underway() if self._underway else 0
        self.rounds = max(self.rounds, min(self._finished + underway, self.all_rounds))
        if self.rounds and self._first is None:
            # Rounds that are counted as they happen tell the pace without what was compiled.
            self._first = (time.monotonic(), self.rounds) if underway else (self.start, 0)

    @property
    def speed(self) -> str:
        """Rounds done and rounds a second; before the first, what goes on."""
        if not self.rounds:
            return "getting ready"
        done = f"{self.rounds:,} of {self.all_rounds:,} rounds"
        pace = self._pace
        if pace is None:
            return done
        return f"{done}, {f'{pace:,.0f}' if pace >= 10 else f'{pace:.2g}'} a second"

    @property
    def left_s(self) -> float | None:
        """Seconds to the end, by the pace so far or as expected; ``None`` if nobody knows."""
        if pace := self._pace:
            return (self.all_rounds - self.rounds) / pace
        if self.expected_s is None:
            return None
        return max(self.expected_s - (time.monotonic() - self.start), 1.0)

    @property
    def _pace(self) -> float | None:
        """Rounds a second, once there are enough to tell."""
        if self._first is None:
            return None
        since, before = self._first
        seconds = time.monotonic() - since
        return (self.rounds - before) / seconds if self.rounds > before and seconds > 0 else None

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
    runs: int,
    rounds: int,
    *,
    quiet: bool,
    what: str = "runs",
    expected_s: float | None = None,
    underway: Callable[[], int] | None = None,
) -> Iterator[Progress]:
    """Progress over these runs, shown by a thread of its own while the work goes on."""
    counted = Progress(runs, rounds, what, expected_s, underway)
    if quiet or runs == 0:
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
    due = counted.start + _PATIENCE_S
    while not over.wait(_LOOK_S):
        counted.look()
        if time.monotonic() >= due:
            print(counted.line, file=sys.stderr, flush=True)  # noqa: T201
            due = time.monotonic() + _INTERVAL_S


def _show_bar(counted: Progress, over: threading.Event) -> None:
    if over.wait(_PATIENCE_S):
        return
    with _bar() as bar:
        task = bar.add_task("", total=counted.all_rounds, said="")
        while not over.wait(_LOOK_S):
            counted.look()
            bar.update(task, completed=counted.rounds, said=counted.line)


def _bar() -> rich_progress.Progress:
    return rich_progress.Progress(
        rich_progress.BarColumn(bar_width=20),
        rich_progress.TextColumn("{task.fields[said]}"),
        console=Console(stderr=True),
        transient=True,
    )
