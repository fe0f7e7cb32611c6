"""How far a long piece of work is: a bar in a terminal or a notebook, nothing elsewhere."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich import progress as rich_progress
from rich.console import Console

from agewise.checks import visible
from agewise.files import temporary_name
from agewise.tables._words import counted

#: Work that is done sooner needs no progress.
_PATIENCE_S = 1.0
#: Between two looks at how far the work is.
_LOOK_S = 0.2
RoundCounts = np.memmap[tuple[int], np.dtype[np.int64]]


def say(sentence: str, *, quiet: bool) -> None:
    """Tell people a sentence while results are made, beside standard output."""
    if not quiet:
        print(visible(sentence), file=sys.stderr, flush=True)  # noqa: T201


class Progress:
    """Counts runs and rounds that are done.

    ``underway`` says how many rounds runs have done that are not finished yet, where somebody
    counts them. Kernels are loaded or compiled before the first round, so that the pace is that of
    the rounds behind it; where only finished runs are counted, it is the mean from the beginning.
    """

    def __init__(
        self, runs: int, rounds: int, what: str, underway: Callable[[], int] | None
    ) -> None:
        self.runs, self.rounds, self.what, self._underway = runs, rounds, what, underway
        self.done = self._finished = self._seen = 0
        self._begun = time.monotonic()
        #: When rounds were first seen, and how many.
        self._first = None if underway else (self._begun, 0)

    def advance(self, rounds: int) -> None:
        """Count one more run with its rounds."""
        self.reach(self.done + 1, self._finished + rounds)

    def reach(self, done: int, rounds: int) -> None:
        """Set the number of runs that are done, and of their rounds together."""
        self.done, self._finished = done, rounds
        self.look()

    def look(self) -> None:
        """See how many rounds are done by now."""
        rounds = self._finished + (self._underway() if self._underway else 0)
        self._seen = min(max(rounds, self._seen), self.rounds)
        if self._seen and self._first is None:
            self._first = time.monotonic(), self._seen

    @property
    def line(self) -> str:
        """Runs and rounds in one line, with pace and time left where these are measured."""
        now, told = time.monotonic(), f"{self.done:,} of {counted(self.runs, self.what)}"
        if not self._seen or self._first is None:
            return f"{told}, {duration_text(now - self._begun)} so far"
        told += f", {self._seen:,} of {counted(self.rounds, 'round')}"
        since, before = self._first
        pace = (self._seen - before) / (now - since) if now > since else 0.0
        if not pace or self._seen == self.rounds:
            return told
        shown, left = f"{pace:,.0f}" if pace >= 10 else f"{pace:.2g}", self.rounds - self._seen
        return f"{told}, {shown} a second, about {duration_text(left / pace)} left"

    def show(self, over: threading.Event, cell: Any | None) -> None:
        """Show the progress until the work is over, in a notebook's cell or on a terminal."""
        if over.wait(_PATIENCE_S):
            return
        if cell is not None:
            while not over.wait(_LOOK_S):
                self.look()
                share = self._seen / max(self.rounds, 1)
                shown = f'<progress value="{share:.4f}"></progress> {self.line}'
                cell.update({"text/html": shown, "text/plain": self.line}, raw=True)
            cell.update({"text/html": "", "text/plain": ""}, raw=True)
        elif sys.stderr.isatty():
            with rich_progress.Progress(
                rich_progress.BarColumn(bar_width=20),
                rich_progress.TextColumn("{task.description}"),
                console=Console(stderr=True, markup=False),
                transient=True,
                auto_refresh=False,
            ) as bar:
                task = bar.add_task("", total=self.rounds)
                while not over.wait(_LOOK_S):
                    self.look()
                    bar.update(task, completed=self._seen, description=self.line, refresh=True)


def _notebook_cell() -> Any | None:
    """A place in the output of a notebook's cell that can be written again, if this is one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    display = sys.modules["IPython"].display.display
    return display({"text/plain": ""}, raw=True, display_id=True)


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
    what: str = "run",
    underway: Callable[[], int] | None = None,
) -> Iterator[Progress]:
    """Progress over these runs, shown by a thread of its own while the work goes on."""
    made = Progress(runs, rounds, what, underway)
    if quiet or runs == 0:
        yield made
        return
    over = threading.Event()
    shower = threading.Thread(target=made.show, args=(over, _notebook_cell()), daemon=True)
    shower.start()
    try:
        yield made
    finally:
        over.set()
        shower.join()


@contextlib.contextmanager
def round_counts(folder: Path, groups: int) -> Iterator[RoundCounts]:
    """Rounds of groups of runs that are underway, ``[group]``, in a file that processes share.

    It is a temporary file of the results folder, which the next command there clears away if this
    process is killed.
    """
    file = temporary_name(folder / "rounds")
    try:
        yield np.memmap(file, np.int64, "w+", shape=(max(groups, 1),))
    finally:
        file.unlink(missing_ok=True)


def counter(file: Path | str | None, group: int) -> Callable[[object], None] | None:
    """What counts one more round of a group, in the process in which its runs happen.

    ``None`` if the counts cannot be reached: a run does without.
    """
    if file is None:
        return None
    try:
        counts = np.memmap(file, np.int64, "r+")
    except (OSError, ValueError):
        return None
    counts[group] = 0

    def count(_: object) -> None:
        counts[group] += 1

    return count
