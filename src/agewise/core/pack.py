"""Algorithm 2 and its kin: what an age weighs, and packing greedily, in an order, with prices.

With prices (`agewise.spectrum.packing.Auction` explains them) a UE takes its fewest subchannels, as
in Algorithm 2, but of the sets of that size that reach the rate it takes a cheap one: members are
exchanged for the cheapest free subchannels as long as the rate is still reached. Nothing depends on
the numbering of UEs or subchannels: sums run in an order that is given, and equal prices are told
apart by gains.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import exp, expm1, log1p, power
from agewise.core.jit import inlined, kernel, njit
from agewise.core.proof import owners_gains
from agewise.core.waterfill import (
    add,
    excess_of,
    fewest_best,
    fill_scratch,
    gets_power,
    is_usable,
    least_need,
    link_of,
    nats_of,
    start,
    waterfill_owners,
    write_powers,
)

#: Forms of f_alpha.
PAPER, CONTINUOUS = range(2)
#: Scores that differ by less than this, relatively, are equal: 2 sqrt(27) / 3 and 2 sqrt(3) / 1
#: are the same number, but not the same float.
SCORE_ROUNDING = 1e-12
#: The score of a UE that is out of the round; others have none below 0.
OUT = -np.inf
#: The largest step of a price's logarithm, in the first round; later ones shrink.
_STEP = 0.3
#: Claims beyond this many raise a price no faster.
_MOST_CLAIMS = 3


@kernel
def weigh_ages(ages, exponent, form, weights):
    """Fill ``weights`` with f_alpha of the ages (Eq. 4); the lowest and highest age.

    ``exponent = 1 - alpha``. The weights mean nothing where the lowest age is below 0 or not a
    number.
    """
    lowest, highest = np.inf, 0.0
    for i in range(ages.size):
        x = np.float64(ages[i])
        lowest = x if not x >= lowest else lowest
        highest = max(highest, x)
        if exponent == 0.0:
            weights[i] = log1p(x)
        elif form == CONTINUOUS:
            weights[i] = expm1(exponent * log1p(x)) / exponent
        elif exponent == 0.5:  # alpha = 1/2, as in most presets: a root is exact and fast
            weights[i] = math.sqrt(x) / exponent
        elif exponent == 1.0:
            weights[i] = x
        else:
            weights[i] = power(x, exponent) / exponent
    return lowest, highest


# ------------------------------------------------------------------------------------- greedily
class _Grants(NamedTuple):
    """Owner (-1 is nobody), power and owner's gain of each subchannel."""

    owner: NDArray[np.int64]
    power: NDArray[np.float64]
    gain: NDArray[np.float64]


class _Tournament(NamedTuple):
    """A knock-out among the UEs for the highest score.

    ``tree[match]`` won over those below it, and ``tree[1]`` over all; the UEs themselves stand in
    the second half of the tree. ``need[ue]`` is the last known need.
    """

    tree: NDArray[np.int64]
    score: NDArray[np.float64]
    need: NDArray[np.int64]


@njit
def make_grants(subchannels):
    """Grants of nothing to nobody."""
    return _Grants(np.full(subchannels, -1, np.int64), np.zeros(subchannels), np.zeros(subchannels))


@njit
def _make_tournament(ues):
    """Room for a knock-out among this number of UEs."""
    return _Tournament(np.empty(2 * ues, np.int64), np.empty(ues), np.empty(ues, np.int64))


@njit
def _still_free(free, owner):
    """The subchannels of ``free`` without an owner, moved to its front: sets are disjoint (3e)."""
    left = 0
    for channel in free:
        free[left] = channel
        left += owner[channel] < 0
    return free[:left]


@njit
def grant(ue, gains, filling, scratch, free, grants):
    """Give ``ue`` the subchannels that `fewest_best` chose; returns those that stay free."""
    owner, power, gain = grants
    chosen = scratch.chosen
    write_powers(filling, chosen, scratch.excess, power)
    for i in range(filling.size):
        owner[chosen[i]], gain[chosen[i]] = ue, gains[chosen[i]]
    return _still_free(free, owner)


