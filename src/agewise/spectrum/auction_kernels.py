"""Compiled kernels of packing with prices: what `agewise.spectrum.auction` explains.

A UE takes its fewest subchannels, as in Algorithm 2, but of the sets of that size that reach the
rate it takes a cheap one: members are exchanged for the cheapest free subchannels as long as the
rate is still reached. Nothing depends on the numbering of UEs or subchannels: sums run in an
order that is given, and equal prices are told apart by gains.

``targets`` (nats) and ``least`` (`least_snrs` of each) have a row per UE, or one for all.
"""

import numpy as np
from numba import njit

from agewise.compiled import compiled
from agewise.spectrum.kernels import (
    LEAST_SNR,
    OUT,
    fewest_best,
    least_need,
    least_snrs,
    play_again,
    play_all,
    scratch,
    target_nats,
)

#: The largest step of a price's logarithm, in the first round; later ones shrink.
STEP = 0.3
#: Claims beyond this many raise a price no faster.
MOST_CLAIMS = 3


@njit
def reaches(gains, members, count, power_budget, target, sorted_gains):
    """Whether ``count`` members, all with power, carry ``target`` nats."""
    for i in range(count):
        gain, at = gains[members[i]], i
        while at > 0 and sorted_gains[at - 1] < gain:
            sorted_gains[at] = sorted_gains[at - 1]
            at -= 1
        sorted_gains[at] = gain
    best_gain = sorted_gains[0]
    best = best_gain * power_budget
    if sorted_gains[count - 1] * power_budget < LEAST_SNR:
        return False
    excess_sum = log_sum = 0.0
    for n in range(2, count + 1):
        d = (best_gain - sorted_gains[n - 1]) / sorted_gains[n - 1]
        if not (n - 1) * d < best + excess_sum:
            return False
        excess_sum += d
        log_sum += np.log1p(d)
    return count * np.log1p((best + excess_sum) / count) - log_sum >= target


@njit
def cheaper(a, b, price, gains):
    """Whether subchannel ``a`` comes before ``b``: the lower price, then the lower gain."""
    return price[a] < price[b] or (price[a] == price[b] and gains[a] < gains[b])


@njit
def spare_costly(need, gains, power_budget, target, free, price, work, others, sorted_gains):
    """Exchange members of the set that `fewest_best` chose for cheaper free subchannels.

    The dearest member first, each for the cheapest that still reaches the target.
    """
    chosen = work[2]
    for i in range(1, need):  # the dearest first
        member, at = chosen[i], i
        while at > 0 and cheaper(chosen[at - 1], member, price, gains):
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = member
    count = 0
    for channel in free:
        inside = gains[channel] * power_budget < LEAST_SNR
        for i in range(need):
            inside |= chosen[i] == channel
        if not inside:
            at = count
            while at > 0 and cheaper(channel, others[at - 1], price, gains):
                others[at] = others[at - 1]
                at -= 1
            others[at] = channel
            count += 1
    for i in range(need):
        member = chosen[i]
        for at in range(count):
            if others[at] < 0:
                continue
            if not price[others[at]] < price[member]:
                break
            chosen[i] = others[at]
            if reaches(gains, chosen, need, power_budget, target, sorted_gains):
                others[at] = -1
                break
            chosen[i] = member


@njit
def row_of(ue, targets):
    """Which row of the targets is the UE's."""
    return ue if targets.size > 1 else 0


@njit
def pack_at_prices(
    gains, best_gains, weights, rank, power_budget, targets, least, exponent, price, room, owner
):
    """Algorithm 2 by ``weight / need^exponent`` with cheap sets; returns the weight scheduled."""
    need, score, tree, work, others, sorted_gains = room
    free = np.arange(owner.size)
    owner[:] = -1
    for ue in range(best_gains.size):
        need[ue] = least_need(best_gains[ue] * power_budget, least[row_of(ue, targets)])
        score[ue] = weights[ue] / need[ue] ** exponent if need[ue] > 0 else OUT
    play_all(tree, score, need, rank)
    packed = 0.0
    while free.size > 0 and score[tree[1]] != OUT:
        ue = tree[1]
        row = row_of(ue, targets)
        now = 0
        if need[ue] <= free.size:
            now = fewest_best(gains[ue], power_budget, targets[row], least[row], free, work)
        if now > 0:
            if now != need[ue]:
                need[ue] = now
                score[ue] = weights[ue] / now**exponent
                play_again(ue, tree, score, need, rank)
                if tree[1] != ue:
                    continue
            spare_costly(
                now, gains[ue], power_budget, targets[row], free, price, work, others, sorted_gains
            )
            for i in range(now):
                owner[work[2][i]] = ue
            free = free[owner[free] < 0]
            packed += weights[ue]
        score[ue] = OUT
        play_again(ue, tree, score, need, rank)
    return packed


