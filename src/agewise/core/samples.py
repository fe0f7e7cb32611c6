"""Samples as the kernels read them: only what is not zero, row after row."""

from typing import NamedTuple

import numpy as np

from agewise.core.jit import inlined, kernel
from agewise.core.lanes import prefetch
from agewise.core.random import fold_in, randint


class Rows(NamedTuple):
    """Row i has the pairs (``features[j]``, ``values[j]``), ``starts[i] <= j < starts[i + 1]``.

    The value of a feature is its entry times ``unit``.
    """

    features: np.ndarray
    values: np.ndarray
    starts: np.ndarray
    labels: np.ndarray
    unit: np.float32


def rows_of(table: np.ndarray, labels: np.ndarray, unit: float, order: np.ndarray) -> Rows:
    """The rows ``order`` of a table ``[sample, feature]``, in this order."""
    table = np.ascontiguousarray(table)
    starts = _count_entries(table, order)
    small = table.shape[1] <= np.iinfo(np.uint16).max
    features = np.empty(starts[-1], np.uint16 if small else np.uint32)
    values = np.empty(starts[-1], table.dtype)
    _fill_entries(table, order, starts, features, values)
    return Rows(features, values, starts, labels[order], np.float32(unit))


@kernel
def _count_entries(table, order):
    """Where the non-zeros of each row begin; NumPy would make a table of Booleans first."""
    starts = np.zeros(order.size + 1, np.int64)
    for row in range(order.size):
        count = 0
        for feature in range(table.shape[1]):
            count += table[order[row], feature] != 0
        starts[row + 1] = starts[row] + count
    return starts


@kernel
def _fill_entries(table, order, starts, features, values):
    """The non-zeros of ``table[order[i]]`` as (feature, value) pairs."""
    for row in range(order.size):
        at = starts[row]
        for feature in range(table.shape[1]):
            value = table[order[row], feature]
            if value != 0:
                features[at] = feature
                values[at] = value
                at += 1


@inlined
def ask_for_row(rows, row):
    """Prefetch the label and the entries of a row, one request a cache line."""
    start, stop = rows.starts[row], rows.starts[row + 1]
    prefetch(rows.labels, row)
    for at in range(start, stop, 64 // rows.features.itemsize):
        prefetch(rows.features, at)
    for at in range(start, stop, 64 // rows.values.itemsize):
        prefetch(rows.values, at)


@kernel
def seed_of(key, t, ue):
    """A key, or a seed for other generators, that follows from the key, the round and the UE."""
    return fold_in(fold_in(key, t), ue)


@kernel(nogil=True)
def draw_rows(key, t, ue, offsets, count):
    """``int64[count]``: the rows that a UE draws from its own in round ``t``.

    Its own are those from ``offsets[ue]`` to ``offsets[ue + 1]``. All learners draw the same ones.
    """
    own, first, size = seed_of(key, t, ue), offsets[ue], offsets[ue + 1] - offsets[ue]
    drawn = np.empty(count, np.int64)
    for n in range(count):
        drawn[n] = first + randint(own, n, size)
    return drawn
