"""The optimum of problem (3), with the proof that nothing is better."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.spectrum.allocation import Allocation
from agewise.spectrum.auction import auction
from agewise.spectrum.exact.prices import Cell
from agewise.spectrum.exact.search import Search
from agewise.spectrum.exact.work import Work
from agewise.spectrum.pack import pack
from agewise.spectrum.uplink import Uplink
from agewise.spectrum.waterfill import waterfill


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best allocation found, its value, and the bound that no allocation exceeds.

    ``value`` is the sum of the weights of the scheduled UEs. Where ``proven``, it is the optimum.
    """

    allocation: Allocation
    value: float
    bound: float
    proven: bool

    @property
    def gap(self) -> float:
        """How far the value may be below the optimum, relative to the bound."""
        return (self.bound - self.value) / self.bound if self.bound > 0 else 0.0


def solve(
    uplink: Uplink,
    weights: ArrayLike,
    rank: ArrayLike | None = None,
    *,
    work_limit: int | None = None,
    time_limit_s: float | None = None,
) -> Optimum:
    """Problem (3), exactly: the feasible allocation with the highest sum of ``weights``.

    UEs of weight 0 add nothing to the value; they get what subchannels are left, as `pack` would
    share them out. Which of several optima is returned depends on ``rank`` (a whole number per
    UE, the index by default), which puts the UEs in order as it does in `pack`.

    The problem is NP-hard. Without a limit the search goes on until the optimum is proven, unless
    more than a million sets of subchannels could still be part of it. At a limit the best
    allocation so far is returned, with a bound that still holds. ``work_limit`` counts steps
    (about a million a second), so that the same input gives the same answer on every machine;
    under ``time_limit_s`` it depends on the machine how far the search gets.

    >>> uplink = Uplink(np.array([[7.0, 3.0], [9.0, 1.0]]), power_budget=1.0, rate_threshold=1.0)
    >>> best = solve(uplink, weights=[2.0, 3.0])
    >>> best.allocation.owner, best.value, best.proven
    (array([1, 0]), 5.0, True)
    """
    for name, given in (("work_limit", work_limit), ("time_limit_s", time_limit_s)):
        if given is not None and not given >= 0:
            raise ValueError(f"{name} must be non-negative, not {given}")
    packed = pack(uplink, weights, rank)  # checks the weights and the rank
    weight = np.asarray(weights, dtype=np.float64)
    with np.errstate(over="ignore"):
        if not math.isfinite(weight.sum()):
            raise ValueError("weights are too large: their sum overflows; scale them")
    ranks = np.arange(uplink.ue_count) if rank is None else np.asarray(rank)
    cell, unit = _cell(uplink, weight, ranks)
    step = _step(weight[cell.ues]) / unit
    work = Work(uplink.subchannel_count, work_limit, time_limit_s)
    search = Search(cell, packed.owner, lambda: auction(uplink, weight, rank).owner, step, work)
    search.run()
    allocation = _allocation(uplink, weight, ranks, search.owner)
    value = math.fsum(weight[allocation.scheduled])
    bound = value if search.proven else max(value, search.bound * unit)
    return Optimum(allocation, value, bound, search.proven)


def _cell(
    uplink: Uplink, weight: NDArray[np.float64], rank: NDArray[np.int64]
) -> tuple[Cell, float]:
    """The UEs that count, heaviest first, their weights in units of the highest, and that unit."""
    from agewise.spectrum import kernels
    from agewise.spectrum.exact import set_kernels

    target = kernels.target_nats(uplink.rate_threshold)
    ues = np.lexsort((rank, -weight))
    ues = ues[weight[ues] > 0]
    budget, least_snr = uplink.power_budget, float(kernels.LEAST_SNR)
    ues = ues[
        set_kernels.reachable(uplink.gains, uplink.best_gains, budget, least_snr, target, ues)
    ]
    unit = float(weight[ues].max()) if ues.size else 1.0
    return Cell(uplink.gains, budget, least_snr, target, ues, weight[ues] / unit), unit


def _step(weight: NDArray[np.float64]) -> float:
    """A number of which all sums of the weights are multiples, or 0 if none is known."""
    if weight.size == 0:
        return 0.0
    if (weight == weight[0]).all():
        return float(weight[0])
    if weight.max() < 2**53 and (weight == np.floor(weight)).all():
        return float(np.gcd.reduce(weight.astype(np.int64)))
    return 0.0


def _allocation(
    uplink: Uplink,
    weight: NDArray[np.float64],
    rank: NDArray[np.int64],
    owner: NDArray[np.int64],
) -> Allocation:
    """The owners with their powers, and whoever else fits on the subchannels that are free."""
    owners, power = owner.copy(), np.zeros(owner.size)
    for ue in np.unique(owner[owner >= 0]):
        held = owner == ue
        power[held] = waterfill(uplink.gains[ue, held], uplink.power_budget).power
    if (owner < 0).any():
        left = uplink.gains.copy()
        left[:, owner >= 0] = 0.0
        left[owner[owner >= 0]] = 0.0
        rest = pack(Uplink(left, uplink.power_budget, uplink.rate_threshold), weight, rank)
        owners = np.where(owner < 0, rest.owner, owner)
        power = np.where(owner < 0, rest.power, power)
    return Allocation.of(uplink, owners, power)
