"""Traffic: updates arrive, are scheduled and received, and age.

What is kept from slot to slot is a `Ledger`, whose arrays the kernels change in place.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.fading import fade_ue
from agewise.core.jit import kernel, njit
from agewise.core.pack import make_grants, pack_into, pack_scratch
from agewise.core.random import bits, subkey, unit
from agewise.core.waterfill import make_link

#: In `Ledger.waiting`: the UE has nothing to send.
NOTHING = -1
#: Entries of `Ledger.totals`.
SUBCHANNELS_USED, EMPTY_SLOTS = range(2)


class Ledger(NamedTuple):
    """All arrays are int64 and change in place, so that sums are exact and in any order the same.

    ``ages[ue]`` is T[t], ``waiting[ue]`` the slot in which the UE's newest undelivered update
    was generated (or `NOTHING`). Over the slots so far: ``deliveries[ue]``; ``age_sums[ue]`` and
    ``oldest[ue]`` of the ages after each slot; ``peak_sums[ue]`` of the ages just before a
    delivery; ``age_counts[age]``, UEs and slots together; ``totals`` of the cell.
    """

    ages: NDArray[np.int64]
    waiting: NDArray[np.int64]
    deliveries: NDArray[np.int64]
    age_sums: NDArray[np.int64]
    oldest: NDArray[np.int64]
    peak_sums: NDArray[np.int64]
    age_counts: NDArray[np.int64]
    totals: NDArray[np.int64]

    @classmethod
    def opened(cls, ues: int) -> "Ledger":
        """Before the first slot: every age is 0, and nobody has anything to send."""
        return cls(
            ages=np.zeros(ues, np.int64),
            waiting=np.full(ues, NOTHING),
            deliveries=np.zeros(ues, np.int64),
            age_sums=np.zeros(ues, np.int64),
            oldest=np.zeros(ues, np.int64),
            peak_sums=np.zeros(ues, np.int64),
            age_counts=np.zeros(0, np.int64),
            totals=np.zeros(2, np.int64),
        )

    def with_room_for(self, slots: int) -> "Ledger":
        """The same ledger, if need be with space to count the ages after ``slots`` more."""
        size = int(self.ages.max(initial=0)) + slots + 1
        if self.age_counts.size >= size:
            return self
        # Twice as much: a UE that is never served must not cost a copy in every chunk of slots.
        counts = np.zeros(2 * size, np.int64)
        counts[: self.age_counts.size] = self.age_counts
        return self._replace(age_counts=counts)


@kernel(nogil=True)
def arrive(key, t, chances, ledger):
    """Each UE generates an update in slot ``t`` with its chance; a newer replaces an older."""
    slot_key = subkey(key, t)
    for ue in range(chances.size):
        if chances[ue] >= 1.0 or unit(bits(slot_key, ue)) < chances[ue]:
            ledger.waiting[ue] = t


@kernel(nogil=True)
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


@njit
def draw_ranks(key, t, rank):
    """A random order of the UEs in slot ``t``, as ranks: 63 random bits each."""
    slot_key = subkey(key, t)
    for ue in range(rank.size):
        rank[ue] = np.int64(bits(slot_key, ue) >> np.uint64(1))


class TrafficKeys(NamedTuple):
    """Keys of the random numbers: of fading, of arrivals and of ties."""

    fading: np.uint64
    arrivals: np.uint64
    ties: np.uint64


class TrafficCell(NamedTuple):
    """A cell with Rayleigh fading: its size, each UE's mean gain and chance of an arrival.

    ``power_budget`` and ``rate_threshold`` (bits) are those of every UE.
    """

    mean_gains: NDArray[np.float64]
    chances: NDArray[np.float64]
    subchannels: int
    power_budget: float
    rate_threshold: float


@kernel(nogil=True)
def serve(slots, keys, cell, weight_of, random_ties, ledger):
    """The ``slots`` (first, end) of a cell with Rayleigh fading, packed by weight.

    ``weight_of[age]`` is what an age weighs. Returns ``owner[subchannel]`` of the last slot.
    Nothing is allocated from slot to slot.
    """
    ues, subchannels = cell.mean_gains.size, cell.subchannels
    link = make_link(cell.power_budget, cell.rate_threshold, subchannels)
    scratch, grants = pack_scratch(ues, subchannels), make_grants(subchannels)
    gains = np.empty((ues, subchannels))
    best_gains, weights = np.empty(ues), np.empty(ues)
    rank = np.arange(ues)
    for t in range(slots[0], slots[1]):
        arrive(keys.arrivals, t, cell.chances, ledger)
        slot_key = subkey(keys.fading, t)
        for ue in range(ues):
            if ledger.waiting[ue] == NOTHING:
                best_gains[ue] = 0.0  # out of reach, without a look at its gains
            else:
                best_gains[ue] = fade_ue(slot_key, ue, cell.mean_gains[ue], gains[ue])
            weights[ue] = weight_of[ledger.ages[ue]]
        if random_ties:
            draw_ranks(keys.ties, t, rank)
        pack_into(gains, best_gains, weights, rank, link, scratch, grants)
        receive(t, grants.owner, ledger)
    return grants.owner
