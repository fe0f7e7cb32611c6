"""What one block of the uplink offers: the side of problem (3) that no policy can change."""

import math
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import real_number
from agewise.core.elementary import NATS_PER_BIT
from agewise.core.proof import best_gains
from agewise.core.waterfill import reach, target_nats

#: Above this SNR sums of the closed form could overflow.
_LARGEST_SNR = 1e300
_FLOAT = np.dtype(np.float64)
_set = object.__setattr__
_Array = TypeVar("_Array", bound=NDArray[Any])


@dataclass(frozen=True, eq=False)
class Uplink:
    """Gains of every UE on every subchannel, each UE's power budget, the rate it must reach.

    ``gains`` is ``float64[ue, subchannel]``, received SNR per unit of power, and is kept without
    a copy if it is such an array already; 0 marks a subchannel that the UE cannot use.
    ``power_budget`` is P_TX and ``rate_threshold`` is R_s in bits per real channel use.
    Construction checks everything once, so that what takes an ``Uplink`` need not check again.
    """

    gains: NDArray[np.float64]
    power_budget: float
    rate_threshold: float
    best_gains: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        gains = _as_gains(self.gains)
        power_budget = real_number("power", self.power_budget)
        rate_threshold = real_number("rate_threshold", self.rate_threshold)
        if not power_budget > 0:
            raise ValueError(f"power must be positive, not {power_budget:g}")
        if not rate_threshold >= 0:
            raise ValueError(f"rate_threshold must be non-negative, not {rate_threshold:g}")
        best, largest = best_gains(gains)
        if not largest * power_budget <= _LARGEST_SNR:
            best = _looked_at_again(gains, power_budget)
        _set(self, "gains", gains)
        _set(self, "power_budget", power_budget)
        _set(self, "rate_threshold", rate_threshold)
        _set(self, "best_gains", best)

    def only(self, eligible: NDArray[np.bool_]) -> "Uplink":
        """Return the same uplink on which the other UEs cannot transmit: their gains are 0."""
        if eligible.all():
            return self
        gains = np.where(eligible[:, np.newaxis], self.gains, 0.0)
        return Uplink(gains, self.power_budget, self.rate_threshold)

    def read_only_copy(self) -> "Uplink":
        """Return the same uplink on arrays of its own, which cannot be written to."""
        copy = object.__new__(Uplink)  # checked already
        for name, value in vars(self).items():
            _set(copy, name, read_only(value.copy()) if isinstance(value, np.ndarray) else value)
        return copy

    def needs(
        self, free: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Algorithm 1 for every UE: its fewest of the ``free`` subchannels, and the rate on them.

        All are free by default. The need of a UE that cannot reach the threshold is 0, and its
        rate the highest that it can.

        >>> Uplink(np.array([[3.0, 1.0], [1.0, 1.0]]), 1.0, rate_threshold=1.0).needs()[0]
        array([1, 0])
        """
        channels = np.arange(self.subchannel_count) if free is None else free
        target = target_nats(self.rate_threshold)
        need, nats = reach(self.gains, channels, self.power_budget, target)
        return need, nats / NATS_PER_BIT

    def highest_rates(self) -> NDArray[np.float64]:
        """Return the rate of every UE with all subchannels to itself, water-filled.

        >>> Uplink(np.array([[3.0, 0.0], [2.0, 2.0]]), 1.0, rate_threshold=0.0).highest_rates()
        array([1., 1.])
        """
        every = np.arange(self.subchannel_count)
        return np.asarray(reach(self.gains, every, self.power_budget, math.inf)[1] / NATS_PER_BIT)

    def mean_gains(self) -> NDArray[np.float64]:
        """Return the mean gain of every UE over the subchannels; 0 where there are none.

        >>> Uplink(np.array([[3.0, 1.0], [0.0, 1.0]]), 1.0, rate_threshold=0.0).mean_gains()
        array([2. , 0.5])
        """
        return np.asarray(self.gains.sum(axis=1) / max(1, self.subchannel_count))

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return len(self.gains)

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        return int(self.gains.shape[1])


def read_only(array: _Array) -> _Array:
    """Return the array, which can no longer be written to."""
    array.setflags(write=False)
    return array


def _as_gains(values: ArrayLike) -> NDArray[np.float64]:
    """A C-ordered float64 matrix; copied only if it is not one yet."""
    if type(values) is np.ndarray and values.dtype == _FLOAT and values.ndim == 2:
        array: NDArray[np.float64] = values  # as a rule, and checked fast
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError("gains must not be masked: set what cannot be used to 0")
    given = np.asarray(values)
    if given.dtype.kind not in "iufb":
        raise ValueError(f"gains must be real numbers, not {given.dtype}")
    if given.ndim != 2:
        raise ValueError(
            f"gains must be a matrix of UEs (rows) by subchannels (columns), not {given.ndim}-D"
        )
    return np.ascontiguousarray(given, dtype=np.float64)


def _looked_at_again(gains: NDArray[np.float64], power_budget: float) -> NDArray[np.float64]:
    """The best gain of each UE, or ``ValueError`` naming the first gain that is not valid."""
    bad = ~(np.isfinite(gains) & (gains >= 0))
    if bad.any():
        ue, subchannel = np.unravel_index(int(bad.argmax()), gains.shape)
        raise ValueError(
            f"gains must be non-negative and finite: the gain of UE {ue} on subchannel "
            f"{subchannel} is {gains[ue, subchannel]}"
        )
    best = np.asarray(gains.max(axis=1))  # with negative zeros, which look like negative numbers
    if float(best.max()) * power_budget > _LARGEST_SNR:
        raise ValueError(
            f"gains are too large: {best.max():g} times the power {power_budget:g} is above "
            f"{_LARGEST_SNR:g}; scale them"
        )
    return best
