"""Packing with prices: what `agewise.spectrum.auction` explains.

A UE takes its fewest subchannels, as in Algorithm 2, but of the sets of that size that reach the
rate it takes a cheap one: members are exchanged for the cheapest free subchannels as long as the
rate is still reached. Nothing depends on the numbering of UEs or subchannels: sums run in an
order that is given, and equal prices are told apart by gains.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import exp, power
from agewise.core.jit import inlined, kernel, njit
from agewise.core.pack import (
    OUT,
    SCORE_ROUNDING,
    Tournament,
    make_tournament,
    play_again,
    play_all,
    still_free,
)
from agewise.core.proof import owners_gains
from agewise.core.waterfill import (
    FillScratch,
    add,
    excess_of,
    fewest_best,
    fill_scratch,
    gets_power,
    is_usable,
    make_link,
    nats_of,
    start,
    waterfill_owners,
)

#: The largest step of a price's logarithm, in the first round; later ones shrink.
_STEP = 0.3
#: Claims beyond this many raise a price no faster.
_MOST_CLAIMS = 3


class Bidders(NamedTuple):
    """Weight and tie rank of each UE, and the UEs in falling order of weight.

    Equal weights are in an order that does not depend on the numbering.
    """

    weights: NDArray[np.float64]
    rank: NDArray[np.int64]
    order: NDArray[np.int64]


class _BestSets(NamedTuple):
    """The fewest best subchannels of each UE if it had all to choose from.

    UE k has ``members[first[k]:first[k] + need[k]]``; a need of 0 is of a UE out of reach.
    """

    need: NDArray[np.int64]
    first: NDArray[np.int64]
    members: NDArray[np.int64]


class _AuctionScratch(NamedTuple):
    """Working arrays: of packing, then of exchanging members of a set."""

    tournament: Tournament
    fill: FillScratch
    free: NDArray[np.int64]
    others: NDArray[np.int64]
    sorted_values: NDArray[np.float64]
    divisor: NDArray[np.float64]


@njit
def _auction_scratch(ues, subchannels):
    """Working arrays for a cell of this size."""
    return _AuctionScratch(
        make_tournament(ues),
        fill_scratch(subchannels),
        np.empty(subchannels, np.int64),
        np.empty(subchannels, np.int64),
        np.empty(subchannels),
        np.empty(subchannels + 1),
    )


@njit
def _best_sets(gains, link, fill):
    """Algorithm 1 for every UE with all subchannels free."""
    ues, subchannels = gains.shape
    free = np.arange(subchannels)
    need, first = np.zeros(ues, np.int64), np.zeros(ues, np.int64)
    members = np.empty(2 * ues + subchannels, np.int64)
    end = 0
    for ue in range(ues):
        need[ue], first[ue] = fewest_best(gains[ue], link, free, fill).size, end
        if end + need[ue] > members.size:
            longer = np.empty(2 * members.size, np.int64)
            longer[:end] = members[:end]
            members = longer
        for i in range(need[ue]):
            members[end + i] = fill.chosen[i]
        end += need[ue]
    return _BestSets(need, first, members)


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
    for i in range(1, chosen.size):  # the dearest first
        member, at = chosen[i], i
        while at > 0 and _is_cheaper(chosen[at - 1], member, price, gains):
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = member
    power_budget, target, _ = link
    count = _list_others(gains, chosen, power_budget, free, price, others)
    for i in range(chosen.size):
        member = chosen[i]
        for at in range(count):
            if others[at] < 0:
                continue
            if not price[others[at]] < price[member]:
                break
            chosen[i] = others[at]
            if _reaches(gains, chosen, power_budget, target, sorted_gains):
                others[at] = -1
                break
            chosen[i] = member


@njit
def _pack_at_prices(gains, bidders, link, sets, exponent, price, scratch, owner):
    """Algorithm 2 by ``weight / need^exponent`` with cheap sets; returns the weight scheduled."""
    weights, rank, _ = bidders
    tournament, fill, free, others, sorted_gains, divisor = scratch
    tree, score, need = tournament
    for channel in range(owner.size):
        free[channel], owner[channel] = channel, -1
    for size in range(1, divisor.size):
        divisor[size] = power(size, exponent)
    for ue in range(weights.size):
        need[ue] = sets.need[ue]
        score[ue] = weights[ue] / divisor[need[ue]] if need[ue] > 0 else OUT
    play_all(tournament, rank)
    packed = 0.0
    while free.size > 0 and score[tree[1]] != OUT:
        ue = tree[1]
        now = 0
        if need[ue] <= free.size:
            now = fewest_best(gains[ue], link, free, fill).size
        if now > 0:
            if now != need[ue]:
                need[ue] = now
                score[ue] = weights[ue] / divisor[now]
                play_again(ue, tournament, rank)
                if tree[1] != ue:
                    continue
            chosen = fill.chosen[:now]
            _exchange(chosen, gains[ue], link, free, price, others, sorted_gains)
            for channel in chosen:
                owner[channel] = ue
            free = still_free(free, owner)
            packed += weights[ue]
        score[ue] = OUT
        play_again(ue, tournament, rank)
    return packed


@njit
def _asked_prices(bidders, sets, subchannels):
    """``price[subchannel]``: the weight per subchannel needed of those who want it most."""
    price = np.zeros(subchannels)
    for ue in bidders.order:
        need, first = sets.need[ue], sets.first[ue]
        for channel in sets.members[first : first + need]:
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
def _adjust_prices(gains, bidders, link, sets, price, step, scratch):
    """Raise the prices of subchannels that several UEs would buy, lower those that nobody would.

    A UE buys a cheap set if its weight is above the set's price.
    """
    weights = bidders.weights
    _, fill, free, others, sorted_values, _ = scratch
    claims = np.zeros(price.size, np.int64)
    for channel in range(price.size):
        free[channel] = channel
    for ue in bidders.order:
        need, first = sets.need[ue], sets.first[ue]
        if need == 0:
            continue
        chosen = fill.chosen[:need]
        for i in range(need):
            chosen[i] = sets.members[first + i]
        _exchange(chosen, gains[ue], link, free, price, others, sorted_values)
        if weights[ue] > _cost_of(chosen, price, sorted_values):
            for channel in chosen:
                claims[channel] += 1
    for channel in range(price.size):
        price[channel] *= exp(step * (min(claims[channel], _MOST_CLAIMS) - 1))


@kernel
def pack_by_auction(gains, bidders, power_budget, rate_threshold, exponents, rounds):
    """The heaviest of several packings for problem (3): owner, power and gain of every subchannel.

    At first the price of a subchannel is what is asked for it; then it follows the claims.
    """
    ues, subchannels = gains.shape
    best_owner = np.full(subchannels, -1, np.int64)
    if ues > 0 and subchannels > 0:
        link = make_link(power_budget, rate_threshold, subchannels)
        scratch = _auction_scratch(ues, subchannels)
        sets = _best_sets(gains, link, scratch.fill)
        price = _asked_prices(bidders, sets, subchannels)
        owner, best = np.empty(subchannels, np.int64), -1.0
        for turn in range(rounds + 1):
            for exponent in exponents:
                packed = _pack_at_prices(
                    gains, bidders, link, sets, exponent, price, scratch, owner
                )
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
                _adjust_prices(gains, bidders, link, sets, price, step, scratch)
    power = waterfill_owners(gains, power_budget, best_owner)
    return best_owner, power, owners_gains(gains, best_owner)
