"""Compiled kernels of traffic: updates arrive, are scheduled and received, and age.

``ledger`` is an `agewise.traffic.ledger.Ledger`, whose arrays they change in place.
"""

import numpy as np

from agewise.compiled import compiled
from agewise.radio.kernels import fade_ue
from agewise.core.random import bits, subkey, unit
from agewise.spectrum.kernels import least_snrs, pack_into, packing_room, target_nats
from agewise.traffic.ledger import EMPTY_SLOTS, NOTHING, SUBCHANNELS_USED


@compiled(nogil=True)
def arrive(key, t, chances, ledger):
    """Each UE generates an update in slot ``t`` with its chance; a newer replaces an older."""
    slot_key = subkey(key, t)
    for ue in range(chances.size):
        if chances[ue] >= 1.0 or unit(bits(slot_key, ue)) < chances[ue]:
            ledger.waiting[ue] = t


@compiled(nogil=True)
def receive(t, owner, ledger):
    """The owners' updates are delivered in slot ``t``, then everyone's age is written down.

    A delivered age is the time since the update was generated: 0 (Eq. 2) if that was in this
    slot.
    """
    used = 0
    for subchannel in range(owner.size):
        ue = owner[subchannel]
        used += ue >= 0
        if ue >= 0 and ledger.waiting[ue] != NOTHING:  # not yet done on another subchannel
            ledger.deliveries[ue] += 1
            ledger.peak_sums[ue] += ledger.ages[ue]
            ledger.ages[ue] = t - ledger.waiting[ue] - 1  # one slot younger than it is below
            ledger.waiting[ue] = NOTHING
    ledger.totals[SUBCHANNELS_USED] += used
    ledger.totals[EMPTY_SLOTS] += used == 0
    for ue in range(ledger.ages.size):
        age = ledger.ages[ue] + 1
        ledger.ages[ue] = age
        ledger.age_sums[ue] += age
        ledger.oldest[ue] = max(ledger.oldest[ue], age)
        ledger.age_counts[age] += 1


@compiled(nogil=True)
def draw_ranks(key, t, rank):
    """A random order of the UEs in slot ``t``, as ranks: 63 random bits each."""
    slot_key = subkey(key, t)
    for ue in range(rank.size):
        rank[ue] = np.int64(bits(slot_key, ue) >> np.uint64(1))


@compiled(nogil=True)
def serve(slots, keys, chances, means, power, threshold, weight_of, random_ties, ledger, owner):
    """The ``slots`` (first, end) of a cell with Rayleigh fading, packed by weight.

    ``keys`` are those of fading, arrivals and ties; ``weight_of[age]`` is what an age weighs.
    ``owner[subchannel]`` is left as it was in the last slot. Nothing is allocated from slot to
    slot.
    """
    fading_key, arrivals_key, ties_key = keys
    ues, subchannels = means.size, owner.size
    target = target_nats(threshold)
    least = least_snrs(target, subchannels)
    room = packing_room(ues, subchannels)
    gains = np.empty((ues, subchannels))
    best_gains, weights = np.empty(ues), np.empty(ues)
    rank = np.arange(ues)
    powers, owner_gains = np.empty(subchannels), np.empty(subchannels)
    for t in range(slots[0], slots[1]):
        arrive(arrivals_key, t, chances, ledger)
        slot_key = subkey(fading_key, t)
        for ue in range(ues):
            if ledger.waiting[ue] == NOTHING:
                best_gains[ue] = 0.0  # out of reach, without a look at its gains
            else:
                best_gains[ue] = fade_ue(slot_key, ue, means[ue], gains[ue])
            weights[ue] = weight_of[ledger.ages[ue]]
        if random_ties:
            draw_ranks(ties_key, t, rank)
        pack_into(
            gains, best_gains, weights, rank, power, target, least, room,
            owner, powers, owner_gains,
        )  # fmt: skip
        receive(t, owner, ledger)
