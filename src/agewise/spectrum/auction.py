"""Packing that leaves contested subchannels to those who need them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

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
    from agewise.spectrum.auction_kernels import pack_by_auction

    owner, power, gain = pack_by_auction(
        uplink.gains, uplink.best_gains, as_weights(weights, uplink), as_rank(rank, uplink),
        uplink.power_budget, uplink.rate_threshold,
        np.array(exponents, dtype=np.float64), price_rounds,
    )  # fmt: skip
    return Allocation(
        owner, power, gain, uplink.ue_count, uplink.power_budget, uplink.rate_threshold
    )
