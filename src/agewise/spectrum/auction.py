"""Packing that leaves contested subchannels to those who need them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import whole_number
from agewise.spectrum.allocation import Allocation
from agewise.spectrum.pack import as_rank, as_weights
from agewise.spectrum.uplink import Uplink

#: Found best on optima of the paper's cell (docs/policies.md has the figures).
EXPONENTS = (0.75, 1.0)
PRICE_ROUNDS = 5


def auction(
    uplink: Uplink,
    weights: ArrayLike,
    rank: ArrayLike | None = None,
    *,
    rates: ArrayLike | None = None,
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

    Weights and rank are those of `pack`. ``rates`` may ask more of single UEs than the threshold,
    one number per UE; infinity leaves a UE out.

    >>> uplink = Uplink(np.array([[9.0, 8.0], [9.0, 1.0]]), power_budget=1.0, rate_threshold=1.5)
    >>> auction(uplink, weights=[2.0, 1.0]).owner
    array([1, 0])
    """
    from agewise.spectrum.auction_kernels import pack_by_auction

    weight, ranks = as_weights(weights, uplink), as_rank(rank, uplink)
    powers = np.array(exponents, dtype=np.float64)
    if powers.ndim != 1 or powers.size == 0 or not np.isfinite(powers).all():
        raise ValueError(f"exponents must be one or more finite numbers, not {exponents!r}")
    owner, power, gain = pack_by_auction(
        uplink.gains, uplink.best_gains, weight, ranks, np.lexsort((ranks, -weight)),
        uplink.power_budget, _rates(rates, uplink), powers,
        whole_number("price_rounds", price_rounds),
    )  # fmt: skip
    return Allocation(
        owner, power, gain, uplink.ue_count, uplink.power_budget, uplink.rate_threshold
    )


def _rates(rates: ArrayLike | None, uplink: Uplink) -> NDArray[np.float64]:
    """What the UEs must reach: one rate for all, or one each."""
    if rates is None:
        return np.array([uplink.rate_threshold])
    asked = np.asarray(rates, dtype=np.float64)
    if asked.shape != (uplink.ue_count,) or not (asked >= uplink.rate_threshold).all():
        raise ValueError(
            f"rates must have one number for each of the {uplink.ue_count} UEs, at least the "
            f"threshold {uplink.rate_threshold:g}"
        )
    return asked
