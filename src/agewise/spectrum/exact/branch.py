"""The best packing of given sets, by branch and bound over who is served and where."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agewise.spectrum.exact.prices import Cell
from agewise.spectrum.exact.program import fractional_packing, heaviest_packing
from agewise.spectrum.exact.sets import Sets
from agewise.spectrum.exact.work import Work

#: Shares this near to 0 or 1 count as whole.
_WHOLE = 1e-6
#: Branches after which an integer program takes over: it begins slowly, but copes better where
#: many fractional packings are equally good, as those of UEs of few different weights are.
_BRANCHES = 600
#: Nodes that the search for the least loss may use before a branch is split.
_NODES = 1_000


@dataclass(frozen=True, eq=False)
class _Branch:
    """Some of the sets, and the UEs that must be served with one of them."""

    sets: Sets
    must: NDArray[np.bool_]

    def only(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> "_Branch":
        return replace(self, sets=self.sets.take(kept))


def best_packing(
    cell: Cell, sets: Sets, floor: float, least_gain: float, work: Work
) -> tuple[Sets | None, bool]:
    """The heaviest packing worth more than ``floor``, if any, and whether that is certain.

    Where there is none, what is returned is worth less or is ``None``. One packing is better than
    another if it is worth ``least_gain`` more. Branches on a UE that the linear relaxation serves
    in part, since the value of a packing depends only on who is served; where there is none, on
    a subchannel that a UE holds in part.
    """
    best = None
    branches = [_Branch(sets, np.zeros(cell.ues.size, np.bool_))]
    for _ in range(_BRANCHES):
        if not branches or work.over:
            break
        branch = branches.pop()
        if branch.sets.count == 0:
            continue
        bound, share, row, loss = _relax(cell, branch, work)
        if (np.minimum(share, 1.0 - share) < _WHOLE).all():
            packing = branch.sets.take(share > 0.5)
            if (value := math.fsum(cell.weights[packing.of])) > floor:
                best, floor = packing, value + least_gain
        if bound <= floor:
            continue
        kept = np.flatnonzero(loss < bound - floor)
        kept = kept[np.argsort(loss[kept], kind="stable")]
        branch, share = branch.only(kept), share[kept]
        found, certain = _least_loss(branch.sets, loss[kept], row, bound - floor, work)
        if found is not None:
            best, floor = found, math.fsum(cell.weights[found.of]) + least_gain
        if not certain:
            branches += _split(branch, share, cell)
    if not branches or work.over:
        return best, not branches
    found, certain = heaviest_packing(cell, sets, work)
    if best is None or (found is not None and math.fsum(cell.weights[found.of]) > floor):
        best = found
    return best, certain


def _relax(
    cell: Cell, branch: _Branch, work: Work
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """A bound on the branch; the share of each set; what each row and each set can lose of it.

    As at the root, the linear program only proposes prices. UEs that must be served get a bonus
    that no packing without them can make up for.
    """
    sets, count = branch.sets, cell.subchannels
    bonus = 1.0 + count
    weights = cell.weights + bonus * branch.must
    share, row = fractional_packing(weights, sets, count, work)
    profit = weights[sets.of] - np.add.reduceat(row[sets.members], sets.start[:-1])
    spare = np.zeros(cell.ues.size)
    np.maximum.at(spare, sets.of, profit)
    row[count:] = spare
    bound = math.fsum(row) - bonus * np.count_nonzero(branch.must)
    return bound, share, row, spare[sets.of] - profit


def _least_loss(
    sets: Sets, loss: NDArray[np.float64], row: NDArray[np.float64], limit: float, work: Work
) -> tuple[Sets | None, bool]:
    """The packing that loses least against the bound, if less than ``limit``; if it is certain.

    ``loss[set]`` comes in rising order.
    """
    from agewise.spectrum.exact import packing_kernels

    start, rows = sets.rows(work.subchannels)
    most_nodes = min(_NODES, work.nodes_left)
    lost, chosen, nodes = packing_kernels.least_loss(loss, start, rows, row, limit, most_nodes)
    work.spend(min(nodes, most_nodes))
    return (sets.take(chosen) if lost < limit else None), nodes <= most_nodes


def _split(branch: _Branch, share: NDArray[np.float64], cell: Cell) -> list[_Branch]:
    """Two branches without this fractional packing; the one to follow first comes last."""
    sets = branch.sets
    served = np.bincount(sets.of, weights=share, minlength=cell.ues.size)
    undecided = np.isin(np.arange(cell.ues.size), sets.of) & ~branch.must
    partly = np.where(undecided, np.minimum(served, 1.0 - served), -1.0)
    held = np.zeros((cell.ues.size, cell.subchannels))
    np.add.at(held, (np.repeat(sets.of, sets.sizes), sets.members), np.repeat(share, sets.sizes))
    partly_held = np.minimum(held, 1.0 - held)
    if partly.max() < _WHOLE <= partly_held.max():
        ue, subchannel = divmod(int(partly_held.argmax()), cell.subchannels)
        mine = sets.of == ue
        has = np.add.reduceat(sets.members == subchannel, sets.start[:-1]) > 0
        return [branch.only(~(mine & has)), branch.only(mine == has)]
    if not undecided.any():
        return []  # all is whole, and this packing serves everybody whom others could serve
    ue = int(partly.argmax())
    must = branch.must.copy()
    must[ue] = True
    return [branch.only(sets.of != ue), replace(branch, must=must)]
