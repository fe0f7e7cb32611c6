"""Packings of given sets as linear and integer programs, which HiGHS solves for SciPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.spectrum.exact.prices import Cell
from agewise.spectrum.exact.sets import Sets
from agewise.spectrum.exact.work import Work

#: Units of work that a linear program counts as, and each of its columns.
_LINEAR, _COLUMN = 2_000, 10
#: Units of work that an integer program counts as, and each of its nodes.
_INTEGER, _NODE = 200_000, 2_000
#: In the integer program the highest weight is this much: its absolute tolerance of 1e-6 then is
#: as small as the rounding below which two values count as equal.
_SCALE = 1e3
_MOST_NODES = 2**31 - 1


def fractional_packing(
    weights: NDArray[np.float64], sets: Sets, subchannels: int, work: Work
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The best fractional packing of the sets: the share of each, and the price of each row."""
    from scipy.optimize import linprog

    matrix, used = _matrix(sets, subchannels)
    work.spend(_LINEAR + _COLUMN * sets.count)
    solved = linprog(-weights[sets.of], A_ub=matrix, b_ub=np.ones(used.size), method="highs-ds")
    if solved.status != 0:
        raise RuntimeError(f"the linear program could not be solved: {solved.message}")
    row = np.zeros(subchannels + weights.size)
    row[used] = np.maximum(-solved.ineqlin.marginals, 0.0)
    return solved.x, row


def heaviest_packing(cell: Cell, sets: Sets, work: Work) -> tuple[Sets | None, bool]:
    """The heaviest packing of the sets, or what was found of it, and whether it is certain."""
    from scipy.optimize import LinearConstraint, milp

    nodes = min((work.nodes_left - _INTEGER) // _NODE, _MOST_NODES)
    if nodes <= 0:
        return None, False
    options: dict[str, float] = {"mip_rel_gap": 0.0, "node_limit": nodes}
    if work.seconds_left is not None:
        options["time_limit"] = work.seconds_left
    matrix, _ = _matrix(sets, cell.subchannels)
    solved = milp(
        -_SCALE * cell.weights[sets.of],
        integrality=np.ones(sets.count),
        bounds=(0, 1),
        constraints=LinearConstraint(matrix, -np.inf, 1.0),
        options=options,
    )
    work.spend(_INTEGER + _NODE * int(solved.mip_node_count or 0))
    if solved.x is None:
        return None, False
    return sets.take(solved.x > 0.5), solved.status == 0


def _matrix(sets: Sets, subchannels: int) -> tuple[Any, NDArray[np.int64]]:
    """The 0-1 matrix of used rows by sets, sparse, and which rows these are."""
    from scipy.sparse import csr_array

    start, rows = sets.rows(subchannels)
    used, line = np.unique(rows, return_inverse=True)
    column = np.repeat(np.arange(sets.count), np.diff(start))
    shape = used.size, sets.count
    return csr_array((np.ones(line.size), (line, column)), shape=shape), used
