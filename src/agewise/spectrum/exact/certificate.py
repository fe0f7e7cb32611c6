"""Exact arithmetic at the end: for weights so far apart that float64 cannot tell packings apart.

Every float is a fraction, so weights and duals become whole numbers of one small unit, and
nothing is rounded from there on.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from agewise.spectrum.exact.problem import Columns

#: States after which the search gives up: it is for what a few hundred of them settle.
MOST_STATES = 50_000


@dataclass(frozen=True)
class _Column:
    """A column: its number, its subchannels as bits, and its reduced cost."""

    number: int
    bits: int
    cost: int


@dataclass
class ExactSearch:
    """Looks for a packing within ``limit`` of the dual bound, all in whole numbers.

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
    _usable: list[int] = field(default_factory=list)
    _seen: dict[tuple[int, int], int] = field(default_factory=dict)

    @classmethod
    def over(
        cls,
        columns: Columns,
        weights: list[Fraction],
        duals: list[Fraction],
        incumbent: Fraction,
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
        later = 0
        self._usable = [0]
        for columns in reversed(self.columns_of):
            columns.sort(key=lambda column: column.cost)
            for column in columns:
                later |= column.bits
            self._usable.append(later)
        self._usable.reverse()
        stack: list[tuple[int, int, int, tuple[int, ...]]] = [
            (0, (1 << len(self.unused)) - 1, 0, ())
        ]
        while stack and self.states < most_states:
            self.states += 1
            place, free, gap, chosen = stack.pop()
            lost = free & ~self._usable[place]  # nobody who is still to come can use these
            gap += sum(dual for n, dual in enumerate(self.unused) if lost >> n & 1)
            free &= ~lost
            if gap >= self.limit or self._seen.get((place, free), self.limit) <= gap:
                continue
            self._seen[place, free] = gap
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


def exact_sum(numbers: NDArray[np.float64]) -> Fraction:
    """The sum without rounding."""
    return sum((Fraction(float(number)) for number in numbers), Fraction(0))