@njit
def _winner(a, b, score, need, rank):
    """Which of two UEs goes first: higher score, then fewer subchannels, then tie rank, index.

    Scores are compared up to their rounding, since the last bit of a quotient says nothing.
    Without a branch: who wins is a toss-up to the processor, and a wrong guess of it takes
    longer than all the comparisons.
    """
    more = score[a] * (1.0 - SCORE_ROUNDING) > score[b]
    equal = (not more) & (score[b] * (1.0 - SCORE_ROUNDING) <= score[a])
    fewer, same = need[a] < need[b], need[a] == need[b]
    earlier, tied = rank[a] < rank[b], rank[a] == rank[b]
    first = more | (equal & (fewer | (same & (earlier | (tied & (a < b))))))
    return a if first else b


@njit
def _play_all(tournament, rank):
    """Play every match."""
    tree, score, need = tournament
    ues = score.size
    for ue in range(ues):
        tree[ues + ue] = ue
    for match in range(ues - 1, 0, -1):
        tree[match] = _winner(tree[2 * match], tree[2 * match + 1], score, need, rank)


@njit
def _play_again(ue, tournament, rank):
    """Play the matches of ``ue`` again, after its score has changed."""
    tree, score, need = tournament
    match = (score.size + ue) >> 1
    while match > 0:
        tree[match] = _winner(tree[2 * match], tree[2 * match + 1], score, need, rank)
        match >>= 1


@kernel
def pack_lazily(gains, best_gains, weights, rank, power_budget, rate_threshold):
    """Algorithm 2 without the recomputation: owner, power and gain of every subchannel.

    Picks the UE with the highest f / |C| (Eq. 8) again and again. As subchannels go, needs only
    grow and scores only fall. A UE's last known need (at first a bound from its best gain)
    therefore never understates its place, and only the UE that comes to the top has to be worked
    out anew.
    """
    ues, subchannels = gains.shape
    grants = make_grants(subchannels)
    if ues == 0 or subchannels == 0:
        return grants.owner, grants.power, grants.gain
    tournament, fill, free = (
        _make_tournament(ues),
        fill_scratch(subchannels),
        np.arange(subchannels),
    )
    tree, score, need = tournament
    for ue in range(ues):
        link = link_of(ue, power_budget, rate_threshold)
        # Eq. 8 with a lower bound in the place of |C|: no UE really stands higher than here.
        need[ue] = least_need(best_gains[ue], link, subchannels)
        score[ue] = weights[ue] / need[ue] if need[ue] > 0 else OUT
    _play_all(tournament, rank)
    while free.size > 0 and score[tree[1]] != OUT:
        ue = tree[1]
        size = 0
        # Algorithm 1 on what is still free; more than that it cannot get.
        if need[ue] <= free.size:
            link = link_of(ue, power_budget, rate_threshold)
            filling = fewest_best(gains[ue], link, free, fill)
            size = filling.size
        if size > 0:
            if size != need[ue]:
                need[ue] = size
                score[ue] = weights[ue] / size
                _play_again(ue, tournament, rank)
                # Its true score let somebody else pass, whose score may be a bound as well.
                if tree[1] != ue:
                    continue
            free = grant(ue, gains[ue], filling, fill, free, grants)
        score[ue] = OUT  # served, or out of reach for the rest of the round
        _play_again(ue, tournament, rank)
    return grants.owner, grants.power, grants.gain


@kernel
def fill_in_order(gains, best_gains, order, power_budget, rate_threshold):
    """Serve the UEs in ``order``, each with its fewest best free subchannels, as far as they go."""
    subchannels = gains.shape[1]
    grants = make_grants(subchannels)
    if subchannels > 0:
        scratch, free = fill_scratch(subchannels), np.arange(subchannels)
        for ue in order:
            link = link_of(ue, power_budget, rate_threshold)
            bound = least_need(best_gains[ue], link, subchannels)
            if bound == 0 or bound > free.size:
                continue  # without a look at its gains
            filling = fewest_best(gains[ue], link, free, scratch)
            if filling.size > 0:
                free = grant(ue, gains[ue], filling, scratch, free, grants)
            if free.size == 0:
                break
    return grants.owner, grants.power, grants.gain


# ---------------------------------------------------------------------------------- with prices
class Bidders(NamedTuple):
    """Weight and tie rank of each UE, the UEs in falling order of weight, what each may and must.

    Equal weights are in an order that does not depend on the numbering.
    """

    weights: NDArray[np.float64]
    rank: NDArray[np.int64]
    order: NDArray[np.int64]
    power_budget: NDArray[np.float64]
    rate_threshold: NDArray[np.float64]


