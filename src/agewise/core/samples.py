"""Samples as the kernels read them: only what is not zero, row after row."""

from typing import NamedTuple

import numpy as np
from numba import njit

from agewise.core.jit import kernel
from agewise.core.lanes import LANES, load, prefetch, spread, store


class Rows(NamedTuple):
    """Row i has the pairs (``features[j]``, ``values[j]``), ``starts[i] <= j < starts[i + 1]``.

    A feature's value is its entry times ``unit``. Behind the last row there are 16 more entries,
    so that 16 may be read from any entry on.
    """

    features: np.ndarray
    values: np.ndarray
    starts: np.ndarray
    labels: np.ndarray
    unit: np.float32


def rows_of(table, labels, unit, order) -> Rows:
    """The rows ``order`` of a table ``[sample, feature]``, in this order."""
    table = np.ascontiguousarray(table)
    starts = np.empty(order.size + 1, np.int64)
    count_entries(table, order, starts)
    small = table.shape[1] <= np.iinfo(np.uint16).max
    features = np.zeros(starts[-1] + LANES, np.uint16 if small else np.uint32)
    values = np.zeros(starts[-1] + LANES, table.dtype)
    fill_entries(table, order, starts, features, values)
    return Rows(features, values, starts, labels[order], np.float32(unit))


@kernel
def count_entries(table, order, starts):
    """Where the entries of each row begin: row i holds the non-zeros of ``table[order[i]]``."""
    starts[0] = 0
    for row in range(order.size):
        count = 0
        for feature in range(table.shape[1]):
            count += table[order[row], feature] != 0
        starts[row + 1] = starts[row] + count


@kernel
def fill_entries(table, order, starts, features, values):
    """The non-zeros of ``table[order[i]]`` as (feature, value) pairs."""
    for row in range(order.size):
        at = starts[row]
        for feature in range(table.shape[1]):
            value = table[order[row], feature]
            if value != 0:
                features[at] = feature
                values[at] = value
                at += 1


@njit
def read_values(values, start, count, numbers):
    """The values of a row as float32 in ``numbers``, with 16 zeros behind them.

    Converting 16 at a time costs a fraction of converting each where it is used.
    """
    for at in range(0, count, LANES):
        store(numbers, at, load(values, start + at))
    store(numbers, count, spread(0.0))


@njit
def ask_for_row(rows, row):
    """Prefetch the label and the entries of a row, one request a cache line."""
    start, stop = rows.starts[row], rows.starts[row + 1]
    prefetch(rows.labels, row)
    for at in range(start, stop, 64 // rows.features.itemsize):
        prefetch(rows.features, at)
    for at in range(start, stop, 64 // rows.values.itemsize):
        prefetch(rows.values, at)
