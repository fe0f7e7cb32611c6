"""Problem (3) as set packing, and the upper bound on it by column generation.

A column is a UE with a set of subchannels that serves it; a packing is a choice of columns that
share neither a UE nor a subchannel.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from agewise.core.exact import Quota, sets_within

_UNLIMITED = 2**62
#: Units of work that a linear program counts as, and each of its columns.
_PROGRAM, _COLUMN = 2_000, 10
#: A column enters the master problem if its reduced cost is above this: less could be the rounding
#: of the solver, whose tolerance is 1e-7, and would be found again and again.
_LEAST_REDUCED_COST = 1e-6


def rounding_of_sums(subchannels: int) -> float:
    """The relative rounding of what a set of that number of subchannels costs, less a weight."""
    return (subchannels + 4) * float(np.finfo(np.float64).eps)


class Candidates(NamedTuple):
    """The UEs that can add to the optimum, and what decides which sets serve them.

    ``ues[candidate]`` are rows of ``gains[ue, subchannel]``, in falling order of
    ``weights[candidate]``.
    """

    gains: NDArray[np.float64]
    power_budget: NDArray[np.float64]
    rate_threshold: NDArray[np.float64]
    ues: NDArray[np.int64]
    weights: NDArray[np.float64]

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
        """Count the columns."""
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

    def value(self, candidates: Candidates) -> float:
        """Sum of the weights of those that the columns serve."""
        return math.fsum(candidates.weights[self.candidate])

    def owners(self, candidates: Candidates) -> NDArray[np.int64]:
        """``owner[subchannel]`` of disjoint columns, by UE; -1 is nobody."""
        owner = np.full(candidates.subchannels, -1, np.int64)
        owner[self.members] = np.repeat(candidates.ues[self.candidate], self.sizes)
        return owner


@dataclass
class Effort:
    """Counts nodes searched and columns of linear programs, up to the limit if there is one."""

    subchannels: int
    work_limit: int | None
    spent: int = 0

    @property
    def node_limit(self) -> int:
        """Nodes that the next search may use."""
        limit = _UNLIMITED if self.work_limit is None else min(self.work_limit, _UNLIMITED)
        return max(0, limit - self.spent)

    @property
    def exhausted(self) -> bool:
        """Tell whether the limit is reached."""
        return self.node_limit == 0


@dataclass(frozen=True, eq=False)
class Duals:
    """Dual values of the subchannels; whatever they are, they give a valid upper bound.

    ``profit[candidate]`` is the weight of a candidate less the duals of its cheapest set, or
    more; below 0 where no set is worth its duals. Its positive part is the dual of the candidate.
    All of them together may be too low by ``rounding``.
    """

    subchannel: NDArray[np.float64]
    profit: NDArray[np.float64]
    rounding: float

    @property
    def rows(self) -> NDArray[np.float64]:
        """The dual of each row: subchannels, then candidates."""
        return np.concatenate((self.subchannel, np.maximum(self.profit, 0.0)))

    @property
    def upper_bound(self) -> float:
        """Bound on the worth of any packing, but for the rounding: the sum of all duals."""
        return math.fsum(self.rows)


def price_columns(
    candidates: Candidates, subchannel_duals: NDArray[np.float64], effort: Effort
) -> tuple[Duals, Columns, NDArray[np.float64]]:
    """The pricing problem: the cheapest column of each candidate that costs less than its weight.

    The cost of a column is the sum of its ``subchannel_duals``. Returns the duals that follow for
    the candidates, the columns and their costs.
    """
    *offered, weights = candidates
    quota = Quota(True, 0, effort.node_limit)
    least, rounding, candidate, cost, start, members, nodes, _ = sets_within(
        *offered, subchannel_duals, weights, quota
    )
    effort.spent += nodes
    columns = Columns(candidate, start, members)
    return Duals(subchannel_duals, weights - least, rounding), columns, cost


def columns_within_gap(
    candidates: Candidates, duals: Duals, gap: float, most_columns: int, effort: Effort
) -> tuple[Columns, bool]:
    """The columns of packings that come within ``gap`` of the upper bound, and if these are all.

    No other column has a reduced cost above ``-gap``.
    """
    *offered, weights = candidates
    limits = weights - np.maximum(duals.profit, 0.0) + (gap + duals.rounding)
    limits *= 1.0 + rounding_of_sums(candidates.subchannels)
    quota = Quota(False, most_columns, effort.node_limit)
    _, _, candidate, _, start, members, nodes, complete = sets_within(
        *offered, duals.subchannel, limits, quota
    )
    effort.spent += nodes
    return Columns(candidate, start, members), complete


def solve_master(
    weights: NDArray[np.float64], columns: Columns, subchannels: int, effort: Effort
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The restricted master problem: the best fractional packing of the columns.

    Returns the share of each column and the dual of each row.
    """
    matrix, used = columns.matrix(subchannels)
    effort.spent += _PROGRAM + _COLUMN * columns.count
    solved = scipy.optimize.linprog(
        -weights[columns.candidate], A_ub=matrix, b_ub=np.ones(used.size), method="highs-ds"
    )
    if solved.status != 0:
        raise RuntimeError(f"the linear program could not be solved: {solved.message}")
    duals = np.zeros(subchannels + weights.size)
    duals[used] = np.maximum(-solved.ineqlin.marginals, 0.0)
    return solved.x, duals


@dataclass
class ColumnGeneration:
    """The columns found so far, and the duals with the lowest upper bound."""

    candidates: Candidates
    columns: Columns
    duals: Duals

    def run(self, is_enough: Callable[[Duals], bool], effort: Effort) -> None:
        """Lower the upper bound as far as the relaxation goes, or until ``is_enough``.

        The linear program only proposes duals. The bound comes from the exact cost of each
        candidate's cheapest column at these duals, so that no tolerance of the solver enters it.
        """
        candidates, count = self.candidates, self.candidates.subchannels
        while not (is_enough(self.duals) or effort.exhausted):
            _, rows = solve_master(candidates.weights, self.columns, count, effort)
            duals, found, cost = price_columns(candidates, rows[:count], effort)
            if duals.upper_bound < self.duals.upper_bound:
                self.duals = duals
            of = found.candidate
            reduced_cost = candidates.weights[of] - cost - rows[count + of]
            entering = reduced_cost > _LEAST_REDUCED_COST
            if not entering.any():
                is_enough(self.duals)
                return
            self.columns += found.take(entering)

    def drop_candidates(self, incumbent: float) -> None:
        """Drop the candidates that no packing worth more than the ``incumbent`` can serve."""
        kept = self.duals.upper_bound + self.duals.profit > incumbent
        renumbered = np.cumsum(kept) - 1
        columns = self.columns.take(kept[self.columns.candidate])
        self.columns = replace(columns, candidate=renumbered[columns.candidate])
        ues, weights = self.candidates.ues[kept], self.candidates.weights[kept]
        self.candidates = self.candidates._replace(ues=ues, weights=weights)
        self.duals = replace(self.duals, profit=self.duals.profit[kept])
