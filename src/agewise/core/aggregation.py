"""Kernels of what the access point makes of the models that it receives."""

import numpy as np

from agewise.core.jit import kernel
from agewise.core.lanes import LANES, fused, load, spread, store

_ZERO = np.float32(0.0)
_EXPONENT = np.uint32(0x7F800000)
_SUMS = 8


@kernel
def is_finite(params):
    """Whether no entry of a float32 vector is infinite or not a number."""
    most = np.uint32(0)  # a whole number's maximum has no order, so it is taken many at a time
    for bits in params.view(np.uint32):
        most = max(most, bits & _EXPONENT)
    return most < _EXPONENT


@kernel
def combine(models, factors, start, rest, average):
    """``rest * start`` plus the sum of ``factors[i] * models[i]``, and how far these moved.

    Returns the sum of the squared lengths of the moves from ``start`` and the squared length of
    their sum.
    """
    size = start.size
    weights = factors.astype(np.float32)
    kept = np.float32(rest)
    flat = models.ravel()
    apart, together = np.zeros(LANES), np.zeros(LANES)
    squares, moves = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    whole = size - size % LANES
    for i in range(0, whole, LANES):
        mean = spread(0.0)
        moved = spread(0.0)
        squared = spread(0.0)
        before = load(start, i)
        if kept != _ZERO:
            mean = kept * before
        for k in range(weights.size):
            model = load(flat, k * size + i)
            move = model - before
            mean = fused(weights[k], model, mean)
            moved = moved + move
            squared = fused(move, move, squared)
        store(average, i, mean)
        store(squares, 0, squared)
        store(moves, 0, moved)
        for lane in range(LANES):  # in double: there are many of these
            apart[lane] += squares[lane]
            together[lane] += np.float64(moves[lane]) * moves[lane]
    for i in range(whole, size):
        mean, moved = kept * start[i] if kept != _ZERO else _ZERO, 0.0
        for k in range(weights.size):
            move = np.float64(flat[k * size + i]) - start[i]
            mean += weights[k] * flat[k * size + i]
            moved += move
            apart[0] += move * move
        average[i] = mean
        together[0] += moved * moved
    return apart.sum(), together.sum()


@kernel
def compare_updates(models, start):
    """The squared length of each update ``models[i] - start``, its inner product with their sum,
    and the squared length of the sum.

    In double; eight sums at a time, added up in the end, in an order that no machine changes.
    """
    count, size = models.shape
    squares, inner = np.zeros((count, _SUMS)), np.zeros((count, _SUMS))
    together = np.zeros(_SUMS)
    updates, total = np.empty((count, _SUMS)), np.empty(_SUMS)
    for first in range(0, size, _SUMS):
        total[:] = 0.0
        for i in range(count):
            for j in range(_SUMS):
                inside = first + j < size
                move = np.float64(models[i, first + j]) - start[first + j] if inside else 0.0
                updates[i, j] = move
                total[j] += move
        for j in range(_SUMS):
            together[j] += total[j] * total[j]
        for i in range(count):
            for j in range(_SUMS):
                squares[i, j] += updates[i, j] * updates[i, j]
                inner[i, j] += updates[i, j] * total[j]
    return squares.sum(axis=1), inner.sum(axis=1), together.sum()
