"""Bound on the mean age: no schedule is below it.

Problem (3) asks what one round is worth; the mean age is what all rounds together lead to. Over T
blocks a UE with n deliveries has a mean age of at least ``((T + 1) / n' - 1) (T + 1) / 2T`` with
``n' = n + 1``: ages are 0 at the start, and convex, so that even intervals are best. Its
deliveries cost at least the n cheapest of its needs (Algorithm 1 with all subchannels free), and
all UEs together have N T subchannels. The least mean age under these two conditions is a convex
problem, and its dual at any price of a subchannel is a bound. In the long run, with a share
q = n / T of the blocks, the age is ``(1 / q - 1) / 2``.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.spectrum.uplink import Uplink

#: Halvings of the interval in which the price lies: beyond these its digits are used up.
_HALVINGS = 60
#: The bound is lowered by this, relatively, so that its rounding excludes no schedule.
_ROUNDING = 1e-12


def needs_to_deliver(seen: Uplink, true: ArrayLike | None = None) -> NDArray[np.int64]:
    """Return the fewest subchannels with which an update of each UE can arrive; 0 if it cannot.

    It has to be scheduled on the gains as they are ``seen``, and to arrive on the ``true`` ones,
    which are the same by default.
    """
    need, _ = seen.needs()
    if true is None:
        return need
    met, _ = Uplink(true, seen.power_budget, seen.rate_threshold).needs()
    return np.where((need > 0) & (met > 0), np.maximum(need, met), 0)


def count_needs(needs: NDArray[np.int64], subchannels: int) -> NDArray[np.int64]:
    """``[ue, need]``: in how many of the blocks each UE has that need, from ``needs[block, ue]``.

    >>> count_needs(np.array([[1, 0], [1, 2]]), subchannels=2)
    array([[0, 2, 0],
           [1, 0, 1]])
    """
    ues, levels = needs.shape[1], subchannels + 1
    counts = np.bincount((needs + levels * np.arange(ues)).ravel(), minlength=ues * levels)
    return counts.reshape(ues, levels)


def least_mean_age(counts: NDArray[np.int64], *, long_run: bool = False) -> float:
    """Return the bound on the mean age over UEs and blocks, from `count_needs` of these blocks.

    It holds for every schedule of these very blocks from ages of 0, whatever it knows. With
    ``long_run`` it is that of ever more blocks in which needs occur as often; it is infinite if
    some UE is never in reach. NaN without UEs.

    >>> ideal = np.array([[0, 1000]] * 4)  # four UEs on one subchannel
    >>> round(least_mean_age(ideal, long_run=True), 9)
    1.5
    """
    ues, blocks = len(counts), int(counts.sum(axis=1).max(initial=0))
    if not ues:
        return float("nan")
    need, first = np.arange(1, counts.shape[1]), 0 if long_run else 1
    counts = counts[:, 1:]
    within = counts.cumsum(axis=1)

    def at_price(price: float) -> tuple[float, float]:
        """Return the dual at this price of a subchannel, and how many the UEs then want a block."""
        # A UE wants deliveries as long as the next one makes it younger by more than it costs.
        worth = (blocks + first) / np.sqrt(2.0 * price * need) - first
        wanted = np.minimum(within, worth).max(axis=1, initial=0.0)
        held = np.clip(wanted[:, np.newaxis] - (within - counts), 0.0, counts)
        used = float((held @ need).sum()) / blocks
        ages = ((blocks + first) / (wanted + first) - 1.0) * (blocks + first) / (2.0 * blocks)
        return float(ages.sum()) + price * (used - need.size), used

    with np.errstate(divide="ignore"):  # a price of 0, and UEs that are never in reach
        low, high = 0.0, 1.0
        best, used = at_price(low)
        if used <= need.size:
            return best / ues * (1.0 - _ROUNDING)
        while at_price(high)[1] > need.size:
            low, high = high, 2.0 * high
        for _ in range(_HALVINGS):
            price = 0.5 * (low + high)
            dual, used = at_price(price)
            best = max(best, dual)
            low, high = (price, high) if used > need.size else (low, price)
    return best / ues * (1.0 - _ROUNDING)
