"""Algorithm 2 compiled as it is printed: every candidate is worked out again after each pick."""

import numpy as np
from numba import njit

from agewise.core.pack import OUT, SCORE_ROUNDING, grant, make_grants
from agewise.core.waterfill import fewest_best, fill_scratch, link_of


@njit
def pack_eagerly(gains, weights, rank, power_budget, rate_threshold):
    """Owner, power and gain of every subchannel; the same arguments as ``pack_lazily``."""
    ues, subchannels = gains.shape
    grants = make_grants(subchannels)
    if subchannels == 0:
        return grants
    scratch = fill_scratch(subchannels)
    free = np.arange(subchannels)
    served = np.zeros(ues, np.bool_)
    while free.size > 0:
        winner, winner_need, winner_score = -1, 0, OUT
        for ue in range(ues):
            if served[ue]:
                continue
            link = link_of(ue, power_budget, rate_threshold)
            need = fewest_best(gains[ue], link, free, scratch).size
            if need == 0:
                continue
            score = weights[ue] / need
            more = score * (1.0 - SCORE_ROUNDING) > winner_score
            equal = not more and winner_score * (1.0 - SCORE_ROUNDING) <= score
            if (
                more
                or (equal and need < winner_need)
                or (equal and need == winner_need and rank[ue] < rank[winner])
            ):
                winner, winner_need, winner_score = ue, need, score
        if winner < 0:
            break
        link = link_of(winner, power_budget, rate_threshold)
        filling = fewest_best(gains[winner], link, free, scratch)
        free = grant(winner, gains[winner], filling, scratch, free, grants)
        served[winner] = True
    return grants
