"""Threads for rounds that are long enough to pay for them.

Experiments use the cores by running cells side by side, one thread each. A single run with large
batches or a large evaluation is divided into chunks, which kernels without the interpreter lock
work off side by side. Chunks write to places of their own, and sums are added up in a fixed order
afterwards: no result depends on the number of threads.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

#: Entries of samples that a chunk reads at least. One takes 0.5 to 1 ns, and handing work to a
#: Python thread and waiting for it 60 to 80 us: a chunk of 0.2 ms and more is worth it.
LEAST_ENTRIES: Final = 400_000


def available_cores(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Count the cores of this process: those of its affinity, within its container's quota.

    A container that gets the time of two cores sees all those of its machine; a process on each
    of them would only wait for its turn. Linux shows a container its quota in ``groups``.
    """
    allowed = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    return max(1, min([allowed, *(math.ceil(quota) for quota in _quotas(groups))]))


def _quotas(groups: Path) -> Iterator[float]:
    """The cores' worth of time of a container, by either version of control groups."""
    with contextlib.suppress(OSError, ValueError):  # not there, or "max"
        quota, period = (groups / "cpu.max").read_text().split()
        yield int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError):
        files = [groups / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period")]
        quota, period = (file.read_text() for file in files)
        if int(quota) > 0:  # -1 is none
            yield int(quota) / int(period)


_cores = available_cores()
_count = _cores
_pool: ThreadPoolExecutor


def _make_pool() -> None:
    """A pool without threads: they start when there is work, and do not survive a fork."""
    global _pool
    _pool = ThreadPoolExecutor(_cores, thread_name_prefix="agewise")


_make_pool()
os.register_at_fork(after_in_child=_make_pool)


def set_threads(count: int) -> None:
    """Limit the threads of training and evaluation; no result depends on it."""
    global _count
    if count < 1:
        raise ValueError(f"the number of threads must be at least 1, not {count}")
    _count = count


def in_chunks(work: Callable[[slice], object], items: int, entries: float) -> None:
    """Call ``work`` with slices that make up ``range(items)``, side by side where that pays.

    ``entries`` is how many entries of samples the work on all items reads.
    """
    chunks = max(1, min(_count, items, int(entries / LEAST_ENTRIES)))
    if chunks == 1:
        work(slice(0, items))
        return
    cuts = [items * i // chunks for i in range(chunks + 1)]
    first, *others = map(slice, cuts[:-1], cuts[1:])
    pending = [_pool.submit(work, chunk) for chunk in others]
    try:
        work(first)
    finally:
        wait(pending)
    for future in pending:
        future.result()  # raises what the work raised
