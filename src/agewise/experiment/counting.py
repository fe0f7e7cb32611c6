"""Rounds of runs that are underway, counted in memory that the processes of a machine share."""

import contextlib
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from agewise.experiment.runs import Failure, OnRound, Run, compute_all
from agewise.records import RoundRecord

#: Bytes of a count, and the name of the file in which they are.
_BYTES, _NAME = 8, "agewise-rounds"


class Counts:
    """How many rounds each group of runs has done so far; ``place`` is where workers find it."""

    def __init__(self, shared: mmap.mmap, place: str) -> None:
        self._numbers = np.frombuffer(shared, np.int64)
        self.place = place

    def total(self) -> int:
        """The rounds of all groups that are underway."""
        return int(self._numbers.sum())

    def forget(self, group: int) -> None:
        """Count no round of this group any more: it is finished."""
        self._numbers[group] = 0


@contextlib.contextmanager
def shared_counts(groups: int) -> Iterator[Counts]:
    """A count for each of the groups, for processes of this machine.

    Where the system has files without a name, nothing is left behind however this process ends.
    """
    has_nameless = hasattr(os, "memfd_create")
    if has_nameless:
        handle = os.memfd_create(_NAME)
        place = f"/proc/{os.getpid()}/fd/{handle}"
    else:
        handle, place = tempfile.mkstemp(prefix=_NAME)
    try:
        os.ftruncate(handle, _BYTES * max(groups, 1))
        yield Counts(mmap.mmap(handle, 0), place)  # unmapped with the last that looks at it
    finally:
        os.close(handle)
        if not has_nameless:
            Path(place).unlink(missing_ok=True)


@contextlib.contextmanager
def counter(place: str, group: int) -> Iterator[Callable[[object], None] | None]:
    """What counts one more round of a group, in the process in which its runs happen.

    ``None`` if the counts cannot be reached: a run does without.
    """
    try:
        shared = _opened(place)
    except (OSError, ValueError):
        yield None
        return
    with shared, memoryview(shared) as whole, whole.cast("q") as numbers:
        numbers[group] = 0

        def count(_: object) -> None:
            numbers[group] += 1

        yield count


def _opened(place: str) -> mmap.mmap:
    with Path(place).open("r+b") as file:
        handle = Path(f"/proc/self/fd/{file.fileno()}")
        if place.startswith("/proc/") and _NAME not in str(handle.readlink()):
            raise OSError(f"{place} is another file by now")  # its number was given away again
        return mmap.mmap(file.fileno(), 0)


def compute_group(
    group: tuple[int, list[Run]], *, on_round: OnRound | None, fail_fast: bool, place: str | None
) -> list[bytes | Failure]:
    """The runs of a group, whose rounds are counted in ``place`` under the group's number."""
    number, runs = group
    if place is None:
        return compute_all(runs, on_round, fail_fast=fail_fast)
    with counter(place, number) as count:
        calls = [call for call in (count, on_round) if call is not None]
        return compute_all(runs, _one_after_the_other(calls), fail_fast=fail_fast)


def _one_after_the_other(calls: Sequence[OnRound]) -> OnRound | None:
    if len(calls) < 2:
        return calls[0] if calls else None

    def both(record: RoundRecord) -> None:
        for call in calls:
            call(record)

    return both
