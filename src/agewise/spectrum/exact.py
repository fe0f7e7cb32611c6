"""The optimum of problem (3), with the proof that nothing is better."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import whole_parameter
from agewise.core.exact import match
from agewise.core.waterfill import waterfill_owners
from agewise.spectrum._columns import (
    Candidates,
    ColumnGeneration,
    Columns,
    Duals,
    Effort,
    columns_within_gap,
    price_columns,
    rounding_of_sums,
)
from agewise.spectrum._search import MOST_STATES, ExactSearch, best_packing
from agewise.spectrum.allocation import Allocation
from agewise.spectrum.packing import Auction, Greedy, Packing
from agewise.spectrum.uplink import Uplink

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
#: Values count as equal if they differ by less than this share of the smallest weight. It is not
#: a share of the value: beside one weight of 1e10, all others would be less than that.
_ROUNDING = 1e-9
#: What float64 can tell apart is this many times the rounding of a sum.
_RESOLUTION = 64.0
_EPSILON = float(np.finfo(np.float64).eps)
#: How much of the gap is searched, in turn: the optimum is often much nearer to the bound.
_PARTS = (1 / 16, 1 / 4, 1.0)
#: The longest search: some thirty years of steps.
_MOST_STEPS = 10**15
#: Columns among which the first search looks, then four times as many, and so on up to the most.
_FIRST_COLUMNS, _MOST_COLUMNS = 4_000, 1_024_000


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best allocation found, its value, and the bound that no allocation exceeds.

    ``value`` is the sum of the weights of the scheduled UEs. Where ``proven``, it is the optimum:
    exactly if the weights are whole numbers or all alike, otherwise up to a billionth of the
    smallest weight that counts, since equal sums of rounded weights may differ in the last bit.
    """

    allocation: Allocation
    value: float
    bound: float
    proven: bool

    @property
    def gap(self) -> float:
        """Largest distance of the value from the optimum, relative to the bound."""
        return (self.bound - self.value) / self.bound if self.bound > 0 else 0.0


@dataclass(frozen=True)
class Exact(Packing):
    """The optimum of problem (3): the highest sum of utilities over the scheduled UEs.

    As a rule this takes less than a tenth of a second a round with 100 UEs and 20 subchannels, but
    seconds in the hardest rounds: those in which few different utilities occur, or most UEs need
    one or two subchannels. ``work_limit`` bounds the search of a round in steps, not in seconds,
    so that results do not depend on the machine; the default takes a second or two. At the limit
    the best allocation found until then is the answer, which is never worth less than the greedy
    one. UEs of utility 0 get what is left, as `Greedy` would share it out. The order of ties
    decides which of several optima is found.
    """

    name: ClassVar[str] = "exact"
    work_limit: int = 1_000_000

    def __post_init__(self) -> None:
        steps = whole_parameter("work_limit", self.work_limit, most=_MOST_STEPS)
        object.__setattr__(self, "work_limit", steps)

    def _pack(self, uplink: Uplink, weights: _Floats, rank: _Ints) -> Allocation:
        return solve(uplink, weights, rank, work_limit=self.work_limit).allocation