class _BestSets(NamedTuple):
    """The fewest best subchannels of each UE if it had all to choose from.

    UE k has ``members[k, :need[k]]``; a need of 0 is of a UE out of reach.
    """

    need: NDArray[np.int64]
    members: NDArray[np.int64]


@njit
def _best_sets(gains, power_budget, rate_threshold, fill):
    """Algorithm 1 for every UE with all subchannels free."""
    ues, subchannels = gains.shape
    free, need = np.arange(subchannels), np.zeros(ues, np.int64)
    members = np.empty((ues, subchannels), np.int64)
    for ue in range(ues):
        link = link_of(ue, power_budget, rate_threshold)
        need[ue] = fewest_best(gains[ue], link, free, fill).size
        for i in range(need[ue]):
            members[ue, i] = fill.chosen[i]
    return _BestSets(need, members)


@inlined
def _reaches(gains, members, power_budget, target, sorted_gains):
    """Whether the members, all with power, carry the target."""
    count = members.size
    for i in range(count):
        gain, at = gains[members[i]], i
        while at > 0 and sorted_gains[at - 1] < gain:
            sorted_gains[at] = sorted_gains[at - 1]
            at -= 1
        sorted_gains[at] = gain
    if not is_usable(sorted_gains[count - 1], power_budget):
        return False
    filling = start(sorted_gains[0], power_budget)
    for i in range(1, count):
        excess = excess_of(filling, sorted_gains[i])
        if not gets_power(filling, excess):
            return False
        filling = add(filling, excess)
    return nats_of(filling) >= target


@inlined
def _is_cheaper(a, b, price, gains):
    """Whether subchannel ``a`` comes before ``b``: the lower price, then the lower gain."""
    return price[a] < price[b] or (price[a] == price[b] and gains[a] < gains[b])


@inlined
def _list_others(gains, chosen, power_budget, free, price, others):
    """List the usable free subchannels that are not ``chosen``, cheapest first; how many."""
    count = 0
    for channel in free:
        available = is_usable(gains[channel], power_budget)
        for i in range(chosen.size):
            available &= chosen[i] != channel
        if available:
            at = count
            while at > 0 and _is_cheaper(channel, others[at - 1], price, gains):
                others[at] = others[at - 1]
                at -= 1
            others[at] = channel
            count += 1
    return count


@njit
def _exchange(chosen, gains, link, free, price, others, sorted_gains):
    """Exchange members of the set ``chosen`` by `fewest_best` for cheaper free subchannels.

    The dearest member first, each for the cheapest that still reaches the target.
    """
    # By insertion: sets have few members.
    for i in range(1, chosen.size):  # the dearest first
        member, at = chosen[i], i
        while at > 0 and _is_cheaper(chosen[at - 1], member, price, gains):
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = member
    power_budget, target = link
    count = _list_others(gains, chosen, power_budget, free, price, others)
    for i in range(chosen.size):
        member = chosen[i]
        for at in range(count):
            if others[at] < 0:
                continue
            # Those that follow are no cheaper.
            if not price[others[at]] < price[member]:
                break
            chosen[i] = others[at]
            # A set of the same size that still carries the target (3b) at a lower price.
            if _reaches(gains, chosen, power_budget, target, sorted_gains):
                others[at] = -1
                break
            chosen[i] = member


@njit
def _pack_at_prices(gains, bidders, sets, exponent, price, scratch, owner):
    """Algorithm 2 by ``weight / need^exponent`` with cheap sets; returns the weight scheduled."""
    weights, rank, _, power_budget, rate_threshold = bidders
    tournament, fill, free, others, sorted_gains, divisor = scratch
    tree, score, need = tournament
    for channel in range(owner.size):
        free[channel], owner[channel] = channel, -1
    # Powers of whole numbers, once for all UEs.
    for size in range(1, divisor.size):
        divisor[size] = power(size, exponent)
    for ue in range(weights.size):
        need[ue] = sets.need[ue]
        score[ue] = weights[ue] / divisor[need[ue]] if need[ue] > 0 else OUT
    _play_all(tournament, rank)
    packed = 0.0
    while free.size > 0 and score[tree[1]] != OUT:
        ue = tree[1]
        now, link = 0, link_of(ue, power_budget, rate_threshold)
        if need[ue] <= free.size:
            now = fewest_best(gains[ue], link, free, fill).size
        if now > 0:
            if now != need[ue]:
                need[ue] = now
                score[ue] = weights[ue] / divisor[now]
                _play_again(ue, tournament, rank)
                if tree[1] != ue:
                    continue
            chosen = fill.chosen[:now]
            _exchange(chosen, gains[ue], link, free, price, others, sorted_gains)
            # Power is water-filled at the end, for the best of all packings alone.
            for channel in chosen:
                owner[channel] = ue
            free = _still_free(free, owner)
            packed += weights[ue]
        score[ue] = OUT
        _play_again(ue, tournament, rank)
    return packed


