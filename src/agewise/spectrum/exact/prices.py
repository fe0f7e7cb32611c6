"""Prices of subchannels: what the cheapest sets cost, and the bound on problem (3) from that."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise.spectrum.exact.sets import Sets
from agewise.spectrum.exact.work import Work


@dataclass(frozen=True, eq=False)
class Cell:
    """The UEs that can add to the optimum, and what decides which sets serve them.

    ``ues[place]`` are rows of ``gains``, in falling order of ``weights[place]``; elsewhere such a
    UE goes by its place.
    """

    gains: NDArray[np.float64]
    power_budget: float
    least_snr: float
    target: float
    ues: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def subchannels(self) -> int:
        """N, the number of subchannels."""
        return int(self.gains.shape[1])


@dataclass(frozen=True, eq=False)
class Prices:
    """A price for each subchannel; whatever they are, they give a valid bound.

    ``spare[place]`` is what the weight of a UE exceeds the cost of its cheapest set by, or more;
    below 0 where it falls short. No packing is worth more than all prices and all positive spares
    together. What a packing loses against this bound splits into what it loses by each row that
    it does not use and by each of its sets.
    """

    subchannel: NDArray[np.float64]
    spare: NDArray[np.float64]

    @property
    def row(self) -> NDArray[np.float64]:
        """What a packing loses by each row, subchannel or UE, that it does not use."""
        return np.concatenate((self.subchannel, np.maximum(self.spare, 0.0)))

    @property
    def bound(self) -> float:
        """What no packing is worth more than."""
        return math.fsum(self.row)


def cheapest_sets(
    cell: Cell, subchannel: NDArray[np.float64], work: Work
) -> tuple[Prices, Sets, NDArray[np.float64]]:
    """The cheapest set of each UE that costs less than its weight, and what it costs."""
    least, sets, cost, _ = _sets_within(cell, subchannel, cell.weights, None, work)
    return Prices(subchannel, cell.weights - least), sets, cost


def sets_losing_less(
    cell: Cell, prices: Prices, limit: float, most_sets: int, work: Work
) -> tuple[Sets, bool]:
    """Minimal sets that lose less than ``limit``, and whether these are all."""
    limits = cell.weights - np.maximum(prices.spare, 0.0) + limit
    _, sets, _, complete = _sets_within(cell, prices.subchannel, limits, most_sets, work)
    return sets, complete


def _sets_within(
    cell: Cell,
    subchannel: NDArray[np.float64],
    limits: NDArray[np.float64],
    most_sets: int | None,
    work: Work,
) -> tuple[NDArray[np.float64], Sets, NDArray[np.float64], bool]:
    from agewise.spectrum.exact import set_kernels

    least, of, cost, start, members, nodes, enough = set_kernels.sets_within(
        cell.gains, cell.power_budget, cell.least_snr, cell.target, cell.ues, subchannel, limits,
        most_sets is not None, most_sets or 0, work.nodes_left,
    )  # fmt: skip
    work.spend(nodes)
    return least, Sets(of, start, members), cost, enough
