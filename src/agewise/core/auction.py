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
from agewise.core.pack import OUT, Tournament, make_tournament, play_again, play_all
from agewise.core.proof import owners_gains
from agewise.core.waterfill import (
    FillScratch,
    Link,
    add,
    excess_of,
    fewest_best,
    fill_scratch,
    gets_power,
    is_usable,
    least_need,
    least_snrs,
    nats_of,
    start,
    target_nats,
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


class Links(NamedTuple):
    """The `Link` of every UE: targets and `least_snrs` have a row each, or one for all."""

    power_budget: float
    targets: NDArray[np.float64]
    least_snrs: NDArray[np.float64]


class AuctionScratch(NamedTuple):
    """Working arrays: of packing, then of exchanging members of a set."""

    tournament: Tournament
    fill: FillScratch
    others: NDArray[np.int64]
    sorted_gains: NDArray[np.float64]


@njit
def make_links(power_budget, rates, subchannels):
    """The links of UEs that must reach these rates, one each or one for all."""
    targets, least = np.empty(rates.size), np.empty((rates.size, subchannels))
    for row in range(rates.size):
        targets[row] = target_nats(rates[row])
        least[row] = least_snrs(targets[row], subchannels)
    return Links(power_budget, targets, least)


@inlined
def link_of(ue, links):
    """The link of one UE."""
    row = ue if links.targets.size > 1 else 0
    return Link(links.power_budget, links.targets[row], links.least_snrs[row])


@inlined
def reaches(gains, members, power_budget, target, sorted_gains):
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
def is_cheaper(a, b, price, gains):
    """Whether subchannel ``a`` comes before ``b``: the lower price, then the lower gain."""
    return price[a] < price[b] or (price[a] == price[b] and gains[a] < gains[b])


@inlined
def list_others(gains, chosen, power_budget, free, price, others):
    """List the usable free subchannels that are not ``chosen``, cheapest first; how many."""
    count = 0
    for channel in free:
        available = is_usable(gains[channel], power_budget)
        for i in range(chosen.size):
            available &= chosen[i] != channel
        if available:
            at = count
            while at > 0 and is_cheaper(channel, others[at - 1], price, gains):
                others[at] = others[at - 1]
                at -= 1
            others[at] = channel
            count += 1
    return count


@njit
def exchange(chosen, gains, link, free, price, others, sorted_gains):
    """Exchange members of the set that `fewest_best` chose for cheaper free subchannels.

    The dearest member first, each for the cheapest that still reaches the target.
    """
    for i in range(1, chosen.size):  # the dearest first
        member, at = chosen[i], i
        while at > 0 and is_cheaper(chosen[at - 1], member, price, gains):
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = member
    power_budget, target, _ = link
    count = list_others(gains, chosen, power_budget, free, price, others)
    for i in range(chosen.size):
        member = chosen[i]
        for at in range(count):
            if others[at] < 0:
                continue
            if not price[others[at]] < price[member]:
                break
            chosen[i] = others[at]
            if reaches(gains, chosen, power_budget, target, sorted_gains):
                others[at] = -1
                break
            chosen[i] = member


@njit
def pack_at_prices(gains, best_gains, bidders, links, exponent, price, scratch, owner):
    """Algorithm 2 by ``weight / need^exponent`` with cheap sets; returns the weight scheduled."""
    weights, rank, _ = bidders
    tournament, fill, others, sorted_gains = scratch
    tree, score, need = tournament
    free = np.arange(owner.size)
    owner[:] = -1
    for ue in range(best_gains.size):
        least = link_of(ue, links).least_snrs
        need[ue] = least_need(best_gains[ue] * links.power_budget, least)
        score[ue] = weights[ue] / power(need[ue], exponent) if need[ue] > 0 else OUT
    play_all(tournament, rank)
    packed = 0.0
    while free.size > 0 and score[tree[1]] != OUT:
        ue = tree[1]
        link = link_of(ue, links)
        now = 0
        if need[ue] <= free.size:
            now = fewest_best(gains[ue], link, free, fill).size
        if now > 0:
            if now != need[ue]:
                need[ue] = now
                score[ue] = weights[ue] / power(now, exponent)
                play_again(ue, tournament, rank)
                if tree[1] != ue:
                    continue
            members = fill.chosen[:now]
            exchange(members, gains[ue], link, free, price, others, sorted_gains)
            for i in range(now):
                owner[members[i]] = ue
            free = free[owner[free] < 0]
            packed += weights[ue]
        score[ue] = OUT
        play_again(ue, tournament, rank)
    return packed


@njit
def asked_prices(gains, bidders, links, scratch):
    """``price[subchannel]``: the weight per subchannel needed of those who want it most."""
    free = np.arange(gains.shape[1])
    price = np.zeros(free.size)
    for ue in bidders.order:
        need = fewest_best(gains[ue], link_of(ue, links), free, scratch.fill).size
        for channel in scratch.fill.chosen[:need]:
            price[channel] += bidders.weights[ue] / need
    return price


@njit
def adjust_prices(gains, bidders, links, price, step, scratch):
    """Raise the prices of subchannels that several UEs would buy, lower those that nobody would.

    A UE buys a cheap set if its weight is above the set's price.
    """
    weights, _, order = bidders
    _, fill, others, sorted_gains = scratch
    free = np.arange(price.size)
    claims = np.zeros(price.size, np.int64)
    for ue in order:
        link = link_of(ue, links)
        need = fewest_best(gains[ue], link, free, fill).size
        if need == 0:
            continue
        members = fill.chosen[:need]
        exchange(members, gains[ue], link, free, price, others, sorted_gains)
        # Summed in rising order, whatever the numbering.
        if weights[ue] > np.sort(price[members]).sum():
            for i in range(need):
                claims[members[i]] += 1
    for channel in range(price.size):
        price[channel] *= exp(step * (min(claims[channel], _MOST_CLAIMS) - 1))


@njit
def best_owners(gains, best_gains, bidders, links, exponents, rounds):
    """The heaviest of the packings: ``owner[subchannel]``.

    At first the price of a subchannel is what is asked for it; then it follows the claims.
    """
    ues, subchannels = gains.shape
    scratch = AuctionScratch(
        make_tournament(ues),
        fill_scratch(subchannels),
        np.empty(subchannels, np.int64),
        np.empty(subchannels),
    )
    price = asked_prices(gains, bidders, links, scratch)
    owner, best_owner = np.empty(subchannels, np.int64), np.empty(subchannels, np.int64)
    best = -1.0
    for turn in range(rounds + 1):
        for exponent in exponents:
            packed = pack_at_prices(
                gains, best_gains, bidders, links, exponent, price, scratch, owner
            )
            if packed > best * (1.0 + 1e-12):
                best = packed
                best_owner[:] = owner
        if best <= 0.0:
            break  # all weights are 0: nothing to bid for
        if turn == 0:
            # Between what is asked and all alike, in units in which they cost what was packed.
            total = np.sort(price).sum()
            price = (price / total + 1.0 / subchannels) * (0.5 * best)
        if turn < rounds:
            step = _STEP / (1.0 + 0.5 * turn)
            adjust_prices(gains, bidders, links, price, step, scratch)
    return best_owner


@kernel
def pack_by_auction(gains, best_gains, bidders, power_budget, rates, exponents, rounds):
    """The best of several packings: owner, power and gain of every subchannel.

    ``rates`` are what the UEs must reach, one each or one for all.
    """
    ues, subchannels = gains.shape
    owner = np.full(subchannels, -1, np.int64)
    if ues > 0 and subchannels > 0:
        links = make_links(power_budget, rates, subchannels)
        owner = best_owners(gains, best_gains, bidders, links, exponents, rounds)
    return owner, waterfill_owners(gains, power_budget, owner), owners_gains(gains, owner)
