"""The search for the best packing: bound all of them, then look just below the bound."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise.spectrum.exact.branch import best_packing
from agewise.spectrum.exact.prices import Cell, Prices, cheapest_sets, sets_losing_less
from agewise.spectrum.exact.relaxation import Relaxation
from agewise.spectrum.exact.sets import Sets
from agewise.spectrum.exact.work import Work

#: Relative difference below which two values count as equal.
_ROUNDING = 1e-9
#: How much of the gap is searched, in turn: the optimum is often much nearer to the bound.
_PARTS = (1 / 16, 1 / 4, 1.0)
#: Sets among which the first search looks, then four times as many, and so on up to the most.
_FIRST_SETS, _MOST_SETS = 4_000, 1_024_000


@dataclass
class Search:
    """The best packing so far as ``owner[subchannel]``, its value, and what bounds all packings.

    ``better`` finds the owners of a better packing at some cost. ``step`` is a number of which all
    values are multiples, or 0 if there is none.
    """

    cell: Cell
    owner: NDArray[np.int64]
    better: Callable[[], NDArray[np.int64]]
    step: float
    work: Work
    value: float = 0.0
    bound: float = math.inf
    most_sets: int = _FIRST_SETS

    @property
    def gap(self) -> float:
        """How much the best packing may be worth more than rounding can explain; else below 0."""
        return self.bound - self.value - self._least_gain

    @property
    def _least_gain(self) -> float:
        """What a packing must be worth more to be better."""
        return max(self.step * (1 - 1e-6), _ROUNDING * self.value)

    @property
    def proven(self) -> bool:
        """Whether no packing is better."""
        return self.gap <= 0

    def run(self) -> None:
        """Search until the best packing is proven, or a limit is reached."""
        relaxation = self._begin()
        relaxation.lower(self._note, self.work)
        if not self.proven:
            self._accept(self.cell, self._sets_of(self.better()))
        while not (self.proven or self.work.over or self.most_sets > _MOST_SETS):
            relaxation.drop(self.value)
            self._look_below(relaxation.cell, relaxation.prices)
            self.most_sets *= 4

    def _begin(self) -> Relaxation:
        """From the packing given, and from the best one with a single subchannel per UE."""
        from agewise.spectrum.exact import packing_kernels

        cell = self.cell
        packed = self._sets_of(self.owner)
        owner, price = packing_kernels.match(
            cell.gains, cell.power_budget, cell.least_snr, cell.target, cell.ues, cell.weights
        )
        matched = Sets.owned(owner)
        for sets in (packed, matched):
            self._accept(cell, sets)
        prices, found, _ = cheapest_sets(cell, price, self.work)
        self._note(prices)
        return Relaxation(cell, packed + matched + found, prices)

    def _sets_of(self, owner: NDArray[np.int64]) -> Sets:
        """The sets of a packing given by the owners of the subchannels."""
        place = np.full(self.cell.gains.shape[0] + 1, -1)  # the last one is for nobody
        place[self.cell.ues] = np.arange(self.cell.ues.size)
        return Sets.owned(place[owner])

    def _note(self, prices: Prices) -> bool:
        """Take over a bound; whether it proves the best packing."""
        self.bound = min(self.bound, prices.bound)
        return self.proven

    def _accept(self, cell: Cell, sets: Sets) -> None:
        """Take over a packing if it is better."""
        value = math.fsum(cell.weights[sets.of])
        if value > self.value:
            self.value, self.owner = value, _owner(cell, sets)

    def _look_below(self, cell: Cell, prices: Prices) -> None:
        """Search the packings that lose less against the bound than the best so far.

        First those that lose little. If there are any, the one that loses least is the optimum;
        if there are none, the bound falls by what was searched in vain.
        """
        known = -1  # of so many sets the heaviest packing is known; more are searched later
        for part in _PARTS:
            limit = self._limit(prices.bound, part)
            sets, complete = sets_losing_less(cell, prices, limit, self.most_sets, self.work)
            if sets.count > known:
                floor = max(self.value + self._least_gain, prices.bound - limit)
                found, certain = best_packing(cell, sets, floor, self._least_gain, self.work)
                if found is not None:
                    self._accept(cell, found)
                    known = sets.count
                complete = complete and certain
            if not complete:
                return
            self.bound = min(self.bound, max(self.value, prices.bound - limit))
            if self.proven:
                return

    def _limit(self, bound: float, part: float) -> float:
        """The loss that a packing must stay below if it is to close this part of the gap."""
        gap = bound - self.value - 0.999 * self._least_gain  # a whole gap then closes for sure
        if self.step > 0:  # nothing lies between the bound and the next multiple below it
            highest = self.step * math.floor(bound / self.step + 1e-6)
            return min(gap, max(part * gap, bound - highest + 1e-3 * self.step))
        return part * gap


def _owner(cell: Cell, sets: Sets) -> NDArray[np.int64]:
    """``owner[subchannel]`` of disjoint sets, by UE; -1 is nobody."""
    owner = np.full(cell.subchannels, -1, np.int64)
    owner[sets.members] = np.repeat(cell.ues[sets.of], sets.sizes)
    return owner