@njit
def _asked_prices(bidders, sets, subchannels):
    """``price[subchannel]``: the weight per subchannel needed of those who want it most."""
    price = np.zeros(subchannels)
    for ue in bidders.order:
        need = sets.need[ue]
        for channel in sets.members[ue, :need]:
            # What a UE can pay at most for each of its subchannels.
            price[channel] += bidders.weights[ue] / need
    return price


@inlined
def _cost_of(chosen, price, sorted_prices):
    """The price of a set, summed in rising order, whatever the numbering."""
    for i in range(chosen.size):
        one, at = price[chosen[i]], i
        while at > 0 and sorted_prices[at - 1] > one:
            sorted_prices[at] = sorted_prices[at - 1]
            at -= 1
        sorted_prices[at] = one
    cost = 0.0
    for i in range(chosen.size):
        cost += sorted_prices[i]
    return cost


@njit
def _adjust_prices(gains, bidders, sets, price, step, scratch):
    """Raise the prices of subchannels that several UEs would buy, lower those that nobody would.

    A UE buys a cheap set if its weight is above the set's price.
    """
    weights = bidders.weights
    _, fill, free, others, sorted_values, _ = scratch
    claims = np.zeros(price.size, np.int64)
    for channel in range(price.size):
        free[channel] = channel
    for ue in bidders.order:
        need = sets.need[ue]
        if need == 0:
            continue
        chosen = fill.chosen[:need]
        for i in range(need):
            chosen[i] = sets.members[ue, i]
        link = link_of(ue, bidders.power_budget, bidders.rate_threshold)
        _exchange(chosen, gains[ue], link, free, price, others, sorted_values)
        if weights[ue] > _cost_of(chosen, price, sorted_values):
            for channel in chosen:
                claims[channel] += 1
    for channel in range(price.size):
        # One claim: the price is right. None: it falls. More: it rises, fastest at `_MOST_CLAIMS`.
        price[channel] *= exp(step * (min(claims[channel], _MOST_CLAIMS) - 1))


@kernel
def pack_by_auction(gains, bidders, exponents, rounds):
    """The heaviest of several packings for problem (3): owner, power and gain of every subchannel.

    At first the price of a subchannel is what is asked for it; then it follows the claims.
    """
    ues, subchannels = gains.shape
    best_owner = np.full(subchannels, -1, np.int64)
    if ues > 0 and subchannels > 0:
        tournament, fill = _make_tournament(ues), fill_scratch(subchannels)
        free, others = np.empty(subchannels, np.int64), np.empty(subchannels, np.int64)
        sorted_values, divisor = np.empty(subchannels), np.empty(subchannels + 1)
        scratch = tournament, fill, free, others, sorted_values, divisor
        sets = _best_sets(gains, bidders.power_budget, bidders.rate_threshold, fill)
        price = _asked_prices(bidders, sets, subchannels)
        owner, best = np.empty(subchannels, np.int64), -1.0
        for turn in range(rounds + 1):
            for exponent in exponents:
                packed = _pack_at_prices(gains, bidders, sets, exponent, price, scratch, owner)
                if packed > best * (1.0 + SCORE_ROUNDING):
                    best = packed
                    best_owner[:] = owner
            if best <= 0.0:
                break  # all weights are 0: nothing to bid for
            if turn == 0:
                # Between what is asked and all alike, in units in which they cost what was packed.
                total = np.sort(price).sum()
                price = (price / total + 1.0 / subchannels) * (0.5 * best)
            if turn < rounds:
                # Smaller and smaller steps, as for subgradients of the dual of problem (3).
                step = _STEP / (1.0 + 0.5 * turn)
                _adjust_prices(gains, bidders, sets, price, step, scratch)
    powers = waterfill_owners(gains, bidders.power_budget, best_owner)
    return best_owner, powers, owners_gains(gains, best_owner)
