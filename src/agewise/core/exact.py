"""Kernels of the exact optimum: single subchannels matched, sets priced, sets packed.

Single subchannels. The sets of UEs that can be matched form a matroid.

Pricing: the sets of subchannels that serve a UE, by price. A set is minimal if it reaches the
target and would not without its worst subchannel. Sets are built in falling order of gain, which
extends a filling by one subchannel at a time; what first reaches the target is minimal. The price
of a set is bounded by duality: for every price ``nu`` of power (in units of the budget) a set
carries at most ``nu + sum r_i`` nats, with ``r_i = log(snr_i / nu) - 1 + nu / snr_i`` where
``snr_i > nu`` and 0 elsewhere. This is linear in the set, so the cheapest set costs no less than
the fractional covering knapsack with the contents ``r_i``.

Packing: which sets go together. In the linear program a column is a UE with a set of subchannels,
and it uses a row for each of these and one for the UE. Columns that share no row can go together.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import log, power
from agewise.core.jit import kernel, njit
from agewise.core.waterfill import (
    Filling,
    add,
    excess_of,
    gets_power,
    is_usable,
    link_of,
    nats_of,
    reaches_alone,
)

#: The linear bound is loosened by this, relatively and absolutely: its own rounding can then
#: never exclude a set.
_RELATIVE_SLACK, _ABSOLUTE_SLACK = 1e-9, 1e-12
#: Costs are sums: each may be off by this for each subchannel, relatively.
_COST_ROUNDING = np.finfo(np.float64).eps
#: Prices of power among which the one with the best bound is chosen.
_POWER_PRICES = 16
#: What came of an attempt to extend a set.
_ADDED, _REACHED, _PASSED, _DEAD = range(4)


# ------------------------------------------------------------------------------- single subchannels
@njit
def _augmenting_path(at, gains, power_budget, rate_threshold, ues, owner, closed, path):
    """A breadth-first search from UE ``at`` for a free subchannel over alternating edges.

    ``path`` is (seen, reached_by, queue). Returns the free subchannel, or -1, and how many
    owned ones stand in the queue.
    """
    seen, reached_by, queue = path
    seen[:] = closed
    head = tail = 0
    place, came_from = at, -1
    while True:
        link = link_of(ues[place], power_budget, rate_threshold)
        for n in range(owner.size):
            # An edge of the graph: the UE reaches its threshold with this subchannel alone (3b).
            if seen[n] or not reaches_alone(gains[ues[place], n], link):
                continue
            seen[n] = True
            reached_by[n] = came_from
            if owner[n] < 0:
                return n, tail
            queue[tail] = n
            tail += 1
        if head == tail:
            return -1, tail
        came_from = queue[head]
        place = owner[came_from]
        head += 1


@kernel
def match(gains, power_budget, rate_threshold, ues, weights):
    """The heaviest UEs that one subchannel each suffices for; ``ues`` come in falling weight.

    The sets of UEs that can be matched form a matroid, so taking the heaviest that still finds
    an augmenting path is optimal. A search that fails has seen only subchannels from which no
    free one can be reached, now or later; they are never entered again, and the weight that
    failed is their dual. The duals of the others are 0. Returns the owner of each subchannel (a
    place in ``ues`` or -1) and the duals, which prove the optimum among single subchannels.
    """
    subchannels = gains.shape[1]
    owner, dual = np.full(subchannels, -1, np.int64), np.zeros(subchannels)
    closed = np.zeros(subchannels, np.bool_)
    path = np.zeros(subchannels, np.bool_), np.empty_like(owner), np.empty_like(owner)
    left = subchannels
    for at in range(ues.size):
        if left == 0:
            break
        end, queued = _augmenting_path(
            at, gains, power_budget, rate_threshold, ues, owner, closed, path
        )
        if end < 0:
            # All searched are taken, by UEs that reach nothing else that is open (Hall's theorem).
            for n in path[2][:queued]:
                closed[n] = True
                dual[n] = weights[at]
                left -= 1
        while end >= 0:  # everyone on the path moves to the subchannel that it reached
            before = path[1][end]
            owner[end] = at if before < 0 else owner[before]
            end = before
    return owner, dual


# ------------------------------------------------------------------------------------------ pricing
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


@njit
def _set_scratch(subchannels):
    """Working arrays of the search for this number of subchannels."""
    n = subchannels
    return (
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
        # The most that log(1 + snr p) - nu p can be over powers p >= 0; nu itself is added once,
        # for the whole budget.
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
    # The price of power at which the n best spend the whole budget: n / (1 + sum of 1 / snr).
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
    ranked, knapsack, path = scratch
    room = limit - path.cost[size]
    # By the bound all that is left would not be enough.
    if i >= count or path.missing[size] > knapsack.content_after[i]:
        return _DEAD
    dearest = path.dearest[size]
    if _cover(path.missing[size], i, dearest, count, room, ranked, knapsack) >= room:
        return _DEAD
    # Too dear itself, but worse subchannels may be cheaper.
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
    ranked, _, path = scratch
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
            # Only what is cheaper still is of interest from here on; the last one is overwritten.
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


@kernel
def sets_within(gains, power_budget, rate_threshold, ues, prices, limits, quota):
    """Minimal sets of each of ``ues`` that cost less than its limit, as far as the quota goes.

    A set costs the sum of ``prices[subchannel]``. Returns a lower bound on the cost of each UE's
    sets, at most its limit (exact unless the nodes ran out); by how much the sum of these bounds
    may be too high, since costs are rounded; the sets as the four arrays of `_FoundSets`; the
    nodes used, and whether the quota sufficed.
    """
    scratch = _set_scratch(gains.shape[1])
    ranked, knapsack, path = scratch
    sets = _FoundSets(
        np.empty(64, np.int64), np.empty(64), np.zeros(65, np.int64), np.empty(64, np.int64)
    )
    progress = _Progress(0, 0, True)
    least_cost = limits.copy()
    rounding = 0.0
    for place in range(ues.size):
        row, link = gains[ues[place]], link_of(ues[place], power_budget, rate_threshold)
        cheapest = np.inf
        # A UE whose cheapest subchannel is too dear already has no set within its limit.
        for n in range(row.size):
            if is_usable(row[n], link.power_budget):
                cheapest = min(cheapest, prices[n])
        if cheapest >= limits[place]:
            continue  # without the cost of sorting
        if not progress.complete:
            least_cost[place] = cheapest
            continue
        count = _rank_subchannels(row, link.power_budget, prices, ranked)
        missing, bound = _best_knapsack(count, link.target, ranked, knapsack)
        path.missing[0], path.dearest[0] = missing, np.inf
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


# ------------------------------------------------------------------------------------------ packing
class _ColumnRows(NamedTuple):
    """Column c uses ``rows[start[c]:start[c + 1]]``; ``cost[c]`` is its reduced cost."""

    cost: NDArray[np.float64]
    start: NDArray[np.int64]
    rows: NDArray[np.int64]


@njit
def _rows_of(columns, c):
    """The rows that column ``c`` uses."""
    return columns.rows[columns.start[c] : columns.start[c + 1]]


@njit
def _keep_open(active, room, columns, closed_at, kept):
    """Copy to ``kept`` the active columns that cost less than ``room`` and whose rows are open."""
    count = 0
    for c in active:
        if columns.cost[c] >= room:
            break
        fits = True
        for r in _rows_of(columns, c):
            if closed_at[r] >= 0:
                fits = False
                break
        if fits:
            kept[count] = c
            count += 1
    return count


@njit
def _count_uses(active, columns, dual, uses, least_share):
    """How many active columns use each row, and the least share of a cost that falls on it."""
    # A row ends unused, which costs its dual, or used, which costs a share of its column. The least
    # of these, summed over the open rows, bounds the rest of the gap from below.
    uses[:] = 0
    least_share[:] = dual
    for c in active:
        paying = 0
        for r in _rows_of(columns, c):
            uses[r] += 1
            paying += dual[r] > 0.0
        share = columns.cost[c] / max(paying, 1)
        for r in _rows_of(columns, c):
            least_share[r] = min(least_share[r], share)


@njit
def _branching_row(uses, dual, closed_at):
    """The open row that the fewest columns use, of those with a positive dual; or -1."""
    best = -1
    for r in range(dual.size):
        if closed_at[r] < 0 and uses[r] > 0 and dual[r] > 0.0:
            fewer = best < 0 or uses[r] < uses[best]
            if fewer or (uses[r] == uses[best] and dual[r] > dual[best]):
                best = r
    return best


@njit
def _close_unusable(depth, uses, least_share, dual, closed_at):
    """Close the rows that no column can use: the gap from that, and a lower bound on the rest."""
    gap = ahead = 0.0
    for r in range(dual.size):
        if closed_at[r] < 0:
            if uses[r] == 0:
                closed_at[r] = depth
                gap += dual[r]
            else:
                ahead += least_share[r]
    return gap, ahead


@njit
def _next_use(row, cursor, active, room, columns):
    """The place of the next active column from ``cursor`` on that uses the row, or the end."""
    for place in range(cursor, active.size):
        if columns.cost[active[place]] >= room:
            break
        for r in _rows_of(columns, active[place]):
            if r == row:
                return place
    return active.size


@kernel
def smallest_gap(reduced_cost, start, rows, dual, limit, most_nodes):
    """The packing with the smallest gap to the dual bound, if that is less than ``limit``.

    The gap of a packing is the sum of the ``reduced_cost`` (duals less weight, not negative) of
    its columns and of the duals of the rows that none of them uses. Column c uses
    ``rows[start[c]:start[c + 1]]``, and columns come in rising order of reduced cost. Branches on
    the row that the fewest columns can still use: one of these columns, or none.

    Returns the gap (``limit`` if there is no such packing), the columns chosen and the nodes
    used, more than ``most_nodes`` if they ran out.
    """
    columns = _ColumnRows(reduced_cost, start, rows)
    deepest = dual.size + 2
    closed_at = np.full(dual.size, -1, np.int64)  # the depth at which a row was used or given up
    uses, least_share = np.empty(dual.size, np.int64), np.empty(dual.size)
    lists = np.empty((deepest, reduced_cost.size), np.int32)
    size = np.zeros(deepest, np.int64)
    row, cursor = np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    picked, gap = np.full(deepest, -1, np.int64), np.zeros(deepest)
    best = np.empty(0, np.int64)
    lists[0], size[0] = np.arange(reduced_cost.size), reduced_cost.size
    nodes, depth, fresh = 0, 0, True
    while depth >= 0:
        active = lists[depth, : size[depth]]
        done = False
        if fresh:
            nodes += 1
            _count_uses(active, columns, dual, uses, least_share)
            unusable, ahead = _close_unusable(depth, uses, least_share, dual, closed_at)
            gap[depth] += unusable
            row[depth], cursor[depth] = _branching_row(uses, dual, closed_at), 0
            done = gap[depth] + ahead >= limit or nodes > most_nodes
            # No row is left to decide: a packing, with the smallest gap so far.
            if not done and row[depth] < 0:
                limit, best, done = gap[depth], picked[:depth].copy(), True
        fresh = False
        if not done and cursor[depth] <= active.size:
            room = limit - gap[depth]
            place = _next_use(row[depth], cursor[depth], active, room, columns)
            cursor[depth] = place + 1
            picked[depth] = active[place] if place < active.size else -1
            if picked[depth] >= 0:
                fresh = True
                gap[depth + 1] = gap[depth] + reduced_cost[picked[depth]]
                for r in _rows_of(columns, picked[depth]):
                    closed_at[r] = depth + 1
            elif dual[row[depth]] < room:  # every column was tried: now none of them
                fresh = True
                gap[depth + 1] = gap[depth] + dual[row[depth]]
                closed_at[row[depth]] = depth + 1
        if fresh:
            depth += 1
            size[depth] = _keep_open(active, limit - gap[depth], columns, closed_at, lists[depth])
            continue
        # Tried out or cut off: the rows of this node open again, and the search goes back.
        closed_at[closed_at == depth] = -1
        depth -= 1
    return limit, best[best >= 0], nodes
