"""Water-filling: the best powers on given subchannels, and the fewest subchannels that do."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.core import waterfill as kernels
from agewise.core.elementary import NATS_PER_BIT
from agewise.spectrum.uplink import Uplink


@dataclass(frozen=True, eq=False)
class WaterFilling:
    """Powers that carry the highest rate, with the water level that certifies it.

    ``power[subchannel]`` is ``max(0, level - 1 / gain)`` and spends the whole budget;
    ``rate`` is in bits per real channel use.
    """

    power: NDArray[np.float64]
    level: float
    rate: float

    @property
    def subchannels(self) -> NDArray[np.int64]:
        """The subchannels that carry power, in rising order."""
        return np.flatnonzero(self.power > 0)


def waterfill(gains: ArrayLike, power_budget: float) -> WaterFilling:
    """The powers on subchannels of these ``gains[subchannel]`` that carry the highest rate.

    The n best subchannels are used, with n as large as gives each of them power. Subchannels of
    gain 0 are not used; where there are no others the level is infinite and the rate 0.

    >>> filled = waterfill([1.0, 0.5, 0.0], power_budget=3.0)
    >>> filled.power, filled.level
    (array([2., 1., 0.]), 3.0)
    """
    values = np.asarray(gains)
    uplink = Uplink(values[np.newaxis] if values.ndim == 1 else values, power_budget, 0.0)
    if uplink.ue_count != 1:
        raise ValueError(f"waterfill takes the gains of one UE, not an array {values.shape}")
    power, level, nats = kernels.waterfill(uplink.gains[0], uplink.power_budget[0])
    return WaterFilling(power, level, nats / NATS_PER_BIT)


def fewest_subchannels(
    gains: ArrayLike, power_budget: float, rate_threshold: float, available: ArrayLike | None = None
) -> NDArray[np.int64] | None:
    """Algorithm 1, corrected: the fewest ``available`` subchannels that reach the threshold.

    They are the best ones, in falling order of gain and, among equals, rising index. ``None``
    if no set reaches ``rate_threshold``: once the next subchannel would get no power the rate
    cannot grow, so the UE is not a candidate.

    >>> fewest_subchannels([1.0, 8.0, 4.0], power_budget=2.0, rate_threshold=2.5)
    array([1, 2])
    """
    uplink = Uplink(np.asarray(gains)[np.newaxis], power_budget, rate_threshold)
    count = uplink.subchannel_count
    free = np.arange(count) if available is None else np.unique(np.asarray(available))
    if free.size == 0:
        return None
    if free.dtype.kind not in "iu" or free[0] < 0 or free[-1] >= count:
        raise ValueError(f"available must hold subchannel indices from 0 to {count - 1}")
    chosen: NDArray[np.int64] = kernels.fewest_subchannels(
        uplink.gains[0], uplink.power_budget, uplink.rate_threshold, free.astype(np.int64)
    )
    return chosen if chosen.size else None
