"""The compiled kernel of averaging."""

import numpy as np

from agewise.compiled import compiled
from agewise.core.lanes import LANES, fused, load, spread, store

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@compiled()
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
        if kept != _ZERO:
            mean = fused(kept, load(start, i), mean)
        for k in range(weights.size):
            model = load(flat, k * size + i)
            move = fused(-_ONE, load(start, i), model)
            mean = fused(weights[k], model, mean)
            moved = fused(_ONE, move, moved)
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
