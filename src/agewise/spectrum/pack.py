"""From a weight or an order of the UEs to an allocation of the spectrum."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.spectrum.allocation import Allocation
from agewise.spectrum.uplink import Uplink


def pack(uplink: Uplink, weights: ArrayLike, rank: ArrayLike | None = None) -> Allocation:
    """Algorithm 2: serve the UE with the highest weight per subchannel needed, and so on.

    After each pick the needs of the others are those on the subchannels still free. ``weights``
    has a non-negative number per UE (``f_alpha`` of the ages for age-based scheduling, a
    constant for MaxPack). Among equal scores the UE that needs fewer subchannels goes first,
    then the one with the lower ``rank`` (a whole number per UE), then the lower index.

    >>> uplink = Uplink(np.array([[4.0, 1.0], [9.0, 3.0]]), power_budget=1.0, rate_threshold=1.0)
    >>> pack(uplink, weights=[1.0, 5.0]).owner
    array([ 1, -1])
    """
    from agewise.spectrum import kernels

    owner, power, gain = kernels.pack_lazily(
        uplink.gains,
        uplink.best_gains,
        as_weights(weights, uplink),
        as_rank(rank, uplink),
        uplink.power_budget,
        uplink.rate_threshold,
    )
    return Allocation(
        owner, power, gain, uplink.ue_count, uplink.power_budget, uplink.rate_threshold
    )


def fill(uplink: Uplink, order: ArrayLike) -> Allocation:
    """Serve UEs in the given ``order``: each takes its fewest best free subchannels.

    A UE that what is left cannot serve is passed over. ``order`` holds UE indices; those that
    it leaves out are not served.
    """
    from agewise.spectrum import kernels

    ues = _whole_numbers("order", order)
    if ues.ndim != 1:
        raise ValueError(f"order must be a list of UEs, not an array {ues.shape}")
    if (place := kernels.first_repeated(ues, uplink.ue_count)) >= 0:
        raise ValueError(
            f"order must list UEs from 0 to {uplink.ue_count - 1}, each at most once: entry "
            f"{place} is UE {ues[place]}"
        )
    owner, power, gain = kernels.fill_in_order(
        uplink.gains, uplink.best_gains, ues, uplink.power_budget, uplink.rate_threshold
    )
    return Allocation(
        owner, power, gain, uplink.ue_count, uplink.power_budget, uplink.rate_threshold
    )


def as_weights(weights: ArrayLike, uplink: Uplink) -> NDArray[np.float64]:
    """One non-negative, finite number per UE, or ``ValueError``."""
    weight = np.asarray(weights, dtype=np.float64)
    _require_one_per_ue("weights", weight, uplink)
    if weight.size and not 0 <= weight.min() <= weight.max() < np.inf:
        ue = int((~(np.isfinite(weight) & (weight >= 0))).argmax())
        raise ValueError(
            f"weights must be non-negative and finite: the weight of UE {ue} is {weight[ue]}"
        )
    return weight


def as_rank(rank: ArrayLike | None, uplink: Uplink) -> NDArray[np.int64]:
    """One whole number per UE, or ``ValueError``; the index if none is given."""
    ranks = np.arange(uplink.ue_count) if rank is None else _whole_numbers("rank", rank)
    _require_one_per_ue("rank", ranks, uplink)
    return ranks


def _whole_numbers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers, not {array.dtype}")
    return array.astype(np.int64, copy=False)


def _require_one_per_ue(
    name: str, array: NDArray[np.float64] | NDArray[np.int64], uplink: Uplink
) -> None:
    if array.shape != (uplink.ue_count,):
        raise ValueError(
            f"{name} must have one entry for each of the {uplink.ue_count} UEs, "
            f"not shape {array.shape}"
        )
