"""What is kept from slot to slot: where every UE stands, and the sums of what happened."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
        """The same ledger, if need be with space to count the ages of so many more slots."""
        size = int(self.ages.max(initial=0)) + slots + 1
        if self.age_counts.size >= size:
            return self
        # Twice as much: a UE that is never served must not cost a copy in every chunk of slots.
        counts = np.zeros(2 * size, np.int64)
        counts[: self.age_counts.size] = self.age_counts
        return self._replace(age_counts=counts)
