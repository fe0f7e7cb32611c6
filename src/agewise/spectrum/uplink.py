"""What one block of the uplink offers: the side of problem (3) that no policy can change."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import real_number

#: Above this SNR sums of the closed form could overflow.
_LARGEST_SNR = 1e300
_INFINITY_BITS = np.float64(np.inf).view(np.uint64)


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
        best_gains = _best_gains(gains)
        if float(best_gains.max(initial=0.0)) * power_budget > _LARGEST_SNR:
            raise ValueError(
                f"gains are too large: {best_gains.max():g} times the power {power_budget:g} is "
                f"above {_LARGEST_SNR:g}; scale them"
            )
        for name, value in (
            ("gains", gains),
            ("power_budget", power_budget),
            ("rate_threshold", rate_threshold),
            ("best_gains", best_gains),
        ):
            object.__setattr__(self, name, value)

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return int(self.gains.shape[0])

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        return int(self.gains.shape[1])


def _as_gains(values: ArrayLike) -> NDArray[np.float64]:
    """A C-ordered float64 matrix; copied only if it is not one yet."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError("gains must not be masked: set what cannot be used to 0")
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        raise ValueError(f"gains must be real numbers, not {array.dtype}")
    if array.ndim != 2:
        raise ValueError(
            f"gains must be a matrix of UEs (rows) by subchannels (columns), not {array.ndim}-D"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def _best_gains(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best gain of each UE; ``ValueError`` names the first gain that is not valid."""
    from agewise.spectrum import kernels

    best = np.empty(gains.shape[0], np.uint64)
    if kernels.best_bits(gains.view(np.uint64), best) < _INFINITY_BITS:
        return best.view(np.float64)
    bad = ~(np.isfinite(gains) & (gains >= 0))
    if not bad.any():  # only negative zeros, whose bit pattern looks like a negative number's
        return np.asarray(gains.max(axis=1))
    ue, subchannel = np.unravel_index(int(bad.argmax()), gains.shape)
    raise ValueError(
        f"gains must be non-negative and finite: the gain of UE {ue} on subchannel {subchannel} "
        f"is {gains[ue, subchannel]}"
    )
