"""Processes of this machine."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agewise.engines.base import Item, Result


@dataclass(frozen=True)
class Local:
    """One process per core, one thread each.

    Work and results travel by cloudpickle (loky), so policies may be written in a script or a
    notebook, and the script needs no guard around its main part.
    """

    workers: int | None = None

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, as they finish."""
        from concurrent.futures import as_completed

        from loky import ProcessPoolExecutor

        count = min(self.workers or _cores(), len(items))
        if count <= 0:
            return
        pool = ProcessPoolExecutor(max_workers=count, initializer=_prepare)
        pending = {pool.submit(work, item): item for item in items}
        finished = False
        try:
            for future in as_completed(pending):
                yield pending[future], future.result()
            finished = True
        finally:
            with contextlib.suppress(Exception):
                pool.shutdown(wait=finished, kill_workers=not finished)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prepare() -> None:
    """A worker leaves Ctrl-C to the process that started it, and uses one thread."""
    from agewise.learn.threads import set_threads

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_threads(1)
