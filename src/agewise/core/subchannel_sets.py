"""The sets of subchannels that serve a UE, by price: the pricing problem of the exact optimum.

A set is minimal if it reaches the target and would not without its worst subchannel. Sets are
built in falling order of gain, which extends a filling by one subchannel at a time; what first
reaches the target is minimal.

The price of a set is bounded by duality: for every price ``nu`` of power (in units of the budget)
a set carries at most ``nu + sum r_i`` nats, with ``r_i = log(snr_i / nu) - 1 + nu / snr_i`` where
``snr_i > nu`` and 0 elsewhere. This is linear in the set, so the cheapest set costs no less than
the fractional covering knapsack with the contents ``r_i``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import log, power
from agewise.core.jit import kernel, njit
from agewise.core.waterfill import Filling, add, excess_of, gets_power, is_usable, nats_of

#: The linear bound is loosened by this, relatively and absolutely: its own rounding can then
#: never exclude a set.
_RELATIVE_SLACK, _ABSOLUTE_SLACK = 1e-9, 1e-12
#: Costs are sums: each may be off by this for each subchannel, relatively.
_COST_ROUNDING = np.finfo(np.float64).eps
#: Prices of power among which the one with the best bound is chosen.
_POWER_PRICES = 16
#: What came of an attempt to extend a set.
_ADDED, _REACHED, _PASSED, _DEAD = range(4)


class Quota(NamedTuple):
    """Which sets are sought: the cheapest of each UE, or all up to ``most_sets`` altogether."""

    only_cheapest: bool
    most_sets: int
    most_nodes: int


class _Progress(NamedTuple):
    """Sets found, nodes used, and whether the quota sufficed."""

    found: int
    nodes: int
    complete: bool


class _FoundSets(NamedTuple):
    """Set i is ``members[start[i]:start[i + 1]]``; its UE, by its place, and its cost."""

    place: NDArray[np.int64]
    cost: NDArray[np.float64]
    start: NDArray[np.int64]
    members: NDArray[np.int64]


class _Ranked(NamedTuple):
    """The usable subchannels of a UE, best first: gain, SNR, price, and which they are."""

    gain: NDArray[np.float64]
    snr: NDArray[np.float64]
    price: NDArray[np.float64]
    channel: NDArray[np.int64]


class _Knapsack(NamedTuple):
    """The covering knapsack over the ranked subchannels.

    What each can add, what all from it on can, its price per nat, and their order by that.
    """

    content: NDArray[np.float64]
    content_after: NDArray[np.float64]
    density: NDArray[np.float64]
    by_density: NDArray[np.int64]


class _Path(NamedTuple):
    """The set at hand: ``chosen`` (ranks), and what holds after each of them.

    The sums of the filling, the cost, the content still missing, and the price from which on a
    subchannel need not be tried.
    """

    chosen: NDArray[np.int64]
    excess_sum: NDArray[np.float64]
    log_sum: NDArray[np.float64]
    cost: NDArray[np.float64]
    missing: NDArray[np.float64]
    dearest: NDArray[np.float64]


class _SetScratch(NamedTuple):
    """Working arrays of the search."""

    ranked: _Ranked
    knapsack: _Knapsack
    path: _Path


@njit
def _set_scratch(subchannels):
    """Working arrays for this number of subchannels."""
    n = subchannels
    return _SetScratch(
        _Ranked(np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)),
        _Knapsack(np.empty(n), np.empty(n + 1), np.empty(n), np.empty(n, np.int64)),
        _Path(
            np.empty(n + 1, np.int64),
            np.zeros(n + 2),
            np.zeros(n + 2),
            np.zeros(n + 2),
            np.zeros(n + 2),
            np.zeros(n + 2),
        ),
    )


@njit
def _sort_by(key, order):
    """Put ``order`` in rising order of its keys, equal ones as they were.

    By insertion: there are few, often nearly in order, and it compiles much faster than a call
    of NumPy's.
    """
    for end in range(1, order.size):
        item = order[end]
        hole = end
        while hole > 0 and key[order[hole - 1]] > key[item]:
            order[hole] = order[hole - 1]
            hole -= 1
        order[hole] = item


@njit
def _rank_subchannels(gains, power_budget, prices, ranked):
    """List the usable subchannels, best first; how many there are."""
    count = 0
    for n in range(gains.size):
        if is_usable(gains[n], power_budget):
            ranked.channel[count] = n
            count += 1
        ranked.gain[n] = -gains[n]
    _sort_by(ranked.gain, ranked.channel[:count])
    for i in range(count):
        channel = ranked.channel[i]
        ranked.gain[i] = gains[channel]
        ranked.snr[i] = gains[channel] * power_budget
        ranked.price[i] = prices[channel]
    return count


@njit
def _fill_knapsack(count, nu, ranked, knapsack):
    """What each subchannel can add at the power price ``nu``, and their order by price per nat."""
    snr, price, content = ranked.snr, ranked.price, knapsack.content
    knapsack.content_after[count] = 0.0
    for i in range(count - 1, -1, -1):
        content[i] = log(snr[i] / nu) - 1.0 + nu / snr[i] if snr[i] > nu else 0.0
        knapsack.content_after[i] = knapsack.content_after[i + 1] + content[i]
        knapsack.density[i] = price[i] / content[i] if content[i] > 0.0 else np.inf
    _sort_by(knapsack.density, knapsack.by_density[:count])


@njit
def _cover(missing, start, dearest, count, room, ranked, knapsack):
    """The least price of ``missing`` nats from subchannels ``start`` on, taken in fractions.

    Only subchannels cheaper than ``dearest`` are used; stops once ``room`` is passed.
    """
    content, price = knapsack.content, ranked.price
    cost = 0.0
    for i in knapsack.by_density[:count]:
        if missing <= 0.0 or cost >= room:
            return cost
        if i >= start and price[i] < dearest:
            if content[i] <= 0.0:
                return np.inf
            cost += price[i] * min(1.0, missing / content[i])
            missing -= content[i]
    return cost if missing <= 0.0 else np.inf


@njit
def _best_knapsack(count, target, ranked, knapsack):
    """Fill ``knapsack`` for the power price with the highest bound; what is missing, the bound."""
    snr = ranked.snr
    inverse_sum, highest = 0.0, 0.0
    for n in range(1, count + 1):
        inverse_sum += 1.0 / snr[n - 1]
        highest = max(highest, n / (1.0 + inverse_sum))
    lowest = 0.25 * snr[0] / (1.0 + snr[0])
    loosened = target * (1.0 - _RELATIVE_SLACK) - _ABSOLUTE_SLACK
    best_nu, best_bound = highest, 0.0
    for i in range(count):
        knapsack.by_density[i] = i
    for step in range(_POWER_PRICES):
        nu = highest * power(lowest / highest, step / (_POWER_PRICES - 1.0))
        _fill_knapsack(count, nu, ranked, knapsack)
        bound = _cover(loosened - nu, 0, np.inf, count, np.inf, ranked, knapsack)
        if bound > best_bound:
            best_nu, best_bound = nu, bound
    _fill_knapsack(count, best_nu, ranked, knapsack)
    return loosened - best_nu, best_bound


@njit
def _extend(i, size, count, target, limit, scratch):
    """Try to extend the set of ``size`` subchannels by the i-th best."""
    ranked, knapsack, path = scratch.ranked, scratch.knapsack, scratch.path
    room = limit - path.cost[size]
    if i >= count or path.missing[size] > knapsack.content_after[i]:
        return _DEAD
    dearest = path.dearest[size]
    if _cover(path.missing[size], i, dearest, count, room, ranked, knapsack) >= room:
        return _DEAD
    if ranked.price[i] >= dearest or ranked.price[i] >= room:
        return _PASSED
    best = path.chosen[0] if size > 0 else i
    filling = Filling(
        size, ranked.gain[best], ranked.snr[best], path.excess_sum[size], path.log_sum[size]
    )
    excess = excess_of(filling, ranked.gain[i])
    if not gets_power(filling, excess):
        return _DEAD  # no worse one would get any
    filling = add(filling, excess)
    path.chosen[size] = i
    path.excess_sum[size + 1], path.log_sum[size + 1] = filling.excess_sum, filling.log_sum
    path.cost[size + 1] = path.cost[size] + ranked.price[i]
    path.missing[size + 1] = path.missing[size] - knapsack.content[i]
    path.dearest[size + 1] = dearest
    return _REACHED if nats_of(filling) >= target else _ADDED


@njit
def _grown(array, size):
    """``array`` with room for ``size`` entries: itself, or a copy of twice the length."""
    if size <= array.size:
        return array
    longer = np.zeros(2 * size, array.dtype)
    longer[: array.size] = array
    return longer


@njit
def _add_set(sets, found, place, cost, chosen, channel):
    """Append a set to the ``found`` ones; the arrays, grown where they were full."""
    end = sets.start[found] + chosen.size
    sets = _FoundSets(
        _grown(sets.place, found + 1),
        _grown(sets.cost, found + 1),
        _grown(sets.start, found + 2),
        _grown(sets.members, end),
    )
    sets.place[found], sets.cost[found], sets.start[found + 1] = place, cost, end
    for i in range(chosen.size):
        sets.members[sets.start[found] + i] = channel[chosen[i]]
    return sets


@njit
def _search_ue(place, count, limit, target, scratch, quota, sets, progress):
    """Add to ``sets`` those of one UE that cost less than ``limit``, by depth-first search.

    Returns the sets, the progress, and the least cost of those found, or the limit.
    """
    path, ranked = scratch.path, scratch.ranked
    first, found, nodes = progress.found, progress.found, progress.nodes
    least_cost, size, i = limit, 0, 0
    while True:
        complete = nodes < quota.most_nodes
        if not complete:
            break
        nodes += 1
        outcome = _extend(i, size, count, target, limit, scratch)
        if outcome == _ADDED:
            size, i = size + 1, i + 1
            continue
        if outcome == _REACHED:
            complete = quota.only_cheapest or found < quota.most_sets
            if not complete:
                break
            cost = path.cost[size + 1]
            least_cost = min(least_cost, cost)
            if quota.only_cheapest:
                limit, found = cost, first
            sets = _add_set(sets, found, place, cost, path.chosen[: size + 1], ranked.channel)
            found += 1
        elif outcome == _DEAD:
            if size == 0:
                break
            size -= 1
            i = path.chosen[size]
        if quota.only_cheapest:
            # Whoever passes over this subchannel takes no worse one that is not cheaper.
            path.dearest[size] = min(path.dearest[size], ranked.price[i])
        i += 1
    return sets, _Progress(found, nodes, complete), least_cost


@njit
def _cheapest_price(gains, power_budget, prices):
    """The lowest price of a usable subchannel."""
    cheapest = np.inf
    for n in range(gains.size):
        if is_usable(gains[n], power_budget):
            cheapest = min(cheapest, prices[n])
    return cheapest


@kernel
def sets_within(gains, link, ues, prices, limits, quota):
    """Minimal sets of each of ``ues`` that cost less than its limit, as far as the quota goes.

    A set costs the sum of ``prices[subchannel]``. Returns a lower bound on the cost of each UE's
    sets, at most its limit (exact unless the nodes ran out); by how much the sum of these bounds
    may be too high, since costs are rounded; the sets as the four arrays of `_FoundSets`; the
    nodes used, and whether the quota sufficed.
    """
    scratch = _set_scratch(gains.shape[1])
    sets = _FoundSets(
        np.empty(64, np.int64), np.empty(64), np.zeros(65, np.int64), np.empty(64, np.int64)
    )
    progress = _Progress(0, 0, True)
    least_cost = limits.copy()
    rounding = 0.0
    for place in range(ues.size):
        row = gains[ues[place]]
        cheapest = _cheapest_price(row, link.power_budget, prices)
        if cheapest >= limits[place]:
            continue  # without the cost of sorting
        if not progress.complete:
            least_cost[place] = cheapest
            continue
        count = _rank_subchannels(row, link.power_budget, prices, scratch.ranked)
        missing, bound = _best_knapsack(count, link.target, scratch.ranked, scratch.knapsack)
        scratch.path.missing[0], scratch.path.dearest[0] = missing, np.inf
        sets, progress, least_cost[place] = _search_ue(
            place, count, limits[place], link.target, scratch, quota, sets, progress
        )
        if not progress.complete:
            least_cost[place] = min(max(bound, cheapest), least_cost[place])
        rounding += least_cost[place] * (prices.size + 4) * _COST_ROUNDING
    found = progress.found
    return (
        least_cost, rounding, sets.place[:found], sets.cost[:found], sets.start[: found + 1],
        sets.members[: sets.start[found]], progress.nodes, progress.complete,
    )  # fmt: skip
