"""Problem (3) as set packing: candidates, columns, and how much the search may still do.

A column is a UE with a set of subchannels that serves it; a packing is a choice of columns that
share neither a UE nor a subchannel.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from agewise.core.waterfill import Link

#: Nodes of a search that a machine gets through in a second, on the low side: this many times
#: 1 / subchannels. It turns seconds that are left into nodes, and nothing else depends on it.
_NODES_PER_SECOND = 4e6
_UNLIMITED = 2**62


def rounding_of_sums(subchannels: int) -> float:
    """The relative rounding of what a set of that number of subchannels costs, less a weight."""
    return (subchannels + 4) * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The UEs that can add to the optimum, and what decides which sets serve them.

    ``ues[candidate]`` are rows of ``gains[ue, subchannel]``, in falling order of
    ``weights[candidate]``.
    """

    gains: NDArray[np.float64]
    link: Link
    ues: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def count(self) -> int:
        """How many candidates there are."""
        return self.ues.size

    @property
    def subchannels(self) -> int:
        """N, the number of subchannels."""
        return int(self.gains.shape[1])


@dataclass(frozen=True, eq=False)
class Columns:
    """Column c serves ``candidate[c]`` on the subchannels ``members[start[c]:start[c + 1]]``.

    A column uses one row of the linear program for each of its subchannels, and one for its
    candidate; rows are numbered subchannels first.
    """

    candidate: NDArray[np.int64]
    start: NDArray[np.int64]
    members: NDArray[np.int64]

    @classmethod
    def of_owners(cls, owner: NDArray[np.int64]) -> "Columns":
        """The packing in which candidates hold ``owner[subchannel]``, where -1 is nobody."""
        by_owner = np.argsort(owner, kind="stable")
        by_owner = by_owner[np.count_nonzero(owner < 0) :]
        candidate, start = np.unique(owner[by_owner], return_index=True)
        return cls(candidate, np.append(start, by_owner.size), by_owner)

    @property
    def count(self) -> int:
        """How many columns there are."""
        return self.candidate.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """``int[column]``: how many subchannels each column has."""
        return np.diff(self.start)

    def __add__(self, other: "Columns") -> "Columns":
        return Columns(
            np.concatenate((self.candidate, other.candidate)),
            np.concatenate((self.start, self.start[-1] + other.start[1:])),
            np.concatenate((self.members, other.members)),
        )

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_]) -> "Columns":
        """The columns ``which``, in that order."""
        chosen = np.arange(self.count)[which]
        sizes = self.sizes[chosen]
        start = np.concatenate(([0], np.cumsum(sizes)))
        shift = np.repeat(self.start[chosen] - start[:-1], sizes)
        return Columns(self.candidate[chosen], start, self.members[np.arange(start[-1]) + shift])

    def rows(self, subchannels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Start and row numbers of what each column uses: its subchannels, then its candidate."""
        rows = np.insert(self.members, self.start[1:], subchannels + self.candidate)
        return self.start + np.arange(self.start.size), rows

    def matrix(self, subchannels: int) -> tuple[Any, NDArray[np.int64]]:
        """The sparse 0-1 matrix of used rows by columns, and which rows these are."""
        start, rows = self.rows(subchannels)
        used, line = np.unique(rows, return_inverse=True)
        column = np.repeat(np.arange(self.count), np.diff(start))
        shape = used.size, self.count
        return scipy.sparse.csr_array((np.ones(line.size), (line, column)), shape=shape), used

    def owners(self, candidates: Candidates) -> NDArray[np.int64]:
        """``owner[subchannel]`` of disjoint columns, by UE; -1 is nobody."""
        owner = np.full(candidates.subchannels, -1, np.int64)
        owner[self.members] = np.repeat(candidates.ues[self.candidate], self.sizes)
        return owner


@dataclass
class Effort:
    """Counts nodes searched and columns of linear programs, and watches the clock."""

    subchannels: int
    work_limit: int | None
    time_limit_s: float | None
    spent: int = 0
    _started: float = field(default_factory=time.monotonic)

    def spend(self, units: int) -> None:
        """Count this much as done."""
        self.spent += units

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the time limit, or ``None`` if there is none."""
        if self.time_limit_s is None:
            return None
        return max(0.0, self.time_limit_s - (time.monotonic() - self._started))

    @property
    def node_limit(self) -> int:
        """Nodes that the next search may use."""
        left = _UNLIMITED
        if self.work_limit is not None:
            left = min(left, max(0, self.work_limit - self.spent))
        seconds = self.seconds_left
        if seconds is not None:
            left = min(left, int(seconds * _NODES_PER_SECOND / max(self.subchannels, 1)))
        return left

    @property
    def exhausted(self) -> bool:
        """Whether a limit is reached."""
        return self.node_limit == 0
