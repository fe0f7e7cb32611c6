"""Checks of what comes in, the proof of what goes out, and what the uploads amount to."""

import numpy as np

from agewise.core.elementary import NATS_PER_BIT, log1p
from agewise.core.jit import kernel

_INFINITY_BITS = np.float64(np.inf).view(np.uint64)
#: Relative rounding allowed when constraints are proven from the powers alone.
ROUNDING = 1e-9
#: What an update may take of its deadline: an upload at exactly the threshold is in time.
IN_TIME = 1.0 + 2.0 * ROUNDING
#: What `first_violation` found.
SOUND, UNKNOWN_OWNER, BAD_POWER, NO_OWNER, OVER_BUDGET, BELOW_THRESHOLD = range(6)


@kernel
def best_gains(gains, power_budget, rate_threshold):
    """The best gain of each UE and the best SNR of all, which is NaN unless all input is valid.

    That of a UE with an infinite threshold is 0; the last answer is whether there is one.
    Non-negative doubles order like their bit patterns, and everything else (negative, also
    negative zero, infinite, not a number) has a larger one than the largest double. One integer
    maximum thus gives both the best gain and the proof that all are valid.
    """
    bits = gains.view(np.uint64)
    best = np.empty(gains.shape[0], np.uint64)
    values, largest = best.view(np.float64), np.uint64(0)
    best_snr, valid, unreachable = 0.0, True, False
    for ue in range(bits.shape[0]):
        row_best = np.uint64(0)
        for subchannel in range(bits.shape[1]):
            row_best = max(row_best, bits[ue, subchannel])
        best[ue] = row_best
        largest = max(largest, row_best)
        if rate_threshold[ue] == np.inf:
            values[ue], unreachable = 0.0, True
        best_snr = max(best_snr, values[ue] * power_budget[ue])
        valid &= (0.0 < power_budget[ue] < np.inf) & (rate_threshold[ue] >= 0.0)
    if largest >= _INFINITY_BITS or not valid:
        best_snr = np.nan
    return values, best_snr, unreachable


@kernel
def check_utilities(values):
    """The first entry that is negative or not a number, -1 if there is none; if all are finite.

    Both infinities are valid: -inf excludes a UE, +inf goes first.
    """
    invalid, finite = -1, True
    for i in range(values.size - 1, -1, -1):
        if not 0.0 <= values[i] < np.inf:
            if abs(values[i]) == np.inf:
                finite = False
            else:
                invalid = i
    return invalid, finite


@kernel
def first_repeated(order, count):
    """The first entry of ``order`` that is out of 0..count-1 or was there before, or -1."""
    seen = np.zeros(count, np.bool_)
    for place in range(order.size):
        ue = order[place]
        if ue < 0 or ue >= count or seen[ue]:
            return place
        seen[ue] = True
    return -1


@kernel
def first_violation(owner, power, gain, power_budget, rate_threshold):
    """The first constraint of problem (3) that is violated, at which subchannel or UE, by what.

    ``power_budget[ue]`` and ``rate_threshold[ue]`` are what each UE may spend and must reach; the
    last answer is that of the UE.
    """
    ues = power_budget.size
    # (3d), (3e): an owner for each subchannel makes sets disjoint; nobody sends without one.
    for n in range(owner.size):
        if owner[n] < -1 or owner[n] >= ues:
            return UNKNOWN_OWNER, n, np.float64(owner[n]), 0.0
        if not (0.0 <= power[n] < np.inf and 0.0 <= gain[n] < np.inf):
            return BAD_POWER, n, power[n], 0.0
        if owner[n] < 0 and power[n] > 0.0:
            return NO_OWNER, n, power[n], 0.0
    spent, nats = np.zeros(ues), np.zeros(ues)
    for n in range(owner.size):
        if owner[n] >= 0:
            spent[owner[n]] += power[n]
            nats[owner[n]] += log1p(gain[n] * power[n])
    # (3c): the powers of a UE add up to at most its budget.
    for ue in owner:
        if ue >= 0 and not spent[ue] <= power_budget[ue] * (1.0 + ROUNDING):
            return OVER_BUDGET, ue, spent[ue], power_budget[ue]
    # (3b): the sum of ½ log2(1 + G P) reaches R_s.
    for ue in owner:
        if ue >= 0:
            rate = nats[ue] / NATS_PER_BIT
            if not rate >= rate_threshold[ue] * (1.0 - ROUNDING):
                return BELOW_THRESHOLD, ue, rate, rate_threshold[ue]
    return SOUND, -1, 0.0, 0.0


@kernel
def owners_gains(gains, owner):
    """``gain[subchannel]`` of the owners in ``gains[ue, subchannel]``; 0 where there is none."""
    gain = np.zeros(owner.size)
    for n in range(owner.size):
        if 0 <= owner[n] < gains.shape[0]:
            gain[n] = gains[owner[n], n]
    return gain


@kernel
def scheduled_mask(owner, ues):
    """``bool[ue]``: whether the UE owns a subchannel."""
    mask = np.zeros(ues, np.bool_)
    for ue in owner:
        if 0 <= ue < ues:
            mask[ue] = True
    return mask


@kernel
def scheduled_ues(owner, ues):
    """The UEs that own a subchannel, in rising order."""
    return np.flatnonzero(scheduled_mask(owner, ues))


@kernel
def rates_of(owner, power, gain, ues):
    """``rate[ue]``: the sum of ½ log2(1 + G P) over the subchannels of each UE."""
    rate = np.zeros(ues)
    for n in range(owner.size):
        if owner[n] >= 0:
            rate[owner[n]] += log1p(gain[n] * power[n]) / NATS_PER_BIT
    return rate


@kernel
def uploads_of(owner, power, gain, rate_threshold, payload_bits):
    """Who uploads, in rising order, how many fall short, all channel uses, and numbers of each.

    The rows of the numbers are the rate, the rate at which it is sent (the threshold's where the
    rate falls short, so that an upload in vain takes the whole slot) and the power. Each subchannel
    of a UE is used as often as it takes to carry its payload at its rate.
    """
    ues = rate_threshold.size
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
        if not sent >= rate_threshold[ue] * (1.0 - ROUNDING):
            sent = rate_threshold[ue]
            short += 1
        numbers[0, i], numbers[1, i], numbers[2, i] = rate[ue], sent, spent[ue]
        if sent > 0.0:
            uses += held[ue] * (payload_bits[ue] / sent)
    return scheduled, short, uses, numbers
