"""Work shared among threads, without a barrier that spins.

OpenMP's threads wait for each other in a busy loop: on a machine with other work to do a round of
a tenth of a millisecond takes ten. Kernels that release the interpreter lock, called from plain
threads, wait in the operating system instead, and need no parallel compilation.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Multiply-adds that take about as long as waking a thread twice over.
_WORTH_SHARING = 300_000
_pool: ThreadPoolExecutor | None = None


def set_threads(count: int) -> None:
    """How many threads training and evaluation use in this process; no result depends on it."""
    global _count
    if count < 1:
        raise ValueError(f"the number of threads must be at least 1, not {count}")
    _count = count
    _forget_pool()


def share(work: Callable[[int, int], object], count: int, operations: float) -> None:
    """Call ``work(begin, end)`` so that the ranges together cover 0..count once.

    ``operations`` says how much work it is in all; little is done by the caller alone.
    """
    global _pool
    parts = min(_count, count) if operations > _WORTH_SHARING else 1
    if parts <= 1:
        work(0, count)
        return
    if _pool is None:
        _pool = ThreadPoolExecutor(_count - 1, thread_name_prefix="agewise")
    cuts = [count * part // parts for part in range(parts + 1)]
    others = [_pool.submit(work, cuts[part], cuts[part + 1]) for part in range(1, parts)]
    work(0, cuts[1])
    for other in others:
        other.result()


def _forget_pool() -> None:
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget_pool)  # threads do not survive a fork
