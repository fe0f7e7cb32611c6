"""Compiled kernels of the exact optimum: the sets of subchannels that serve a UE.

A set is minimal if it reaches the target and would not without its worst subchannel. Sets are
built in falling order of gain, which extends the water-filling of `kernels` by one subchannel at
a time and in the same arithmetic; what first reaches the target is minimal.

The price of a set is bounded by duality: for every price ``nu`` of power (in units of the budget)
a set carries at most ``nu + sum r_i`` nats, with ``r_i = log(snr_i / nu) - 1 + nu / snr_i`` where
``snr_i > nu`` and 0 elsewhere. This is linear in the set, so the cheapest set costs no less than
the fractional covering knapsack with the contents ``r_i``.
"""

import numpy as np

from agewise.compiled import compiled

#: The linear bound is loosened by this, relatively and absolutely: its own rounding can then
#: never exclude a set.
RELATIVE_SLACK, ABSOLUTE_SLACK = 1e-9, 1e-12
#: Prices of power among which the one with the best bound is chosen.
POWER_PRICES = 16
#: What came of an attempt to extend a set.
ADDED, REACHED, PASSED, DEAD = range(4)


@compiled()
def sort_by(key, order):
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


@compiled()
def best_first(gains, power_budget, least_snr, cell):
    """Fill ``cell`` with the usable subchannels, best first; how many there are."""
    gain, snr, channel = cell
    count = 0
    for n in range(gains.size):
        if gains[n] * power_budget >= least_snr:
            channel[count] = n
            count += 1
        gain[n] = -gains[n]
    sort_by(gain, channel[:count])
    for i in range(count):
        gain[i] = gains[channel[i]]
        snr[i] = gain[i] * power_budget
    return count


@compiled()
def best_first_scratch(subchannels):
    """Working arrays of `best_first`: gains, SNRs, and which subchannels they are of."""
    return np.empty(subchannels), np.empty(subchannels), np.empty(subchannels, np.int64)


@compiled()
def reachable(gains, best_gains, power_budget, least_snr, target, ues):
    """Whether each of ``ues`` reaches ``target`` nats with all subchannels to itself."""
    cell = best_first_scratch(gains.shape[1])
    gain, snr, _ = cell
    reached = np.zeros(ues.size, np.bool_)
    for at in range(ues.size):
        best = best_gains[ues[at]] * power_budget
        if best < least_snr:
            continue
        if np.log1p(best) >= target:
            reached[at] = True
            continue
        excess = logs = 0.0
        count = best_first(gains[ues[at]], power_budget, least_snr, cell)
        for n in range(1, count + 1):
            d = (gain[0] - gain[n - 1]) / gain[n - 1]
            if not (n - 1) * d < snr[0] + excess:
                break
            excess += d
            logs += np.log1p(d)
            if n * np.log1p((snr[0] + excess) / n) - logs >= target:
                reached[at] = True
                break
    return reached


@compiled()
def knapsack_scratch(subchannels):
    """Working arrays of the bound: content, content from here on, price per nat, their order."""
    return (
        np.empty(subchannels), np.empty(subchannels + 1), np.empty(subchannels),
        np.empty(subchannels, np.int64),
    )  # fmt: skip


@compiled()
def fill_knapsack(snr, count, nu, price, knapsack):
    """What each subchannel can add at the power price ``nu``, and their order by price per nat."""
    content, content_after, density, by_density = knapsack
    content_after[count] = 0.0
    for i in range(count - 1, -1, -1):
        content[i] = np.log(snr[i] / nu) - 1.0 + nu / snr[i] if snr[i] > nu else 0.0
        content_after[i] = content_after[i + 1] + content[i]
        density[i] = price[i] / content[i] if content[i] > 0.0 else np.inf
    sort_by(density, by_density[:count])


@compiled()
def cover(missing, start, dearest, price, count, knapsack, room):
    """The least price of ``missing`` nats from subchannels ``start`` on, taken in fractions.

    Only subchannels cheaper than ``dearest`` are used; stops once ``room`` is passed.
    """
    content, _, _, by_density = knapsack
    cost = 0.0
    for i in by_density[:count]:
        if missing <= 0.0 or cost >= room:
            return cost
        if i >= start and price[i] < dearest:
            if content[i] <= 0.0:
                return np.inf
            cost += price[i] * min(1.0, missing / content[i])
            missing -= content[i]
    return cost if missing <= 0.0 else np.inf


@compiled()
def best_knapsack(snr, count, target, price, knapsack):
    """Fill ``knapsack`` for the power price with the highest bound; what is missing, the bound."""
    inverse_sum, highest = 0.0, 0.0
    for n in range(1, count + 1):
        inverse_sum += 1.0 / snr[n - 1]
        highest = max(highest, n / (1.0 + inverse_sum))
    lowest = 0.25 * snr[0] / (1.0 + snr[0])
    loosened = target * (1.0 - RELATIVE_SLACK) - ABSOLUTE_SLACK
    best_nu, best_bound = highest, 0.0
    for i in range(count):
        knapsack[3][i] = i
    for step in range(POWER_PRICES):
        nu = highest * (lowest / highest) ** (step / (POWER_PRICES - 1.0))
        fill_knapsack(snr, count, nu, price, knapsack)
        bound = cover(loosened - nu, 0, np.inf, price, count, knapsack, np.inf)
        if bound > best_bound:
            best_nu, best_bound = nu, bound
    fill_knapsack(snr, count, best_nu, price, knapsack)
    return loosened - best_nu, best_bound


