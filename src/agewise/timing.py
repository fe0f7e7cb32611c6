"""How long a round takes the UEs, in slots.

An upload at exactly the rate threshold takes one slot, so an upload at twice that rate takes half.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agewise.random import Streams

if TYPE_CHECKING:
    from agewise.scenario import Timing


def compute_slots(timing: "Timing | None", ues: int, streams: Streams) -> NDArray[np.float64]:
    """``float64[ue]``: how long each UE's local learning takes, log-normal across the UEs."""
    if timing is None:
        return np.zeros(ues)
    deviations = timing.compute_sigma * streams.speed().standard_normal(ues)
    return np.asarray(timing.compute_slots * np.exp(deviations))


def upload_slots(rates: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """How long uploads at these positive rates take.

    >>> upload_slots(np.array([4.0, 8.0]), 4.0)
    array([1. , 0.5])
    """
    return np.asarray(threshold / rates)
