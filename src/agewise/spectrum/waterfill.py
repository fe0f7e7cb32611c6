"""Water-filling: the best powers on given subchannels, and the fewest subchannels that do."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

    The n best subchannels are used, with n as large as gives each of them power: with
    u = (snr_1 + sum d) / n and d_i = gain_1 / gain_i - 1, subchannel n is used if d_n < u, gets
    (u - d_n) / gain_1, and the rate is ½ (n log2(1 + u) - sum log2(1 + d_i)). Written in the
    excesses d, no digit is lost between the smallest gains and the largest. Subchannels of gain
    0 are not used; where there are no others the level is infinite and the rate 0.

    >>> filled = waterfill([1.0, 0.5, 0.0], power_budget=3.0)
    >>> filled.power, filled.level
    (array([2., 1., 0.]), 3.0)
    """
    values = np.asarray(gains)
    uplink = Uplink(values[np.newaxis] if values.ndim == 1 else values, power_budget, 0.0)
    if uplink.ue_count != 1:
        raise ValueError(f"waterfill takes the gains of one UE, not an array {values.shape}")
    row = uplink.gains[0]
    usable = row * uplink.power_budget >= np.finfo(np.float64).tiny
    order = np.argsort(np.where(usable, -row, 0.0), kind="stable")[: np.count_nonzero(usable)]
    power = np.zeros(row.size)
    if order.size == 0:
        return WaterFilling(power, math.inf, 0.0)
    best_gain = float(row[order[0]])
    with np.errstate(over="ignore"):
        excess = (best_gain - row[order]) / row[order]
        n = np.arange(1, order.size + 1)
        water = (best_gain * uplink.power_budget + np.cumsum(excess)) / n
    used = int(np.searchsorted(~(excess < water), True))  # once unused, every worse one is too
    u, d = float(water[used - 1]), excess[:used]
    power[order[:used]] = (u - d) / best_gain
    nats = used * math.log1p(u) - float(np.log1p(d).sum())
    return WaterFilling(power, (1.0 + u) / best_gain, nats / (2.0 * math.log(2.0)))


def fewest_subchannels(
    gains: ArrayLike,
    power_budget: float,
    rate_threshold: float,
    available: ArrayLike | None = None,
) -> NDArray[np.int64] | None:
    """Algorithm 1, corrected: the fewest ``available`` subchannels that reach the threshold.

    They are the best ones, in falling order of gain and, among equals, rising index. ``None``
    if no set reaches ``rate_threshold``: once the next subchannel would get no power the rate
    cannot grow, so the UE is not a candidate.

    >>> fewest_subchannels([1.0, 8.0, 4.0], power_budget=2.0, rate_threshold=2.5)
    array([1, 2])
    """
    from agewise.spectrum import kernels

    uplink = Uplink(np.asarray(gains)[np.newaxis], power_budget, rate_threshold)
    count = uplink.subchannel_count
    free = np.arange(count) if available is None else np.unique(np.asarray(available))
    if free.size == 0:
        return None
    if free.dtype.kind not in "iu" or free[0] < 0 or free[-1] >= count:
        raise ValueError(f"available must hold subchannel indices from 0 to {count - 1}")
    work = kernels.scratch(count)
    target = kernels.target_nats(uplink.rate_threshold)
    need = kernels.fewest_best(
        uplink.gains[0],
        uplink.power_budget,
        target,
        kernels.least_snrs(target, count),
        free.astype(np.int64),
        work,
    )
    return work[2][:need].copy() if need else None
