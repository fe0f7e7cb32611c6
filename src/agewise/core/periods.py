"""UEs that learn in the background, period after period; times are slots of the period."""

import math
from typing import NamedTuple

import numpy as np

from agewise.core.jit import inlined, kernel

#: The version of nothing: no update in hand, none under way.
NONE = -1


class Work(NamedTuple):
    """What UEs are at, ``[ue]`` each.

    ``hand`` is the version of the update that a UE has, and ``since`` when it has it; ``under_way``
    is the version of the one that it computes, and ``done_at`` when that is done; ``starts`` is how
    often it began since the last period.
    """

    hand: np.ndarray
    since: np.ndarray
    under_way: np.ndarray
    done_at: np.ndarray
    starts: np.ndarray


class Hearing(NamedTuple):
    """The model of period ``t`` is there at ``heard_at``; only who is ``able`` hears it."""

    t: int
    heard_at: float
    able: np.ndarray


@inlined
def _start(work, ue, at, hearing, compute):
    work.under_way[ue] = hearing.t
    work.done_at[ue] = max(at, hearing.heard_at) + compute[ue]
    work.starts[ue] += 1


@inlined
def _learn_until(work, ue, until, hearing, compute, restarts):
    """Take over what is computed by then; restart the UE if there is a newer model for it."""
    while work.done_at[ue] <= until:
        at, newer = work.done_at[ue], work.under_way[ue] < hearing.t
        work.hand[ue], work.since[ue] = work.under_way[ue], at
        work.under_way[ue], work.done_at[ue] = NONE, math.inf
        if restarts and newer and hearing.able[ue]:
            _start(work, ue, at, hearing, compute)


@kernel
def begin_period(work, hearing, compute, last, rounding, restarts):
    """Start who has nothing to do; ``ready[ue]``: when its update is there, if by ``last[ue]``."""
    ready = np.full(compute.size, math.inf)
    for ue in range(compute.size):
        idle = work.under_way[ue] == NONE and (restarts or work.hand[ue] == NONE)
        if idle and hearing.able[ue]:
            _start(work, ue, hearing.heard_at, hearing, compute)
        _learn_until(work, ue, last[ue] + rounding, hearing, compute, restarts)
        if work.hand[ue] != NONE:
            ready[ue] = min(max(work.since[ue], 0.0), last[ue])
    return ready


@kernel
def end_period(work, hearing, compute, period, rounding, restarts, heard):
    """Take the updates of those ``heard`` away, and count time from the next period on."""
    for ue in heard:
        work.hand[ue] = work.under_way[ue] = NONE
        work.done_at[ue] = math.inf
    for ue in range(compute.size):
        _learn_until(work, ue, period - rounding, hearing, compute, restarts)
        work.done_at[ue] -= period
        work.since[ue] -= period
