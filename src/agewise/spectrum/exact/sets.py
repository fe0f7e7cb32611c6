"""Sets of subchannels that serve a UE, as the flat arrays that the kernels take."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Sets:
    """``members[start[i]:start[i + 1]]`` are the subchannels of set i, ``of[i]`` is its UE.

    UEs are places in a list of candidates. A set uses one row for each of its subchannels, and
    one for its UE; rows are numbered subchannels first.
    """

    of: NDArray[np.int64]
    start: NDArray[np.int64]
    members: NDArray[np.int64]

    @classmethod
    def owned(cls, owner: NDArray[np.int64]) -> "Sets":
        """The sets that UEs hold in ``owner[subchannel]``, where -1 is nobody."""
        by_owner = np.argsort(owner, kind="stable")
        by_owner = by_owner[np.count_nonzero(owner < 0) :]
        of, start = np.unique(owner[by_owner], return_index=True)
        return cls(of, np.append(start, by_owner.size), by_owner)

    @property
    def count(self) -> int:
        """How many sets there are."""
        return self.of.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """``int[set]``: how many subchannels each set has."""
        return np.diff(self.start)

    def __add__(self, other: "Sets") -> "Sets":
        return Sets(
            np.concatenate((self.of, other.of)),
            np.concatenate((self.start, self.start[-1] + other.start[1:])),
            np.concatenate((self.members, other.members)),
        )

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> "Sets":
        """The sets ``which``, in that order."""
        chosen = np.arange(self.count)[which]
        sizes = self.sizes[chosen]
        start = np.concatenate(([0], np.cumsum(sizes)))
        shift = np.repeat(self.start[chosen] - start[:-1], sizes)
        return Sets(self.of[chosen], start, self.members[np.arange(start[-1]) + shift])

    def rows(self, subchannels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Start and row numbers of what each set uses: its subchannels, then its UE."""
        rows = np.insert(self.members, self.start[1:], subchannels + self.of)
        return self.start + np.arange(self.start.size), rows
