"""Algorithm 2: greedy packing by weight per subchannel needed, and packing in a given order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.jit import kernel, njit
from agewise.core.waterfill import (
    FillScratch,
    fewest_best,
    fill_scratch,
    least_need,
    make_link,
    write_powers,
)

#: Scores that differ by less than this, relatively, are equal: 2 sqrt(27) / 3 and 2 sqrt(3) / 1
#: are the same number, but not the same float.
SCORE_ROUNDING = 1e-12
#: The score of a UE that is out of the round; others have none below 0.
OUT = -np.inf


class Grants(NamedTuple):
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


class PackScratch(NamedTuple):
    """Working arrays of `pack_into`."""

    tournament: Tournament
    free: NDArray[np.int64]
    fill: FillScratch


@njit
def make_grants(subchannels):
    """Grants of nothing to nobody."""
    return Grants(np.full(subchannels, -1, np.int64), np.zeros(subchannels), np.zeros(subchannels))


@njit
def make_tournament(ues):
    """Room for a knock-out among this number of UEs."""
    return Tournament(np.empty(2 * ues, np.int64), np.empty(ues), np.empty(ues, np.int64))


@njit
def pack_scratch(ues, subchannels):
    """Working arrays for a cell of this size."""
    return PackScratch(
        make_tournament(ues), np.empty(subchannels, np.int64), fill_scratch(subchannels)
    )


@njit
def grant(ue, gains, filling, scratch, free, grants):
    """Give ``ue`` the subchannels that `fewest_best` chose; returns those that stay free."""
    owner, power, gain = grants
    chosen = scratch.chosen
    write_powers(filling, chosen, scratch.excess, power)
    for i in range(filling.size):
        owner[chosen[i]], gain[chosen[i]] = ue, gains[chosen[i]]
    left = 0
    for channel in free:
        free[left] = channel
        left += owner[channel] < 0
    return free[:left]


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


@njit
def pack_into(gains, best_gains, weights, rank, link, scratch, grants):
    """Algorithm 2 without the recomputation, into arrays that the caller keeps.

    As subchannels go, needs only grow and scores only fall. A UE's last known need (at first a
    bound from its best gain) therefore never understates its place, and only the UE that comes
    to the top has to be worked out anew. There must be a UE and a subchannel.
    """
    tournament, free, fill = scratch
    tree, score, need = tournament
    owner, power, gain = grants
    for channel in range(free.size):
        owner[channel], power[channel], gain[channel] = -1, 0.0, 0.0
        free[channel] = channel
    power_budget, _, least = link
    for ue in range(best_gains.size):
        need[ue] = least_need(best_gains[ue] * power_budget, least)
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


@kernel
def pack_lazily(gains, best_gains, weights, rank, power_budget, rate_threshold):
    """Algorithm 2: owner, power and gain of every subchannel."""
    ues, subchannels = gains.shape
    grants = make_grants(subchannels)
    if ues > 0 and subchannels > 0:
        link = make_link(power_budget, rate_threshold, subchannels)
        scratch = pack_scratch(ues, subchannels)
        pack_into(gains, best_gains, weights, rank, link, scratch, grants)
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
