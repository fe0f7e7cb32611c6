"""Uplink of one block: the side of problem (3) that no policy can change."""

import functools
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import real_number
from agewise.core.proof import best_gains
from agewise.core.waterfill import reach

#: Above this SNR sums of the closed form could overflow.
_LARGEST_SNR = 1e300
_FLOAT = np.dtype(np.float64)
_set = object.__setattr__
_Array = TypeVar("_Array", bound=NDArray[Any])


@dataclass(frozen=True, eq=False, init=False)
class Uplink:
    """Gains of every UE on every subchannel, each UE's power budget, the rate it must reach.

    ``gains`` is ``float64[ue, subchannel]``, received SNR per unit of power: a read-only view, not
    a copy, of what is such an array already; 0 marks a subchannel that the UE cannot use.
    ``power_budget[ue]`` is P_TX and ``rate_threshold[ue]`` R_s in bits per real channel use; a
    number is that of all UEs. A UE whose threshold is infinite cannot be served: its gains are 0.
    Construction checks everything once, so that what takes an ``Uplink`` need not check again.
    """

    gains: NDArray[np.float64]
    power_budget: NDArray[np.float64]
    rate_threshold: NDArray[np.float64]
    best_gains: NDArray[np.float64] = field(repr=False)

    def __init__(
        self, gains: ArrayLike, power_budget: ArrayLike, rate_threshold: ArrayLike
    ) -> None:
        checked = _as_gains(gains)
        power = per_ue("power budget", power_budget, len(checked))
        threshold = per_ue("rate_threshold", rate_threshold, len(checked))
        best, best_snr, unreachable = best_gains(checked, power, threshold)
        if not best_snr <= _LARGEST_SNR:
            best = _looked_at_again(checked, power, threshold)
        if unreachable:
            checked = read_only(np.where(np.isfinite(threshold)[:, np.newaxis], checked, 0.0))
        _set(self, "gains", checked)
        _set(self, "power_budget", power)
        _set(self, "rate_threshold", threshold)
        _set(self, "best_gains", best)

    def only(self, eligible: NDArray[np.bool_]) -> "Uplink":
        """Return the same uplink on which the other UEs cannot transmit: their gains are 0."""
        if np.count_nonzero(eligible) == eligible.size:  # faster than all()
            return self
        shown = object.__new__(Uplink)  # checked already
        vars(shown).update(vars(self))
        _set(shown, "gains", read_only(np.where(eligible[:, np.newaxis], self.gains, 0.0)))
        _set(shown, "best_gains", read_only(np.where(eligible, self.best_gains, 0.0)))
        return shown

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

        All are free by default. The need of a UE that cannot reach its threshold is 0, and its
        rate the highest that it can.

        >>> Uplink(np.array([[3.0, 1.0], [1.0, 1.0]]), 1.0, rate_threshold=1.0).needs()[0]
        array([1, 0])
        """
        channels = _every(self.subchannel_count) if free is None else read_only(free.view())
        need, rate = reach(self.gains, channels, self.power_budget, self.rate_threshold)
        return need, rate

    def highest_rates(self) -> NDArray[np.float64]:
        """Return the rate of every UE with all subchannels to itself, water-filled.

        >>> Uplink(np.array([[3.0, 0.0], [2.0, 2.0]]), 1.0, rate_threshold=0.0).highest_rates()
        array([1., 1.])
        """
        every, beyond = _every(self.subchannel_count), _alike(np.inf, self.ue_count)
        _, rate = reach(self.gains, every, self.power_budget, beyond)
        return np.asarray(rate)

    def mean_snrs(self) -> NDArray[np.float64]:
        """Return the mean SNR of every UE over the subchannels, each with all power; 0 of none.

        >>> Uplink(np.array([[3.0, 1.0], [0.0, 1.0]]), [1.0, 4.0], rate_threshold=0.0).mean_snrs()
        array([2., 2.])
        """
        means = self.gains.sum(axis=1) / max(1, self.subchannel_count)
        return np.asarray(means * self.power_budget)

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
    """A read-only, C-ordered float64 matrix; copied only if it is not one yet."""
    if type(values) is np.ndarray and values.dtype == _FLOAT and values.ndim == 2:
        return _kept(values)  # as a rule, and checked fast
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError("gains must not be masked: set what cannot be used to 0")
    try:
        given = np.asarray(values)
    except ValueError as error:  # with a sentence of NumPy's own
        raise ValueError(
            "gains must be a matrix of UEs (rows) by subchannels (columns): its rows differ in "
            "length"
        ) from error
    if given.dtype.kind not in "iufb":
        raise ValueError(f"gains must be real numbers, not {given.dtype}")
    if given.ndim != 2:
        raise ValueError(
            f"gains must be a matrix of UEs (rows) by subchannels (columns), not {given.ndim}-D"
        )
    return _kept(given.astype(np.float64, copy=False))


def _kept(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A read-only view, C-ordered: kernels are compiled for one kind of array."""
    array = np.ascontiguousarray(values)
    return read_only(array.view()) if array.flags.writeable else array


def per_ue(name: str, values: ArrayLike, ues: int) -> NDArray[np.float64]:
    """A read-only vector with an entry per UE; copied only if it is not one yet."""
    if type(values) is np.ndarray and values.dtype == _FLOAT and values.shape == (ues,):
        return _kept(values)  # as a rule, and checked fast
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be masked")
    if type(values) is float or np.ndim(values) == 0:
        return _alike(real_number(name, values), ues)
    given = np.asarray(values)
    if given.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be real numbers, not {given.dtype}")
    if given.shape != (ues,):
        raise ValueError(
            f"{name} must be a number, or have one for each of the {ues} UEs, not shape "
            f"{given.shape}"
        )
    return read_only(given.astype(np.float64))


@functools.lru_cache(maxsize=4)
def _every(subchannels: int) -> NDArray[np.int64]:
    """All subchannels; the array is shared and read-only."""
    return read_only(np.arange(subchannels))


@functools.lru_cache(maxsize=4)
def _alike(number: float, ues: int) -> NDArray[np.float64]:
    """The same number for all UEs; the array is shared and read-only."""
    return read_only(np.full(ues, number))


def _looked_at_again(
    gains: NDArray[np.float64], power: NDArray[np.float64], threshold: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The best gain of each UE, or ``ValueError`` naming the first number that is not valid."""
    for name, values, wrong, what in (
        ("power budget", power, ~(np.isfinite(power) & (power > 0)), "positive and finite"),
        ("rate_threshold", threshold, ~(threshold >= 0), "non-negative"),
    ):
        if wrong.any():
            first, one = int(wrong.argmax()), f"{values[wrong][0]:g}"
            where = (
                f", not {one}" if (values == values[0]).all() else f": that of UE {first} is {one}"
            )
            raise ValueError(f"{name} must be {what}{where}")
    bad = ~(np.isfinite(gains) & (gains >= 0))
    if bad.any():
        ue, subchannel = np.unravel_index(int(bad.argmax()), gains.shape)
        raise ValueError(
            f"gains must be non-negative and finite: the gain of UE {ue} on subchannel "
            f"{subchannel} is {gains[ue, subchannel]}"
        )
    # With negative zeros, which look like negative numbers.
    best = np.where(np.isfinite(threshold), gains.max(axis=1, initial=0.0), 0.0)
    with np.errstate(over="ignore"):
        most = int((best * power).argmax())
        if best[most] * power[most] > _LARGEST_SNR:
            raise ValueError(
                f"gains are too large: {best[most]:g} times the power {power[most]:g} of UE {most} "
                f"is above {_LARGEST_SNR:g}; scale them"
            )
    return best
