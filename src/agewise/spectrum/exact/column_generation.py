"""The upper bound on problem (3): its linear relaxation over all columns, by column generation."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from agewise.core.subchannel_sets import Quota, sets_within
from agewise.spectrum.exact.problem import Candidates, Columns, Effort, rounding_of_sums

#: Units of work that a linear program counts as, and each of its columns.
_PROGRAM, _COLUMN = 2_000, 10
#: A column enters the master problem if its reduced cost is above this: less could be the rounding
#: of the solver, whose tolerance is 1e-7, and would be found again and again.
_LEAST_REDUCED_COST = 1e-6


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
        """What no packing is worth more than, but for the rounding: the sum of all duals."""
        return math.fsum(self.rows)


def price_columns(
    candidates: Candidates, subchannel_duals: NDArray[np.float64], effort: Effort
) -> tuple[Duals, Columns, NDArray[np.float64]]:
    """The pricing problem: the cheapest column of each candidate that costs less than its weight.

    The cost of a column is the sum of its ``subchannel_duals``. Returns the duals that follow for
    the candidates, the columns and their costs.
    """
    quota = Quota(True, 0, effort.node_limit)
    least, rounding, columns, cost, _ = _columns_within(
        candidates, subchannel_duals, candidates.weights, quota, effort
    )
    return Duals(subchannel_duals, candidates.weights - least, rounding), columns, cost


def columns_within_gap(
    candidates: Candidates, duals: Duals, gap: float, most_columns: int, effort: Effort
) -> tuple[Columns, bool]:
    """The columns of packings that come within ``gap`` of the upper bound, and if these are all.

    No other column has a reduced cost above ``-gap``.
    """
    limits = candidates.weights - np.maximum(duals.profit, 0.0) + (gap + duals.rounding)
    limits *= 1.0 + rounding_of_sums(candidates.subchannels)
    quota = Quota(False, most_columns, effort.node_limit)
    _, _, columns, _, complete = _columns_within(
        candidates, duals.subchannel, limits, quota, effort
    )
    return columns, complete


def _columns_within(
    candidates: Candidates,
    subchannel_duals: NDArray[np.float64],
    limits: NDArray[np.float64],
    quota: Quota,
    effort: Effort,
) -> tuple[NDArray[np.float64], float, Columns, NDArray[np.float64], bool]:
    """Bounds on candidates' costs, their rounding; columns that cost less, if complete."""
    least, rounding, candidate, cost, start, members, nodes, complete = sets_within(
        candidates.gains, candidates.link, candidates.ues, subchannel_duals, limits, quota
    )
    effort.spend(nodes)
    return least, rounding, Columns(candidate, start, members), cost, complete


def solve_master(
    weights: NDArray[np.float64], columns: Columns, subchannels: int, effort: Effort
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The restricted master problem: the best fractional packing of the columns.

    Returns the share of each column and the dual of each row.
    """
    matrix, used = columns.matrix(subchannels)
    effort.spend(_PROGRAM + _COLUMN * columns.count)
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
        self.candidates = replace(
            self.candidates, ues=self.candidates.ues[kept], weights=self.candidates.weights[kept]
        )
        self.duals = replace(self.duals, profit=self.duals.profit[kept])
