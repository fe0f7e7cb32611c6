"""Which UEs there are: columns of numbers with a row for each, found again by their ids."""

import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]


class Roster:
    """The UEs that were ever known, by id, with one row each in every column.

    Rows never move: a UE that leaves keeps its row and finds it again when it comes back. The
    present UEs are a selection of rows in the order of ``ids``. ``fills`` has the value of a new
    UE in each column, whose type is that of the value. Columns are replaced, never changed.
    """

    def __init__(self, ids: Iterable[Hashable], fills: Mapping[str, float]) -> None:
        self.ids: Sequence[Hashable] = ids if isinstance(ids, range) else tuple(ids)
        self._row: dict[Hashable, int] | None = None  # of every id, once anybody asks
        self._rows: NDArray[np.int64] | None = None  # of the present UEs, unless it is all of them
        self._fills = dict(fills)
        self._columns = {name: _constant(len(self.ids), fill) for name, fill in fills.items()}

    def __len__(self) -> int:
        """How many UEs are present."""
        return len(self.ids)

    def set_present(self, ids: Iterable[Hashable]) -> None:
        """From now on these UEs are there, in this order; those not known yet get a new row."""
        wanted = tuple(ids)
        if len(set(wanted)) != len(wanted):
            raise ValueError("the ids of the UEs must differ")
        if self._row is None:
            self._row = {id_: row for row, id_ in enumerate(self.ids)}
        new = [id_ for id_ in wanted if id_ not in self._row]
        for id_ in new:
            self._row[id_] = len(self._row)
        for name, column in self._columns.items() if new else ():
            added = np.full(len(new), self._fills[name], column.dtype)
            self._columns[name] = _fixed(np.concatenate((column, added)))
        self.ids = wanted
        self._rows = np.array([self._row[id_] for id_ in wanted], np.int64)

    def rows(self, ues: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of these of the present UEs."""
        return ues if self._rows is None else self._rows[ues]

    def columns(self) -> dict[str, Column]:
        """All columns of all UEs that were ever known, by name."""
        return dict(self._columns)

    def of_all(self, name: str) -> Column:
        """A column of all UEs that were ever known."""
        return self._columns[name]

    def put_of_all(self, name: str, column: Column) -> None:
        """Replace a column of all UEs."""
        self._columns[name] = _fixed(column)

    def present(self, name: str) -> Column:
        """A column of the present UEs, in their order."""
        column = self._columns[name]
        return column if self._rows is None else _fixed(column[self._rows])

    def put_present(self, name: str, values: Column) -> None:
        """Replace the entries of the present UEs."""
        if self._rows is None:
            self.put_of_all(name, np.array(values))
            return
        kind = np.result_type(self._columns[name], values)  # ages may be whole numbers or not
        self._columns[name] = self._columns[name].astype(kind)
        self.put(name, values, self._rows)

    def put(self, name: str, values: Column | float, rows: NDArray[np.int64]) -> None:
        """Replace the entries of these rows."""
        column = self._columns[name].copy()
        column[rows] = values
        self.put_of_all(name, column)


@functools.lru_cache(maxsize=64, typed=True)  # 0 and 0.0 make other columns
def _constant(count: int, fill: float) -> Column:
    """A new column; columns are never changed, so that many access points may share one."""
    return _fixed(np.full(count, fill))


def _fixed(column: Column) -> Column:
    column.setflags(write=False)
    return column
