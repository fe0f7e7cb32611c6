"""Packing: from a utility of each UE to an allocation of the spectrum."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.checks import one_of, text_parameters, whole_parameter
from agewise.core.pack import Bidders, fill_in_order, pack_by_auction, pack_lazily
from agewise.core.proof import check_utilities, first_repeated
from agewise.spectrum.allocation import Allocation
from agewise.spectrum.uplink import Uplink

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_INT = np.dtype(np.int64)


@dataclass(frozen=True)
class Packing(ABC):
    """A way to turn utilities into subchannels and power; a policy chooses one.

    A finite utility of at least 0 is a weight, with 0 for a UE that is served only if nobody else
    wants what is left. -inf excludes a UE. +inf goes before all others: UEs of that utility are
    served one after another in the order of ties. ``rank`` (a whole number per UE, by default its
    index) is the order of ties: among equals the lower goes first.
    """

    name: ClassVar[str]

    @classmethod
    def of(cls, packing: "Packing | str") -> "Packing":
        """Return a packing from its name, with parameters behind a colon, or as it is.

        >>> print(Packing.of("exact:work_limit=3000"))
        exact:work_limit=3000
        """
        if isinstance(packing, Packing):
            return packing
        kinds = {kind.name: kind for kind in Packing.__subclasses__()}
        name, _, written = str(packing).partition(":")
        one_of("packing", name, kinds)
        known = [each.name for each in fields(kinds[name])]
        return kinds[name](**text_parameters(f"packing {name!r}", written, known))

    def __str__(self) -> str:
        """Name the packing, with the parameters that are not the default."""
        changed = [
            f"{each.name}={getattr(self, each.name)}"
            for each in fields(self)
            if getattr(self, each.name) != each.default
        ]
        return ":".join([self.name, ",".join(changed)]) if changed else self.name

    def pack(self, uplink: Uplink, utility: ArrayLike, rank: ArrayLike | None = None) -> Allocation:
        """Return who transmits where, by the ``utility`` of each UE; ``ValueError`` if it is none.

        >>> uplink = Uplink(np.array([[4.0, 1.0], [9.0, 3.0]]), 1.0, rate_threshold=1.0)
        >>> Greedy().pack(uplink, [1.0, 5.0]).owner
        array([ 1, -1])
        """
        utilities = np.asarray(utility)
        if utilities.dtype.kind not in "iuf":
            raise ValueError(f"utilities must be real numbers, not {utilities.dtype}")
        utilities = np.ascontiguousarray(utilities, dtype=np.float64)
        ranks = np.arange(uplink.ue_count) if rank is None else _whole_numbers("rank", rank)
        if not utilities.shape == ranks.shape == (uplink.ue_count,):
            wrong = "rank" if utilities.shape == (uplink.ue_count,) else "utilities"
            raise ValueError(
                f"{wrong} must have one entry for each of the {uplink.ue_count} UEs, not shape "
                f"{(ranks if wrong == 'rank' else utilities).shape}"
            )
        invalid, finite = check_utilities(utilities)
        if invalid >= 0:
            raise ValueError(
                f"utilities must be at least 0, or infinite: that of UE {invalid} is "
                f"{utilities[invalid]}"
            )
        if finite:
            return self._pack(uplink, utilities, ranks)
        return self._pack_infinite(uplink, utilities, ranks)

    @abstractmethod
    def _pack(self, uplink: Uplink, weights: _Floats, rank: _Ints) -> Allocation:
        """Pack by finite weights."""

    def _pack_infinite(self, uplink: Uplink, utility: _Floats, rank: _Ints) -> Allocation:
        """Serve the UEs of utility +inf in the order of ties, then pack those of finite utility."""
        urgent = np.flatnonzero(utility == np.inf)
        first = fill(uplink, urgent[np.argsort(rank[urgent], kind="stable")])
        return self.pack_rest(uplink, first, utility, rank)

    def pack_rest(
        self, uplink: Uplink, first: Allocation, utility: _Floats, rank: _Ints
    ) -> Allocation:
        """Pack the other UEs of finite utility on the subchannels that ``first`` leaves free."""
        taken, finite = first.owner >= 0, np.isfinite(utility)
        eligible = finite & ~first.scheduled
        left = np.where(eligible[:, np.newaxis] & ~taken, uplink.gains, 0.0)
        free = Uplink(left, uplink.power_budget, uplink.rate_threshold)
        rest = self._pack(free, np.where(finite, utility, 0.0), rank)
        owner = np.where(taken, first.owner, rest.owner)
        return Allocation.of(uplink, owner, np.where(taken, first.power, rest.power))


@dataclass(frozen=True)
class Greedy(Packing):
    """Algorithm 2: the highest utility per subchannel needed first, and so on.

    After each pick the needs of the others are those on the subchannels still free. Among equal
    scores the UE that needs fewer subchannels goes first, then ties decide. Scores are equal if
    they differ by less than one part in 10^12, which is rounding.
    """

    name: ClassVar[str] = "greedy"

    def _pack(self, uplink: Uplink, weights: _Floats, rank: _Ints) -> Allocation:
        granted = pack_lazily(
            uplink.gains, uplink.best_gains, weights, rank, uplink.power_budget,
            uplink.rate_threshold,
        )  # fmt: skip
        return _allocation(uplink, *granted)


@dataclass(frozen=True)
class InOrder(Packing):
    """The highest utility first, whatever it needs; each takes its fewest best free subchannels.

    A UE that what is left cannot serve is passed over.
    """

    name: ClassVar[str] = "in-order"

    def _pack(self, uplink: Uplink, weights: _Floats, rank: _Ints) -> Allocation:
        return fill(uplink, np.lexsort((rank, -weights)))

    def _pack_infinite(self, uplink: Uplink, utility: _Floats, rank: _Ints) -> Allocation:
        wanted = np.flatnonzero(utility > -np.inf)
        return fill(uplink, wanted[np.lexsort((rank[wanted], -utility[wanted]))])


@dataclass(frozen=True)
class Auction(Packing):
    """Better than greedy in a few times its work: subchannels have prices.

    Algorithm 2 gives each UE its best subchannels, which others may want more. Here subchannels
    have prices, at first what is asked for them: of the smallest sets that reach the rate a UE
    takes a cheap one. Then prices move: each UE claims a cheap set if its utility exceeds the
    price, and what several claim becomes dearer, what nobody claims cheaper. At each of
    ``price_rounds + 1`` prices the UEs are packed in the order of utility per need^exponent, for
    each of the ``exponents``, and the packing with the highest sum of utilities is the answer.

    >>> uplink = Uplink(np.array([[9.0, 8.0], [9.0, 1.0]]), 1.0, rate_threshold=1.5)
    >>> Auction().pack(uplink, [2.0, 1.0]).owner
    array([1, 0])
    """

    name: ClassVar[str] = "auction"
    #: Found best on optima of the paper's cell, with the rounds (docs/policies.md has figures).
    exponents: ClassVar[tuple[float, ...]] = (0.75, 1.0)
    price_rounds: int = 5

    def __post_init__(self) -> None:
        rounds = whole_parameter("price_rounds", self.price_rounds)
        object.__setattr__(self, "price_rounds", rounds)

    def _pack(self, uplink: Uplink, weights: _Floats, rank: _Ints) -> Allocation:
        order = np.lexsort((rank, -weights))
        bidders = Bidders(weights, rank, order, uplink.power_budget, uplink.rate_threshold)
        granted = pack_by_auction(
            uplink.gains, bidders, np.array(self.exponents), self.price_rounds
        )
        return _allocation(uplink, *granted)


def fill(uplink: Uplink, order: ArrayLike) -> Allocation:
    """Serve UEs in the given ``order``: each takes its fewest best free subchannels.

    A UE that what is left cannot serve is passed over. ``order`` holds UE indices; those that
    it leaves out are not served.
    """
    ues = _whole_numbers("order", order)
    if ues.ndim != 1:
        raise ValueError(f"order must be a list of UEs, not an array {ues.shape}")
    if (place := first_repeated(ues, uplink.ue_count)) >= 0:
        raise ValueError(
            f"order must list UEs from 0 to {uplink.ue_count - 1}, each at most once: entry "
            f"{place} is UE {ues[place]}"
        )
    granted = fill_in_order(
        uplink.gains, uplink.best_gains, ues, uplink.power_budget, uplink.rate_threshold
    )
    return _allocation(uplink, *granted)


def _allocation(uplink: Uplink, owner: _Ints, power: _Floats, gain: _Floats) -> Allocation:
    return Allocation(owner, power, gain, uplink.power_budget, uplink.rate_threshold)


def _whole_numbers(name: str, values: ArrayLike) -> _Ints:
    if type(values) is np.ndarray and values.dtype == _INT and values.flags.c_contiguous:
        return values  # as a rule, and checked fast
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers, not {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)