@njit
def demand(gains, order, weights, power_budget, targets, least, work, wanted):
    """``wanted[subchannel]``: the weight per subchannel needed of those who want it most."""
    free = np.arange(wanted.size)
    wanted[:] = 0.0
    for ue in order:
        row = row_of(ue, targets)
        need = fewest_best(gains[ue], power_budget, targets[row], least[row], free, work)
        for i in range(need):
            wanted[work[2][i]] += weights[ue] / need


@njit
def adjust(
    gains, order, weights, power_budget, targets, least, price, step, work, others, sorted_gains
):
    """Raise the prices of subchannels that several UEs would buy, lower those that nobody would.

    A UE buys a cheap set if its weight is above the set's price.
    """
    free = np.arange(price.size)
    claims = np.zeros(price.size, np.int64)
    for ue in order:
        row = row_of(ue, targets)
        need = fewest_best(gains[ue], power_budget, targets[row], least[row], free, work)
        if need == 0:
            continue
        spare_costly(
            need, gains[ue], power_budget, targets[row], free, price, work, others, sorted_gains
        )
        # From the dearest down, whatever the numbering: the members stand in that order, but
        # for those that were exchanged.
        cost = np.sort(price[work[2][:need]]).sum()
        if weights[ue] > cost:
            for i in range(need):
                claims[work[2][i]] += 1
    for channel in range(price.size):
        price[channel] *= np.exp(step * (min(claims[channel], MOST_CLAIMS) - 1))


@njit
def water_fill(gains, power_budget, owner, power, gain):
    """The powers of the owners on their subchannels; every one of these carries some."""
    for first in range(owner.size):
        ue = owner[first]
        if ue < 0 or power[first] > 0.0:
            continue
        held = np.flatnonzero(owner == ue)
        best_gain = gains[ue][held].max()
        excess = np.sort((best_gain - gains[ue][held]) / gains[ue][held])
        level = (best_gain * power_budget + excess.sum()) / held.size
        for channel in held:
            gain[channel] = gains[ue, channel]
            power[channel] = (level - (best_gain - gain[channel]) / gain[channel]) / best_gain


@compiled()
def pack_by_auction(
    gains, best_gains, weights, rank, order, power_budget, rates, exponents, rounds
):
    """The best of several packings: owner, power and gain of every subchannel.

    ``rates`` are what the UEs must reach, one each or one for all, and ``order`` is that of the
    weights, equal ones in an order that does not depend on the numbering. At first the price of a
    subchannel is what is asked for it; then it follows the claims.
    """
    ues, subchannels = gains.shape
    best_owner = np.full(subchannels, -1, np.int64)
    power, gain = np.zeros(subchannels), np.zeros(subchannels)
    if ues == 0 or subchannels == 0:
        return best_owner, power, gain
    targets, least = np.empty(rates.size), np.empty((rates.size, subchannels))
    for row in range(rates.size):
        targets[row] = target_nats(rates[row])
        least[row] = least_snrs(targets[row], subchannels)
    work, others, sorted_gains = (
        scratch(subchannels),
        np.empty(subchannels, np.int64),
        np.empty(subchannels),
    )
    room = (
        np.empty(ues, np.int64), np.empty(ues), np.empty(2 * ues, np.int64),
        work, others, sorted_gains,
    )  # fmt: skip
    price = np.empty(subchannels)
    demand(gains, order, weights, power_budget, targets, least, work, price)
    owner = np.empty(subchannels, np.int64)
    best = -1.0
    for turn in range(rounds + 1):
        for exponent in exponents:
            packed = pack_at_prices(
                gains, best_gains, weights, rank, power_budget, targets, least, exponent, price,
                room, owner,
            )  # fmt: skip
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
            step = STEP / (1.0 + 0.5 * turn)
            adjust(
                gains, order, weights, power_budget, targets, least, price, step, work, others,
                sorted_gains,
            )  # fmt: skip
    water_fill(gains, power_budget, best_owner, power, gain)
    return best_owner, power, gain
