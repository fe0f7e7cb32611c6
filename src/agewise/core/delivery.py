"""What the uploads of a round amount to."""

import numpy as np

from agewise.core.jit import kernel
from agewise.core.proof import ROUNDING, rates_of


@kernel
def uploads_of(owner, power, gain, ues, rate_threshold, payload_bits):
    """Who uploads, in rising order, how many fall short, all channel uses, and numbers of each.

    The rows of the numbers are the rate, the rate at which it is sent (the threshold's where the
    rate falls short, so that an upload in vain takes the whole slot) and the power. Each subchannel
    of a UE is used as often as it takes to carry the payload at its rate.
    """
    rate = rates_of(owner, power, gain, ues)
    held, spent = np.zeros(ues, np.int64), np.zeros(ues)
    for n in range(owner.size):
        if owner[n] >= 0:
            held[owner[n]] += 1
            spent[owner[n]] += power[n]
    scheduled = np.flatnonzero(held)
    numbers = np.empty((3, scheduled.size))
    short, uses = 0, 0.0
    for i in range(scheduled.size):
        ue = scheduled[i]
        sent = rate[ue]
        if not sent >= rate_threshold * (1.0 - ROUNDING):
            sent = rate_threshold
            short += 1
        numbers[0, i] = rate[ue]
        numbers[1, i] = sent
        numbers[2, i] = spent[ue]
        if sent > 0.0:
            uses += held[ue] * (payload_bits / sent)
    return scheduled, short, uses, numbers
