"""How long a round takes the UEs, in slots, and whose update is there in time.

An upload at exactly the rate threshold takes one slot, so an upload at twice that rate takes half.
"""

import math

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.elementary import exp_each
from agewise.random import Streams, normal


def compute_slots(
    timing: scenario.NoTiming | scenario.SlotTiming, ues: int, streams: Streams
) -> NDArray[np.float64]:
    """``float64[ue]``: how long each UE's local learning takes, log-normal across the UEs."""
    if isinstance(timing, scenario.NoTiming):
        return np.zeros(ues)
    drawn = normal(streams.speed(), ues)
    return np.asarray(timing.compute_slots * exp_each(timing.compute_sigma * drawn))


def deadline_slots(timing: scenario.NoTiming | scenario.SlotTiming) -> float:
    """When an update is too late; infinity where nothing is."""
    return math.inf if isinstance(timing, scenario.NoTiming) else timing.deadline_slots


def offers_everyone(timing: scenario.NoTiming | scenario.SlotTiming) -> bool:
    """Whether policies are also offered UEs that would be late."""
    return isinstance(timing, scenario.SlotTiming) and timing.offer == "everyone"


def upload_slots(rates: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """How long uploads at these positive rates take.

    >>> upload_slots(np.array([4.0, 8.0]), 4.0)
    array([1. , 0.5])
    """
    return np.asarray(threshold / rates)
