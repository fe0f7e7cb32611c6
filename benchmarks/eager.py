"""Algorithm 2 compiled as it is printed: every candidate is worked out again after each pick."""

import numpy as np
from numba import njit

from agewise.spectrum.kernels import fewest_best, grant, scratch, target_nats


@njit
def pack_eagerly(gains, weights, rank, power_budget, rate_threshold):
    """Owner, power and gain of every subchannel; the same arguments as ``kernels.pack_lazily``."""
    ues, subchannels = gains.shape
    owner = np.full(subchannels, -1, np.int64)
    power, gain = np.zeros(subchannels), np.zeros(subchannels)
    if subchannels == 0:
        return owner, power, gain
    target = target_nats(rate_threshold)
    no_bound = np.zeros(subchannels)  # Algorithm 1 tries every size from one subchannel on
    work = scratch(subchannels)
    free = np.arange(subchannels)
    served = np.zeros(ues, np.bool_)
    while free.size > 0:
        winner, winner_need, winner_score = -1, 0, -1.0
        for ue in range(ues):
            if served[ue]:
                continue
            need = fewest_best(gains[ue], power_budget, target, no_bound, free, work)
            if need == 0:
                continue
            score = weights[ue] / need
            if (
                score > winner_score
                or (score == winner_score and need < winner_need)
                or (score == winner_score and need == winner_need and rank[ue] < rank[winner])
            ):
                winner, winner_need, winner_score = ue, need, score
        if winner < 0:
            break
        need = fewest_best(gains[winner], power_budget, target, no_bound, free, work)
        free = grant(winner, need, gains[winner], power_budget, work, free, owner, power, gain)
        served[winner] = True
    return owner, power, gain
