"""The bound on problem (3): its linear relaxation over all sets, by column generation."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from agewise.spectrum.exact.prices import Cell, Prices, cheapest_sets
from agewise.spectrum.exact.program import fractional_packing
from agewise.spectrum.exact.sets import Sets
from agewise.spectrum.exact.work import Work

#: A set enters the linear program if it improves on it by this much: less could be the rounding
#: of the solver, whose tolerance is 1e-7, and would be found again and again.
_LEAST_GAIN = 1e-6


@dataclass
class Relaxation:
    """The sets found so far, and the prices with the lowest bound."""

    cell: Cell
    sets: Sets
    prices: Prices

    def lower(self, enough: Callable[[Prices], bool], work: Work) -> None:
        """Lower the bound as far as the relaxation goes, or until it is ``enough``.

        The linear program only proposes prices. The bound comes from the exact cost of each UE's
        cheapest set at these prices, so that no tolerance of the solver enters it.
        """
        count = self.cell.subchannels
        while not (enough(self.prices) or work.over):
            _, row = fractional_packing(self.cell.weights, self.sets, count, work)
            prices, found, cost = cheapest_sets(self.cell, row[:count], work)
            if prices.bound < self.prices.bound:
                self.prices = prices
            gain = self.cell.weights[found.of] - cost - row[count + found.of]
            if not (gain > _LEAST_GAIN).any():
                enough(self.prices)
                return
            self.sets += found.take(gain > _LEAST_GAIN)

    def drop(self, value: float) -> None:
        """Drop the UEs that no packing worth more than ``value`` can serve."""
        kept = self.prices.bound + self.prices.spare > value
        place = np.cumsum(kept) - 1
        sets = self.sets.take(kept[self.sets.of])
        self.sets = replace(sets, of=place[sets.of])
        self.cell = replace(self.cell, ues=self.cell.ues[kept], weights=self.cell.weights[kept])
        self.prices = replace(self.prices, spare=self.prices.spare[kept])