def solve(
    uplink: Uplink,
    weights: ArrayLike,
    rank: ArrayLike | None = None,
    *,
    work_limit: int | None = None,
) -> Optimum:
    """Problem (3), exactly: the feasible allocation with the highest sum of ``weights``.

    UEs of weight 0 add nothing to the value; they get what subchannels are left, as `Greedy` would
    share them out. Which of several optima is returned depends on ``rank`` (a whole number per
    UE, the index by default), which puts the UEs in order as it does in `Packing`.

    The problem is NP-hard. Without a limit the search goes on until the optimum is proven, unless
    more than a million sets of subchannels could still be part of it. At a limit the best
    allocation so far is returned, with a bound that still holds. ``work_limit`` counts steps
    (about a million a second), so that the same input gives the same answer on every machine.

    >>> uplink = Uplink(np.array([[7.0, 3.0], [9.0, 1.0]]), power_budget=1.0, rate_threshold=1.0)
    >>> best = solve(uplink, weights=[2.0, 3.0])
    >>> best.allocation.owner, best.value, best.proven
    (array([1, 0]), 5.0, True)
    """
    if work_limit is not None and not work_limit >= 0:
        raise ValueError(f"work_limit must be non-negative, not {work_limit}")
    packed = Greedy().pack(uplink, weights, rank)  # checks the weights and the rank
    weight = np.asarray(weights, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if not math.isfinite(weight.sum()):
            raise ValueError("weights are too large: their sum overflows; scale them")
    ranks = np.arange(uplink.ue_count) if rank is None else np.asarray(rank)
    # The UEs that count, heaviest first, and their weights in units of the highest.
    ues = np.lexsort((ranks, -weight))
    ues = ues[((weight > 0) & (uplink.needs()[0] > 0))[ues]]
    unit = float(weight[ues].max()) if ues.size else 1.0
    candidates = Candidates(
        uplink.gains, uplink.power_budget, uplink.rate_threshold, ues, weight[ues] / unit
    )
    search = _Search(
        candidates,
        packed.owner.copy(),
        heuristic=lambda: Auction().pack(uplink, weight, rank).owner,
        step=_step(weight[ues]) / unit,
        effort=Effort(uplink.subchannel_count, work_limit),
    )
    search.run()
    if not (search.proven or search.resolves or search.effort.exhausted):
        search.certify(weight, unit)
    # The owners with their powers, and whoever else fits on the subchannels that are free.
    power = waterfill_owners(uplink.gains, uplink.power_budget, search.owner)
    allocation = Allocation.of(uplink, search.owner, power)
    if (search.owner < 0).any():
        allocation = Greedy().pack_rest(uplink, allocation, weight, ranks)
    value = math.fsum(weight[allocation.scheduled])
    bound = max(value, search.certain_bound * unit * (1 + 4 * _EPSILON))
    return Optimum(allocation, value, value if search.proven else bound, search.proven)


@dataclass
class _Search:
    """The incumbent as ``owner[subchannel]``, its value, and the upper bound on all packings.

    ``heuristic`` finds the owners of a good packing at some cost. ``step`` is a number of which
    all values are multiples, or 0 if there is none. ``certain_bound`` is the upper bound with all
    that it may have been rounded.
    """

    candidates: Candidates
    owner: _Ints
    heuristic: Callable[[], _Ints]
    step: float
    effort: Effort
    value: float = 0.0
    upper_bound: float = math.inf
    certain_bound: float = math.inf
    duals: Duals | None = None
    certified: bool = False

    @property
    def resolution(self) -> float:
        """The least difference of values that float64 can tell."""
        return _RESOLUTION * rounding_of_sums(self.candidates.subchannels) * self.value

    @property
    def least_difference(self) -> float:
        """Least difference in worth between the incumbent and a better packing.

        Less what values and bounds may have been rounded, so it may be negative.
        """
        smallest = float(self.candidates.weights[-1]) if self.candidates.ues.size else 0.0
        difference = self.step * (1 - 1e-6) if self.step > 0 else _ROUNDING * smallest
        return difference - 4 * _EPSILON * self.value

    @property
    def resolves(self) -> bool:
        """Tell whether float64 tells the incumbent from all that is better."""
        return self.least_difference >= self.resolution

    @property
    def least_gain(self) -> float:
        """Least gain over the incumbent for which a packing is looked for."""
        return max(self.least_difference, self.resolution)

    @property
    def settled(self) -> bool:
        """Tell whether there is nothing more to look for."""
        return self.upper_bound - self.value - self.least_gain <= 0

    @property
    def proven(self) -> bool:
        """Tell whether no packing is better than the incumbent."""
        return self.certified or self.certain_bound - self.value - self.least_difference <= 0

    def run(self) -> None:
        """Search until the incumbent is proven, as far as float64 goes, or a limit is reached.

        Column generation bounds all packings; then those between incumbent and bound are searched.
        """
        # From the packing given, and from the best one with a single subchannel per UE.
        packed = self._columns_of(self.owner)
        owner, prices = match(*self.candidates)
        matched = Columns.of_owners(owner)
        for columns in (packed, matched):
            self._improve(self.candidates, columns)
        priced, found, _ = price_columns(self.candidates, prices, self.effort)
        self._bounded_by(priced)
        relaxation = ColumnGeneration(self.candidates, packed + matched + found, priced)
        relaxation.run(self._bounded_by, self.effort)
        self.duals = relaxation.duals
        if not self.settled:
            self._improve(self.candidates, self._columns_of(self.heuristic()))
        most_columns = _FIRST_COLUMNS
        while not (self.settled or self.effort.exhausted or most_columns > _MOST_COLUMNS):
            relaxation.drop_candidates(self.value)
            self._close_gap(relaxation.candidates, relaxation.duals, most_columns)
            most_columns *= 4

    def certify(self, weight: _Floats, unit: float) -> None:
        """Search what float64 cannot tell from the incumbent, without rounding.

        ``weight[ue]`` are the weights as they were given, ``unit`` is that of the candidates'.
        """
        if self.duals is None:
            return
        candidates, duals = self.candidates, self.duals
        # More than the gap that exact arithmetic will find, so that no column is missing.
        gap = (duals.upper_bound - self.value) * (1 + 1e-6) + 1e-12 * duals.upper_bound
        columns, complete = columns_within_gap(candidates, duals, gap, _FIRST_COLUMNS, self.effort)
        if not complete:
            return
        served = np.unique(self.owner[self.owner >= 0])
        search = ExactSearch.over(
            columns,
            [Fraction(one) for one in weight[candidates.ues].tolist()],
            [Fraction(one) * Fraction(unit) for one in duals.rows.tolist()],
            sum(map(Fraction, weight[served].tolist()), Fraction(0)),
        )
        self.certified = search.run(min(MOST_STATES, self.effort.node_limit))
        self.effort.spent += search.states
        if search.best is not None:
            packing = columns.take(np.array(search.best, dtype=np.int64))
            self.owner = packing.owners(candidates)
            self.value = packing.value(candidates)

    def _columns_of(self, owner: _Ints) -> Columns:
        """The columns of a packing given by the owners of the subchannels."""
        candidate = np.full(len(self.candidates.gains) + 1, -1)  # the last one is for nobody
        candidate[self.candidates.ues] = np.arange(self.candidates.ues.size)
        return Columns.of_owners(candidate[owner])

    def _bounded_by(self, duals: Duals) -> bool:
        """Lower the upper bound to that of the duals; whether it settles the search."""
        self.upper_bound = min(self.upper_bound, duals.upper_bound)
        self.certain_bound = min(self.certain_bound, duals.upper_bound + duals.rounding)
        return self.settled

    def _improve(self, candidates: Candidates, packing: Columns) -> None:
        """Make a packing the incumbent if it is better."""
        if (value := packing.value(candidates)) > self.value:
            self.value, self.owner = value, packing.owners(candidates)

    def _close_gap(self, candidates: Candidates, duals: Duals, most_columns: int) -> None:
        """Search the packings between the incumbent and the upper bound of the duals.

        First those near the bound. If there are any, the nearest is the optimum; if there are
        none, the bound falls by what was searched in vain.
        """
        searched = -1  # the number of columns whose best packing is known
        for part in _PARTS:
            gap = self._gap_to_search(duals.upper_bound, part)
            columns, complete = columns_within_gap(
                candidates, duals, gap, most_columns, self.effort
            )
            if columns.count > searched:
                cutoff = max(self.value + self.least_gain, duals.upper_bound - gap)
                found, proven = best_packing(
                    candidates, columns, cutoff, self.least_gain, self.effort
                )
                if found is not None:
                    self._improve(candidates, found)
                    searched = columns.count
                complete = complete and proven
            if not complete:
                return
            known = self.value if self.resolves else self.value + self.least_gain
            left = max(known, duals.upper_bound - gap)
            self.upper_bound = min(self.upper_bound, left)
            self.certain_bound = min(self.certain_bound, left)
            if self.settled:
                return

    def _gap_to_search(self, upper_bound: float, part: float) -> float:
        """Give the distance from the bound at which a packing closes this part of the gap."""
        gap = upper_bound - self.value - 0.999 * self.least_gain  # a whole gap closes for sure
        if self.step > 0:  # nothing lies between the bound and the next multiple below it
            highest = self.step * math.floor(upper_bound / self.step + 1e-6)
            return min(gap, max(part * gap, upper_bound - highest + 1e-3 * self.step))
        return part * gap


def _step(weight: _Floats) -> float:
    """A number of which all sums of the weights are multiples, or 0 if none is known."""
    if weight.size == 0:
        return 0.0
    if (weight == weight[0]).all():
        return float(weight[0])
    if weight.max() < 2**53 and (weight == np.floor(weight)).all():
        return float(np.gcd.reduce(weight.astype(np.int64)))
    return 0.0
