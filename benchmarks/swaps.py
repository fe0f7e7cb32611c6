"""Greedy packing by ``weight / need^exponent``, and local search by taking UEs out again."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from agewise.core.waterfill import fewest_best, fill_scratch, link_of, waterfill_owners
from agewise.spectrum import Allocation, Uplink


def pack_with_swaps(
    uplink: Uplink,
    weights: NDArray[np.float64],
    rank: NDArray[np.int64],
    *,
    exponent: float = 1.0,
    out: int = 0,
) -> Allocation:
    """Take ``out`` UEs (0, 1 or 2) out, pack others first, and keep what weighs more."""
    owner = _search(
        uplink.gains, weights, rank, uplink.power_budget, uplink.rate_threshold, exponent, out
    )
    power = waterfill_owners(uplink.gains, uplink.power_budget, owner)
    return Allocation.of(uplink, owner, power)


@njit
def _pack(gains, weights, rank, links, allowed, owner, exponent):
    """Pack the allowed UEs on the subchannels without an owner; returns their weight."""
    scratch = fill_scratch(owner.size)
    waiting = allowed.copy()
    packed = 0.0
    while True:
        free = np.flatnonzero(owner < 0)
        best, best_score, best_need = -1, -1.0, 0
        for ue in np.flatnonzero(waiting):
            need = fewest_best(gains[ue], link_of(ue, *links), free, scratch).size
            if need == 0:
                waiting[ue] = False
                continue
            score = weights[ue] / need**exponent
            if score > best_score or (
                score == best_score
                and (need < best_need or (need == best_need and rank[ue] < rank[best]))
            ):
                best, best_score, best_need = ue, score, need
        if best < 0:
            return packed
        need = fewest_best(gains[best], link_of(best, *links), free, scratch).size
        for i in range(need):
            owner[scratch.chosen[i]] = best
        waiting[best] = False
        packed += weights[best]


@njit
def _search(gains, weights, rank, power_budget, rate_threshold, exponent, out):
    ues, subchannels = gains.shape
    links = power_budget, rate_threshold
    owner = np.full(subchannels, -1)
    _pack(gains, weights, rank, links, np.ones(ues) > 0, owner, exponent)
    improved = out > 0
    while improved:
        improved = False
        served = np.unique(owner[owner >= 0])
        for a in range(served.size):
            for b in range(a, served.size if out == 2 else a + 1):
                trial = owner.copy()
                removed = np.zeros(ues) > 0
                removed[served[a]] = removed[served[b]] = True
                waiting = np.ones(ues) > 0
                for channel in range(subchannels):
                    if owner[channel] >= 0:
                        waiting[owner[channel]] = False
                        if removed[owner[channel]]:
                            trial[channel] = -1
                gained = 0.0
                for allowed in (waiting, removed):
                    gained += _pack(gains, weights, rank, links, allowed, trial, exponent)
                if gained > weights[removed].sum() * (1 + 1e-12):
                    owner, improved = trial, True
                    break
            if improved:
                break
    return owner
