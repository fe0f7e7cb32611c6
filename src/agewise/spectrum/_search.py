"""The best packing of given columns: branch and bound, and exact arithmetic at the end."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from agewise.core.exact import smallest_gap
from agewise.spectrum._columns import Candidates, Columns, Effort, rounding_of_sums, solve_master

_Floats = NDArray[np.float64]
#: Shares this near to 0 or 1 count as integral.
_INTEGRALITY = 1e-6
#: Nodes after which an integer program takes over: it begins slowly, but copes better where many
#: fractional packings are equally good, as those of UEs of few different weights are.
_NODES = 600
#: Nodes of the combinatorial search that is tried before a node is branched on.
_SEARCH_NODES = 1_000
#: Units of work that an integer program counts as, and each of its nodes.
_PROGRAM, _PROGRAM_NODE = 200_000, 2_000
#: In the integer program the highest weight has the least scale, or more where that makes its
#: absolute tolerance a tenth of the least gain; beyond the largest scale its word proves nothing.
_LEAST_SCALE, _LARGEST_SCALE = 1e3, 1e5
_PROGRAM_TOLERANCE = 1e-6
_MOST_PROGRAM_NODES = 2**31 - 1
#: States after which the exact search gives up: it is for what a few hundred of them settle.
MOST_STATES = 50_000


@dataclass(frozen=True, eq=False)
class _Node:
    """Some of the columns, and the candidates that must be served with one of them."""

    columns: Columns
    must_serve: NDArray[np.bool_]

    def only(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> "_Node":
        return replace(self, columns=self.columns.take(kept))


@dataclass(frozen=True, eq=False)
class _Relaxed:
    """The linear relaxation of a node: upper bound, shares, duals and reduced costs.

    ``reduced_cost[column]`` is duals less weight, so that it is never below 0.
    """

    upper_bound: float
    share: _Floats
    row_duals: _Floats
    reduced_cost: _Floats

    @property
    def is_integral(self) -> bool:
        return bool((np.minimum(self.share, 1.0 - self.share) < _INTEGRALITY).all())


def best_packing(
    candidates: Candidates, columns: Columns, cutoff: float, least_gain: float, effort: Effort
) -> tuple[Columns | None, bool]:
    """The heaviest packing worth more than ``cutoff``, if any, and whether that is proven.

    Where there is none, what is returned is worth less or is ``None``. One packing is better than
    another if it is worth ``least_gain`` more. Branches on a candidate that the linear relaxation
    serves in part, since the value of a packing depends only on who is served; where there is
    none, on a subchannel that a candidate holds in part.
    """
    incumbent = None
    nodes = [_Node(columns, np.zeros(candidates.ues.size, np.bool_))]
    for _ in range(_NODES):
        if not nodes or effort.exhausted:
            break
        node = nodes.pop()
        if node.columns.count == 0:
            continue
        relaxed = _relax(candidates, node, effort)
        if relaxed.is_integral:
            packing = node.columns.take(relaxed.share > 0.5)
            if (value := packing.value(candidates)) > cutoff:
                incumbent, cutoff = packing, value + least_gain
        gap = relaxed.upper_bound - cutoff
        if gap <= 0:
            continue
        kept = np.flatnonzero(relaxed.reduced_cost < gap)  # fixing by reduced cost
        kept = kept[np.argsort(relaxed.reduced_cost[kept], kind="stable")]
        node = node.only(kept)
        found, proven = _search(
            node.columns, relaxed.reduced_cost[kept], relaxed.row_duals, gap, effort
        )
        if found is not None:
            incumbent, cutoff = found, found.value(candidates) + least_gain
        if not proven:
            nodes += _branch(node, relaxed.share[kept], candidates)
    if not nodes or effort.exhausted:
        return incumbent, not nodes
    found, proven = _solve_integer_program(candidates, columns, least_gain, effort)
    if incumbent is None or (found is not None and found.value(candidates) > cutoff):
        incumbent = found
    return incumbent, proven


def _relax(candidates: Candidates, node: _Node, effort: Effort) -> _Relaxed:
    """The linear relaxation of a node.

    As at the root, the linear program only proposes duals. Candidates that must be served get a
    bonus that no packing without them can make up for.
    """
    columns, count = node.columns, candidates.subchannels
    bonus = 1.0 + count
    weights = candidates.weights + bonus * node.must_serve
    share, duals = solve_master(weights, columns, count, effort)
    cost = np.add.reduceat(duals[columns.members], columns.start[:-1])
    profit = weights[columns.candidate] - cost
    candidate_duals = np.zeros(candidates.ues.size)
    np.maximum.at(candidate_duals, columns.candidate, profit)
    duals[count:] = candidate_duals
    # Costs are rounded, in the bound and in the search below it: by at most this together.
    present = np.unique(columns.candidate)
    rounding = 2.0 * rounding_of_sums(count) * float(weights[present].sum())
    upper_bound = math.fsum(duals) - bonus * np.count_nonzero(node.must_serve) + rounding
    return _Relaxed(upper_bound, share, duals, candidate_duals[columns.candidate] - profit)


def _search(
    columns: Columns, reduced_cost: _Floats, row_duals: _Floats, gap: float, effort: Effort
) -> tuple[Columns | None, bool]:
    """The packing nearest to the upper bound, if it is within ``gap``; whether that is proven.

    ``reduced_cost[column]`` comes in rising order.
    """
    start, rows = columns.rows(effort.subchannels)
    node_limit = min(_SEARCH_NODES, effort.node_limit)
    found_gap, chosen, nodes = smallest_gap(reduced_cost, start, rows, row_duals, gap, node_limit)
    effort.spent += min(nodes, node_limit)
    return (columns.take(chosen) if found_gap < gap else None), nodes <= node_limit


def _branch(node: _Node, share: _Floats, candidates: Candidates) -> list[_Node]:
    """Two nodes without this fractional packing; the one to follow first comes last."""
    columns, count = node.columns, candidates.ues.size
    served = np.bincount(columns.candidate, weights=share, minlength=count)
    undecided = np.isin(np.arange(count), columns.candidate) & ~node.must_serve
    fraction = np.where(undecided, np.minimum(served, 1.0 - served), -1.0)
    held = np.zeros((count, candidates.subchannels))
    holder = np.repeat(columns.candidate, columns.sizes)
    np.add.at(held, (holder, columns.members), np.repeat(share, columns.sizes))
    held_fraction = np.minimum(held, 1.0 - held)
    if fraction.max() < _INTEGRALITY <= held_fraction.max():
        candidate, subchannel = divmod(int(held_fraction.argmax()), candidates.subchannels)
        its_own = columns.candidate == candidate
        has = np.add.reduceat(columns.members == subchannel, columns.start[:-1]) > 0
        return [node.only(~(its_own & has)), node.only(its_own == has)]
    if not undecided.any():
        return []  # all is integral, and this packing serves everybody whom others could serve
    candidate = int(fraction.argmax())
    must_serve = node.must_serve.copy()
    must_serve[candidate] = True
    return [node.only(columns.candidate != candidate), replace(node, must_serve=must_serve)]


def _solve_integer_program(
    candidates: Candidates, columns: Columns, least_gain: float, effort: Effort
) -> tuple[Columns | None, bool]:
    """The heaviest packing of the columns, or what was found of it, and whether it is proven."""
    nodes = min((effort.node_limit - _PROGRAM) // _PROGRAM_NODE, _MOST_PROGRAM_NODES)
    if nodes <= 0:
        return None, False
    matrix, _ = columns.matrix(candidates.subchannels)
    wanted = 10.0 * _PROGRAM_TOLERANCE / least_gain
    scale = min(max(wanted, _LEAST_SCALE), _LARGEST_SCALE)
    solved = scipy.optimize.milp(
        -scale * candidates.weights[columns.candidate],
        integrality=np.ones(columns.count),
        bounds=(0, 1),
        constraints=scipy.optimize.LinearConstraint(matrix, -np.inf, 1.0),
        options={"mip_rel_gap": 0.0, "node_limit": nodes},
    )
    effort.spent += _PROGRAM + _PROGRAM_NODE * int(solved.mip_node_count or 0)
    if solved.x is None:
        return None, False
    return columns.take(solved.x > 0.5), solved.status == 0 and wanted <= scale


class _Column(NamedTuple):
    """A column: its number, its subchannels as bits, and its reduced cost."""

    number: int
    bits: int
    cost: int


@dataclass
class ExactSearch:
    """A search for a packing within ``limit`` of the dual bound, all in whole numbers.

    For weights so far apart that float64 cannot tell packings apart. Every float is a fraction,
    so weights and duals become whole numbers of one small unit, and nothing is rounded.

    ``columns_of[candidate]`` come with their reduced costs, ``left_out[candidate]`` is the dual
    of the candidate and ``unused[subchannel]`` that of a subchannel. A packing is so far below
    the bound as its columns cost, plus the duals of whom and what it does not use.
    """

    columns_of: list[list[_Column]]
    left_out: list[int]
    unused: list[int]
    limit: int
    best: list[int] | None = None
    states: int = 0

    @classmethod
    def over(
        cls, columns: Columns, weights: list[Fraction], duals: list[Fraction], incumbent: Fraction
    ) -> "ExactSearch":
        """The search among ``columns`` for more than the ``incumbent``.

        ``weights`` are those of the candidates; ``duals`` have a row for each subchannel, then
        one for each candidate, and those of candidates are raised where a column asks for it.
        """
        scale = math.lcm(1, *(number.denominator for number in (*weights, *duals, incumbent)))
        weight, dual = ([int(number * scale) for number in part] for part in (weights, duals))
        count = len(dual) - len(weight)
        unused, left_out = dual[:count], dual[count:]
        members = np.split(columns.members, columns.start[1:-1]) if columns.count else []
        sets = [[int(n) for n in channels] for channels in members]
        worth = [
            weight[of] - sum(unused[n] for n in channels)
            for of, channels in zip(columns.candidate, sets, strict=True)
        ]
        for of, profit in zip(columns.candidate, worth, strict=True):
            left_out[of] = max(left_out[of], profit)
        columns_of: list[list[_Column]] = [[] for _ in weight]
        for number, (of, channels) in enumerate(zip(columns.candidate, sets, strict=True)):
            bits = sum(1 << n for n in channels)
            columns_of[of].append(_Column(number, bits, left_out[of] - worth[number]))
        limit = sum(unused) + sum(left_out) - int(incumbent * scale)
        return cls(columns_of, left_out, unused, limit)

    def run(self, most_states: int) -> bool:
        """Find the best packing within the limit, if any; whether the search came to its end."""
        usable = [0]  # by each candidate or by those after it, from the last one on
        for columns in reversed(self.columns_of):
            columns.sort(key=lambda column: column.cost)
            usable.append(usable[-1])
            for column in columns:
                usable[-1] |= column.bits
        usable.reverse()
        best_gap: dict[tuple[int, int], int] = {}
        all_free = (1 << len(self.unused)) - 1
        stack: list[tuple[int, int, int, tuple[int, ...]]] = [(0, all_free, 0, ())]
        while stack and self.states < most_states:
            self.states += 1
            place, free, gap, chosen = stack.pop()
            lost = free & ~usable[place]  # nobody who is still to come can use these
            gap += sum(dual for n, dual in enumerate(self.unused) if lost >> n & 1)
            free &= ~lost
            if gap >= self.limit or best_gap.get((place, free), self.limit) <= gap:
                continue
            best_gap[place, free] = gap
            if place == len(self.columns_of):
                self.limit, self.best = gap, list(chosen)
                continue
            stack.append((place + 1, free, gap + self.left_out[place], chosen))
            stack += [
                (place + 1, free & ~column.bits, gap + column.cost, (*chosen, column.number))
                for column in reversed(self.columns_of[place])
                if column.bits & ~free == 0 and gap + column.cost < self.limit
            ]
        return not stack
