"""Processes of this machine."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Final, TypeVar

from loky import ProcessPoolExecutor

from agewise.learn.threads import available_cores, set_threads

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: Where Linux keeps semaphores that have a name.
_SEMAPHORES: Final = Path("/dev/shm")  # noqa: S108 - looked at, not written to


@dataclass(frozen=True)
class Local:
    """One process per core, one thread each.

    Work and results travel by cloudpickle (loky), so policies may be written in a script or a
    notebook, and the script needs no guard around its main part.
    """

    workers: int | None = None

    def processes(self, items: int) -> int:
        """Number of processes that work on this number of items."""
        return min(self.workers or available_cores(), items)

    def run(
        self, work: Callable[[_Item], _Result], items: Sequence[_Item]
    ) -> Iterator[tuple[_Item, _Result]]:
        """Yield each item with its result, as they finish."""
        count = self.processes(len(items))
        if count <= 0:
            return
        with _semaphores_removed():
            pool = ProcessPoolExecutor(count, initializer=_prepare, initargs=(os.getpid(),))
            finished = False
            try:
                with _interrupts_held_back():
                    pending = {pool.submit(work, item): item for item in items}
                for future in as_completed(pending):
                    yield pending[future], future.result()
                finished = True
            finally:
                with contextlib.suppress(Exception):
                    pool.shutdown(wait=finished, kill_workers=not finished)


@contextlib.contextmanager
def _semaphores_removed() -> Iterator[None]:
    """If this process is killed with all of its group, its semaphores do not stay behind.

    loky's own tracker would be killed as well. A shell in a session of its own waits at a pipe
    for a word, or for the end of this process.
    """
    if not _SEMAPHORES.is_dir():  # no Linux: they are no files
        yield
        return
    script = f'read -r word || rm -f {_SEMAPHORES}/sem.loky-"$1"-*'
    waiting = subprocess.Popen(  # noqa: S603 - a fixed script and a number
        ["/bin/sh", "-c", script, "sh", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        waiting.communicate(b"done\n")


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C waits, and is for this process: those that it starts meanwhile never get it."""
    resource_tracker.ensure_running()  # loky needs it, and starting it would let interrupts in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare(parent: int) -> None:
    """Let a worker use one thread, and end with the process that started it."""
    set_threads(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A killed process cannot end its workers, and they would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
