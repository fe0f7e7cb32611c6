"""How good the channels of the UEs are, for all of them at once."""

import math

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import NATS_PER_BIT
from agewise.core.waterfill import reach, target_nats
from agewise.spectrum.uplink import Uplink


def needs(uplink: Uplink, free: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Algorithm 1 for every UE: its fewest of the ``free`` subchannels, and the rate on them.

    The need of a UE that cannot reach the threshold is 0, and its rate the highest that it can.

    >>> uplink = Uplink(np.array([[3.0, 1.0], [1.0, 1.0]]), power_budget=1.0, rate_threshold=1.0)
    >>> needs(uplink, np.arange(2))[0]
    array([1, 0])
    """
    target = target_nats(uplink.rate_threshold)
    need, nats = reach(uplink.gains, free, uplink.power_budget, target)
    return need, nats / NATS_PER_BIT


def highest_rates(uplink: Uplink) -> NDArray[np.float64]:
    """The rate of every UE with all subchannels to itself, water-filled.

    >>> uplink = Uplink(np.array([[3.0, 0.0], [2.0, 2.0]]), power_budget=1.0, rate_threshold=0.0)
    >>> highest_rates(uplink)
    array([1., 1.])
    """
    every = np.arange(uplink.subchannel_count)
    _, nats = reach(uplink.gains, every, uplink.power_budget, math.inf)
    return np.asarray(nats / NATS_PER_BIT)


def mean_gains(uplink: Uplink) -> NDArray[np.float64]:
    """The mean gain of every UE over the subchannels; 0 where there are none.

    >>> mean_gains(Uplink(np.array([[3.0, 1.0], [0.0, 1.0]]), power_budget=1.0, rate_threshold=0.0))
    array([2. , 0.5])
    """
    return np.asarray(uplink.gains.sum(axis=1) / max(1, uplink.subchannel_count))
