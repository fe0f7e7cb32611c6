"""Roster of the UEs: columns of numbers with a row for each, found again by its id."""

import functools
import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.spectrum.uplink import read_only

Column = NDArray[Any]


class Roster:
    """The UEs that were ever known, by id, with one row each in every column.

    Rows never move: a UE that leaves keeps its row and finds it again when it comes back. The
    present UEs are a selection of rows in the order of ``ids``; a number of UEs is short for the
    ids 0, 1, 2 and so on. ``fills`` has the value of a new UE in each of the ``columns``, whose
    type is that of the value. Columns are replaced, never changed.
    """

    def __init__(self, ids: Iterable[Hashable] | int, fills: Mapping[str, float]) -> None:
        self._fills = dict(fills)
        self._row: dict[Hashable, int] = {}
        # The present rows, in order; None where all are, for then nothing need be selected.
        self._rows: NDArray[np.int64] | None = None
        self.ids: Sequence[Hashable] = range(ids) if isinstance(ids, int) else ()
        self.columns = {name: _filled(len(self.ids), fill) for name, fill in fills.items()}
        if not isinstance(ids, int):
            self.set_present(ids)

    def __len__(self) -> int:
        """Count the present UEs."""
        return len(self.ids)

    def set_present(self, ids: Iterable[Hashable]) -> None:
        """From now on these UEs are there, in this order; those not known yet get a new row."""
        ids = tuple(ids)
        if len(set(ids)) != len(ids):
            raise ValueError("the ids of the UEs must differ")
        if not self._row:  # of numbers, which are their rows, nobody asked for one yet
            self._row = {id_: row for row, id_ in enumerate(self.ids)}
        self.ids = ids
        new = [id_ for id_ in self.ids if id_ not in self._row]
        self._row.update(zip(new, itertools.count(len(self._row)), strict=False))
        rows, known = [self._row[id_] for id_ in self.ids], len(self._row)
        for name, column in self.columns.items():
            if column.size < known:
                added = _filled(known - column.size, self._fills[name])
                both = read_only(np.concatenate((column, added))) if column.size else added
                self.columns[name] = both
        self._rows = None if rows == list(range(known)) else np.array(rows, np.int64)

    def rows(self, ues: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of these of the present UEs."""
        return ues if self._rows is None else self._rows[ues]

    def present(self, name: str) -> Column:
        """A column of the present UEs, in their order."""
        column = self.columns[name]
        return column if self._rows is None else read_only(column[self._rows])

    def put(self, name: str, values: ArrayLike, rows: NDArray[np.int64] | None = None) -> None:
        """Replace the entries of these rows, by default of the present UEs."""
        new, old = np.asarray(values), self.columns[name]
        column = old.astype(np.result_type(old, new))  # ages may be whole numbers or not
        rows = self._rows if rows is None else rows
        column[... if rows is None else rows] = new
        self.columns[name] = read_only(column)

    def count(self, name: str, rows: NDArray[np.int64]) -> None:
        """Add one to the entries of these rows."""
        column = self.columns[name].copy()
        column[rows] += 1
        self.columns[name] = read_only(column)


@functools.lru_cache(maxsize=32, typed=True)
def _filled(count: int, fill: float) -> Column:
    """Entries that are all alike; the array is shared and read-only."""
    return read_only(np.full(count, fill))
