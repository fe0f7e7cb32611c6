"""Algorithm 2: what an age weighs, greedy packing by weight per need, packing in a given order."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import expm1, log1p
from agewise.core.elementary import power as to_power
from agewise.core.jit import kernel, njit
from agewise.core.waterfill import (
    fewest_best,
    fill_scratch,
    least_need,
    make_link,
    write_powers,
)

#: Forms of f_alpha.
PAPER, CONTINUOUS = range(2)
#: Scores that differ by less than this, relatively, are equal: 2 sqrt(27) / 3 and 2 sqrt(3) / 1
#: are the same number, but not the same float.
SCORE_ROUNDING = 1e-12
#: The score of a UE that is out of the round; others have none below 0.
OUT = -np.inf


class _Grants(NamedTuple):
    """Owner (-1 is nobody), power and owner's gain of each subchannel."""

    owner: NDArray[np.int64]
    power: NDArray[np.float64]
    gain: NDArray[np.float64]


class Tournament(NamedTuple):
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
def make_tournament(ues):
    """Room for a knock-out among this number of UEs."""
    return Tournament(np.empty(2 * ues, np.int64), np.empty(ues), np.empty(ues, np.int64))


@njit
def still_free(free, owner):
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
    return still_free(free, owner)


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
def play_all(tournament, rank):
    """Play every match."""
    tree, score, need = tournament
    ues = score.size
    for ue in range(ues):
        tree[ues + ue] = ue
    for match in range(ues - 1, 0, -1):
        tree[match] = _winner(tree[2 * match], tree[2 * match + 1], score, need, rank)


@njit
def play_again(ue, tournament, rank):
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
    link = make_link(power_budget, rate_threshold, subchannels)
    tournament, fill, free = make_tournament(ues), fill_scratch(subchannels), np.arange(subchannels)
    tree, score, need = tournament
    for ue in range(ues):
        need[ue] = least_need(best_gains[ue] * power_budget, link.least_snrs)
        score[ue] = weights[ue] / need[ue] if need[ue] > 0 else OUT
    play_all(tournament, rank)
    while free.size > 0 and score[tree[1]] != OUT:
        ue = tree[1]
        size = 0
        if need[ue] <= free.size:
            filling = fewest_best(gains[ue], link, free, fill)
            size = filling.size
        if size > 0:
            if size != need[ue]:
                need[ue] = size
                score[ue] = weights[ue] / size
                play_again(ue, tournament, rank)
                if tree[1] != ue:
                    continue
            free = grant(ue, gains[ue], filling, fill, free, grants)
        score[ue] = OUT  # served, or out of reach for the rest of the round
        play_again(ue, tournament, rank)
    return grants.owner, grants.power, grants.gain


@kernel
def fill_in_order(gains, best_gains, order, power_budget, rate_threshold):
    """Serve the UEs in ``order``, each with its fewest best free subchannels, as far as they go."""
    subchannels = gains.shape[1]
    grants = make_grants(subchannels)
    if subchannels > 0:
        link = make_link(power_budget, rate_threshold, subchannels)
        scratch, free = fill_scratch(subchannels), np.arange(subchannels)
        for ue in order:
            bound = least_need(best_gains[ue] * power_budget, link.least_snrs)
            if bound == 0 or bound > free.size:
                continue  # without a look at its gains
            filling = fewest_best(gains[ue], link, free, scratch)
            if filling.size > 0:
                free = grant(ue, gains[ue], filling, scratch, free, grants)
            if free.size == 0:
                break
    return grants.owner, grants.power, grants.gain


@kernel
def weigh_ages(ages, power, form, weights):
    """Fill ``weights`` with f_alpha of the ages (Eq. 3a); the lowest and highest age.

    ``power = 1 - alpha``. The weights mean nothing where the lowest age is below 0 or not a number.
    """
    lowest, highest = np.inf, 0.0
    for i in range(ages.size):
        x = np.float64(ages[i])
        lowest = x if not x >= lowest else lowest
        highest = max(highest, x)
        if power == 0.0:
            weights[i] = log1p(x)
        elif form == CONTINUOUS:
            weights[i] = expm1(power * log1p(x)) / power
        elif power == 0.5:
            weights[i] = math.sqrt(x) / power
        elif power == 1.0:
            weights[i] = x
        else:
            weights[i] = to_power(x, power) / power
    return lowest, highest
