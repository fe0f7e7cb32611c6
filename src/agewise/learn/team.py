"""Threads that help with training and evaluation.

The interpreter lock makes handing work to a Python thread slow: both sides want it at the same
moment, and who waits for it sleeps. So a helper stays inside compiled code, where it looks for
tasks on a board in memory (`agewise.learn.team_kernels`), and only after a millisecond without any
does it go to sleep. The caller never waits for a helper to begin: it takes tasks itself until none
is left.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Callable

import numpy as np

from agewise.learn.team_kernels import LEAVE, WORDS

#: Looks, of some 8 ns each, before a helper sleeps: longer than the Python part of a round.
_LOOKS = 150_000


class Team:
    """The board of one learner, and what its helpers do with it.

    ``help_out(board, looks)`` is compiled code that takes tasks from the board until it has looked
    for one in vain so many times. Who posts tasks holds ``lock``, for other threads of the program
    may use the same learner.
    """

    def __init__(self, help_out: Callable[[np.ndarray, int], object]) -> None:
        self.board = np.zeros(WORDS, np.int64)
        self.lock = threading.Lock()
        self._help_out = help_out
        _teams.add(self)

    def gather(self) -> np.ndarray:
        """Call the helpers, and return the board."""
        self.board[LEAVE] = _count == 1
        while len(_helpers) < _count - 1:
            _helpers.append(_Helper())
        for helper in _helpers[: _count - 1]:
            helper.join_team(self)
        return self.board

    def help_out(self) -> None:
        """What a helper does until nothing is left to do for a while."""
        self._help_out(self.board, _LOOKS)


class _Helper(threading.Thread):
    """A thread that helps one team at a time."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="agewise")
        self.team: Team | None = None
        self._bell = threading.Lock()
        self._bell.acquire()
        self._asleep = False
        self.start()

    def run(self) -> None:
        """Help, and sleep when there is nothing to do."""
        while True:
            team = self.team
            if team is not None:
                team.help_out()
            if self.team is team:
                self.team = team = None  # a sleeping helper keeps nobody's samples in memory
                self._asleep = True
                self._bell.acquire()
                self._asleep = False

    def join_team(self, team: Team) -> None:
        """Leave the present team for this one, and wake up."""
        if self.team is not None and self.team is not team:
            self.team.board[LEAVE] = 1
        self.team = team
        if self._asleep:
            with contextlib.suppress(RuntimeError):  # the leader of another team was first
                self._bell.release()


_count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
_helpers: list[_Helper] = []
_teams: weakref.WeakSet[Team] = weakref.WeakSet()


def set_threads(count: int) -> None:
    """How many threads training and evaluation use in this process; no result depends on it."""
    global _count
    if count < 1:
        raise ValueError(f"the number of threads must be at least 1, not {count}")
    _count = count


def _begin_anew() -> None:
    """Threads do not survive a fork, and another one of the parent may have held a lock."""
    _helpers.clear()
    for team in _teams:
        team.lock = threading.Lock()


os.register_at_fork(after_in_child=_begin_anew)
