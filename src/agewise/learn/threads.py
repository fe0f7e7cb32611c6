"""Work shared among threads that neither spin for ever nor sleep too soon.

OpenMP's threads wait for each other in a busy loop: on a machine with other work to do, a round of
a tenth of a millisecond takes ten. Waking a sleeping thread costs as much as training a few UEs.
So a worker looks out for its next piece for half a millisecond and only then sleeps, and a piece
that no worker has begun by the time the caller is done with its own is done by the caller.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable

import numpy as np

#: Multiply-adds that take about twice as long as handing over a piece: both threads want the
#: interpreter lock at the hand-over, and waiting for it is a sleep.
_WORTH_SHARING = 300_000
#: Looks, of some 20 ns each, before a worker sleeps or the caller waits in its sleep.
_LOOKS = 25_000

Piece = Callable[[], object]


class _Worker(threading.Thread):
    """A thread with one piece of work at a time."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="agewise")
        self.pieces: deque[Piece] = deque()
        self.posted, self.done = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.bell = threading.Lock()
        self.bell.acquire()
        self.asleep = False
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Do the pieces as they are posted."""
        from agewise.learn.spin_kernels import look_out

        seen = 0
        while True:
            if not look_out(self.posted, seen, _LOOKS):
                self.asleep = True
                if self.posted[0] == seen:
                    self.bell.acquire()
                self.asleep = False
            seen = int(self.posted[0])
            try:
                piece = self.pieces.pop()
            except IndexError:
                continue  # the caller took it back, or the bell rang once too often
            try:
                piece()
            except BaseException as error:
                self.error = error
            self.done[0] = seen

    def post(self, piece: Piece) -> None:
        """Hand over a piece."""
        self.error = None
        self.pieces.append(piece)
        self.posted[0] += 1
        if self.asleep and self.bell.locked():
            self.bell.release()

    def finish(self) -> None:
        """See to it that the piece is done: by the worker, or by the caller if it has not begun."""
        from agewise.learn.spin_kernels import look_out

        try:
            piece = self.pieces.pop()
        except IndexError:
            posted = int(self.posted[0])
            look_out(self.done, int(self.done[0]) if self.done[0] != posted else -1, _LOOKS)
            while self.done[0] != posted:
                time.sleep(1e-4)
            if self.error is not None:
                raise self.error from None
        else:
            piece()


_count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_workers: list[_Worker] = []
_sharing = threading.Lock()


def set_threads(count: int) -> None:
    """How many threads training and evaluation use in this process; no result depends on it."""
    global _count
    if count < 1:
        raise ValueError(f"the number of threads must be at least 1, not {count}")
    _count = count


def share(work: Callable[[int, int], object], count: int, operations: float) -> None:
    """Call ``work(begin, end)`` so that the ranges together cover 0..count once.

    ``operations`` says how much work it is in all; little is done by the caller alone, and so is
    what another thread of the program asks for while the workers are taken.
    """
    parts = min(_count, count) if operations > _WORTH_SHARING else 1
    if parts <= 1 or not _sharing.acquire(blocking=False):
        work(0, count)
        return
    try:
        while len(_workers) < parts - 1:
            _workers.append(_Worker())
        cuts = [count * part // parts for part in range(parts + 1)]
        helpers = _workers[: parts - 1]
        for part, helper in enumerate(helpers, start=1):
            helper.post(_piece(work, cuts[part], cuts[part + 1]))
        try:
            work(0, cuts[1])
        finally:
            for helper in helpers:
                helper.finish()
    finally:
        _sharing.release()


def _piece(work: Callable[[int, int], object], begin: int, end: int) -> Piece:
    return lambda: work(begin, end)


def _forget_workers() -> None:
    """Threads do not survive a fork, and the lock may have been held in the parent."""
    global _sharing
    _workers.clear()
    _sharing = threading.Lock()


os.register_at_fork(after_in_child=_forget_workers)
