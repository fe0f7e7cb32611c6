"""From a weight or an order of the UEs to an allocation of the spectrum."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import whole_number
from agewise.core.auction import Bidders, pack_by_auction
from agewise.core.pack import fill_in_order, pack_lazily
from agewise.core.proof import first_invalid, first_repeated
from agewise.spectrum.allocation import Allocation
from agewise.spectrum.uplink import Uplink

#: Found best on optima of the paper's cell (docs/policies.md has the figures).
EXPONENTS = (0.75, 1.0)
PRICE_ROUNDS = 5
_INT = np.dtype(np.int64)


def pack(uplink: Uplink, weights: ArrayLike, rank: ArrayLike | None = None) -> Allocation:
    """Algorithm 2: serve the UE with the highest weight per subchannel needed, and so on.

    After each pick the needs of the others are those on the subchannels still free. ``weights``
    has a non-negative number per UE (``f_alpha`` of the ages for age-based scheduling, a
    constant for MaxPack). Among equal scores the UE that needs fewer subchannels goes first,
    then the one with the lower ``rank`` (a whole number per UE), then the lower index. Scores are
    equal if they differ by less than one part in 10^12, which is rounding.

    >>> uplink = Uplink(np.array([[4.0, 1.0], [9.0, 3.0]]), power_budget=1.0, rate_threshold=1.0)
    >>> pack(uplink, weights=[1.0, 5.0]).owner
    array([ 1, -1])
    """
    owner, power, gain = pack_lazily(
        uplink.gains,
        uplink.best_gains,
        _as_weights(weights, uplink),
        _as_rank(rank, uplink),
        uplink.power_budget,
        uplink.rate_threshold,
    )
    return _allocation(uplink, owner, power, gain)


def fill(uplink: Uplink, order: ArrayLike) -> Allocation:
    """Serve UEs in the given ``order``: each takes its fewest best free subchannels.

    A UE that what is left cannot serve is passed over. ``order`` holds UE indices; those that
    it leaves out are not served.
    """
    ues = _whole_numbers("order", order)
    if ues.ndim != 1:
        raise ValueError(f"order must be a list of UEs, not an array {ues.shape}")
    if (place := first_repeated(ues, uplink.ue_count)) >= 0:
        raise ValueError(
            f"order must list UEs from 0 to {uplink.ue_count - 1}, each at most once: entry "
            f"{place} is UE {ues[place]}"
        )
    owner, power, gain = fill_in_order(
        uplink.gains, uplink.best_gains, ues, uplink.power_budget, uplink.rate_threshold
    )
    return _allocation(uplink, owner, power, gain)


def auction(
    uplink: Uplink,
    weights: ArrayLike,
    rank: ArrayLike | None = None,
    *,
    exponents: Sequence[float] = EXPONENTS,
    price_rounds: int = PRICE_ROUNDS,
) -> Allocation:
    """A better `pack`, in a few times its work.

    Algorithm 2 gives each UE its best subchannels, which others may want more. Here subchannels
    have prices, at first what is asked for them: of the smallest sets that reach the rate a UE
    takes a cheap one. Then prices move: each UE claims a cheap set if its weight exceeds the
    price, and what several claim becomes dearer, what nobody claims cheaper. At each of
    ``price_rounds + 1`` prices the UEs are packed in the order of weight per need^exponent, for
    each of the ``exponents``, and the packing with the highest sum of weights is the answer.

    Weights and rank are those of `pack`.

    >>> uplink = Uplink(np.array([[9.0, 8.0], [9.0, 1.0]]), power_budget=1.0, rate_threshold=1.5)
    >>> auction(uplink, weights=[2.0, 1.0]).owner
    array([1, 0])
    """
    weight, ranks = _as_weights(weights, uplink), _as_rank(rank, uplink)
    powers = np.array(exponents, dtype=np.float64)
    if powers.ndim != 1 or powers.size == 0 or not np.isfinite(powers).all():
        raise ValueError(f"exponents must be one or more finite numbers, not {exponents!r}")
    owner, power, gain = pack_by_auction(
        uplink.gains,
        Bidders(weight, ranks, np.lexsort((ranks, -weight))),
        uplink.power_budget,
        uplink.rate_threshold,
        powers,
        whole_number("price_rounds", price_rounds),
    )
    return _allocation(uplink, owner, power, gain)


def _allocation(
    uplink: Uplink,
    owner: NDArray[np.int64],
    power: NDArray[np.float64],
    gain: NDArray[np.float64],
) -> Allocation:
    return Allocation(
        owner, power, gain, uplink.ue_count, uplink.power_budget, uplink.rate_threshold
    )


def _as_weights(weights: ArrayLike, uplink: Uplink) -> NDArray[np.float64]:
    """One non-negative, finite number per UE, or ``ValueError``."""
    weight = np.ascontiguousarray(weights, dtype=np.float64)
    _require_one_per_ue("weights", weight, uplink)
    if (ue := first_invalid(weight)) >= 0:
        raise ValueError(
            f"weights must be non-negative and finite: the weight of UE {ue} is {weight[ue]}"
        )
    return weight


def _as_rank(rank: ArrayLike | None, uplink: Uplink) -> NDArray[np.int64]:
    """One whole number per UE, or ``ValueError``; the index if none is given."""
    ranks = np.arange(uplink.ue_count) if rank is None else _whole_numbers("rank", rank)
    _require_one_per_ue("rank", ranks, uplink)
    return ranks


def _whole_numbers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    if type(values) is np.ndarray and values.dtype == _INT and values.flags.c_contiguous:
        return values  # as a rule, and checked fast
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers, not {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)


def _require_one_per_ue(
    name: str, array: NDArray[np.float64] | NDArray[np.int64], uplink: Uplink
) -> None:
    if array.shape != (uplink.ue_count,):
        raise ValueError(
            f"{name} must have one entry for each of the {uplink.ue_count} UEs, "
            f"not shape {array.shape}"
        )