@compiled()
def path_scratch(subchannels):
    """Working arrays of the search: the chosen, and the sums after so many of them.

    The sums are of excesses, of their logarithms, of prices, of nats still missing; the last is
    the price from which on a subchannel need not be tried.
    """
    return (
        np.empty(subchannels + 1, np.int64), np.zeros(subchannels + 2), np.zeros(subchannels + 2),
        np.zeros(subchannels + 2), np.zeros(subchannels + 2), np.zeros(subchannels + 2),
    )  # fmt: skip


@compiled()
def extend(i, size, count, gain, snr, price, target, limit, knapsack, path):
    """Try to extend the set of ``size`` subchannels by the i-th best."""
    content, content_after, _, _ = knapsack
    chosen, excess, logs, cost, missing, dearest = path
    room = limit - cost[size]
    if i >= count or missing[size] > content_after[i]:
        return DEAD
    if cover(missing[size], i, dearest[size], price, count, knapsack, room) >= room:
        return DEAD
    if price[i] >= dearest[size] or price[i] >= room:
        return PASSED
    top = chosen[0] if size > 0 else i
    d = (gain[top] - gain[i]) / gain[i]
    if not size * d < snr[top] + excess[size]:
        return DEAD  # it would get no power, and no worse one would
    now = size + 1
    chosen[size] = i
    excess[now], logs[now] = excess[size] + d, logs[size] + np.log1p(d)
    cost[now], missing[now] = cost[size] + price[i], missing[size] - content[i]
    dearest[now] = dearest[size]
    reached = now * np.log1p((snr[top] + excess[now]) / now) - logs[now] >= target
    return REACHED if reached else ADDED


@compiled()
def grown(array, size):
    """``array`` with room for ``size`` entries: itself, or a copy of twice the length."""
    if size <= array.size:
        return array
    longer = np.zeros(2 * size, array.dtype)
    longer[: array.size] = array
    return longer


@compiled()
def add_set(found, at, cost, chosen, channel, sets):
    """Append a set to the ``found`` ones; the arrays, grown where they were full."""
    of, costs, start, members = sets
    of, costs, start = grown(of, found + 1), grown(costs, found + 1), grown(start, found + 2)
    end = start[found] + chosen.size
    members = grown(members, end)
    of[found], costs[found], start[found + 1] = at, cost, end
    for j in range(chosen.size):
        members[start[found] + j] = channel[chosen[j]]
    return of, costs, start, members


@compiled()
def sets_within(
    gains, power_budget, least_snr, target, ues, prices, limits, every, most_sets, most_nodes
):
    """Minimal sets of each UE that cost less than its limit: ``every`` one, or the cheapest.

    A set costs the sum of ``prices[subchannel]``. Returns a lower bound on the cost of each UE's
    sets, at most its limit (exact unless the nodes ran out); the sets, as the places of their
    UEs in ``ues``, costs, starts and members; the nodes used, and whether these sufficed and the
    sets did.
    """
    subchannels = gains.shape[1]
    cell, knapsack = best_first_scratch(subchannels), knapsack_scratch(subchannels)
    path, price = path_scratch(subchannels), np.empty(subchannels)
    gain, snr, channel = cell
    chosen, _, _, cost, missing, dearest = path
    sets = np.empty(64, np.int64), np.empty(64), np.zeros(65, np.int64), np.empty(64, np.int64)
    least_cost = limits.copy()
    found = nodes = 0
    enough = True
    for at in range(ues.size):
        row = gains[ues[at]]
        cheapest = np.inf
        for n in range(subchannels):
            if row[n] * power_budget >= least_snr:
                cheapest = min(cheapest, prices[n])
        if cheapest >= limits[at]:
            continue  # without the cost of sorting
        if not enough:
            least_cost[at] = cheapest
            continue
        count = best_first(row, power_budget, least_snr, cell)
        for i in range(count):
            price[i] = prices[channel[i]]
        missing[0], bound = best_knapsack(snr, count, target, price, knapsack)
        dearest[0] = np.inf
        limit, mine, size, i = limits[at], found, 0, 0
        while True:
            enough = nodes < most_nodes
            if not enough:
                break
            nodes += 1
            outcome = extend(i, size, count, gain, snr, price, target, limit, knapsack, path)
            if outcome == ADDED:
                size, i = size + 1, i + 1
                continue
            if outcome == REACHED:
                enough = not every or found < most_sets
                if not enough:
                    break
                least_cost[at] = min(least_cost[at], cost[size + 1])
                if not every:
                    limit, found = cost[size + 1], mine
                sets = add_set(found, at, cost[size + 1], chosen[: size + 1], channel, sets)
                found += 1
            elif outcome == DEAD:
                if size == 0:
                    break
                size -= 1
                i = chosen[size]
            if not every:
                # Whoever passes over this subchannel takes no worse one that is not cheaper.
                dearest[size] = min(dearest[size], price[i])
            i += 1
        if not enough:
            least_cost[at] = min(max(bound, cheapest), least_cost[at])
    of, costs, start, members = sets
    return (
        least_cost, of[:found], costs[:found], start[: found + 1], members[: start[found]],
        nodes, enough,
    )  # fmt: skip
