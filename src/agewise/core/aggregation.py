"""Kernels of what the access point makes of the models that it receives."""

import numpy as np

from agewise.core.jit import kernel
from agewise.core.lanes import LANES, add_products, any_nonzero, fused, load, spread, store

_ZERO = np.float32(0.0)


@kernel
def is_finite(params):
    """Whether no entry of a float32 vector is infinite or not a number."""
    whole = params.size - params.size % LANES
    zeros = spread(0.0)
    for i in range(0, whole, LANES):
        zeros = zeros + (load(params, i) - load(params, i))  # what is not finite makes a NaN
    finite = not any_nonzero(zeros)
    for i in range(whole, params.size):
        finite &= np.isfinite(params[i])
    return finite


@kernel
def combine(models, factors, whole, start, rest, average):
    """``rest * start`` plus the sum of ``factors[i] / whole * models[i]``.

    ``whole`` is the sum of the factors where it is given as 0. Returns the sum of the squared
    lengths of the moves from ``start`` and the squared length of their sum.
    """
    size = start.size
    if whole == 0.0:
        whole = factors.sum()
    weights = (factors / whole).astype(np.float32)
    kept = np.float32(rest)
    flat = models.ravel()
    apart, together = np.zeros(LANES), np.zeros(LANES)
    one = spread(1.0)
    last = size - size % LANES
    for i in range(0, last, LANES):
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
        add_products(apart, 0, squared, one)
        add_products(together, 0, moved, moved)
    for i in range(last, size):
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
    """How the updates ``models[i] - start`` compare with their sum; products are added in double.

    Returns the squared length of each, its inner product with the sum of all, and the squared
    length of that sum.
    """
    count, size = models.shape
    flat = models.ravel()
    squares, inner, together = np.zeros(count * LANES), np.zeros(count * LANES), np.zeros(LANES)
    whole = size - size % LANES
    for i in range(0, whole, LANES):
        before = load(start, i)
        summed = spread(0.0)
        for k in range(count):
            summed = summed + (load(flat, k * size + i) - before)
        for k in range(count):
            move = load(flat, k * size + i) - before
            add_products(squares, k * LANES, move, move)
            add_products(inner, k * LANES, move, summed)
        add_products(together, 0, summed, summed)
    for i in range(whole, size):
        summed = 0.0
        for k in range(count):
            summed += np.float64(flat[k * size + i]) - start[i]
        for k in range(count):
            move = np.float64(flat[k * size + i]) - start[i]
            squares[k * LANES] += move * move
            inner[k * LANES] += move * summed
        together[0] += summed * summed
    shape = count, LANES
    return squares.reshape(shape).sum(axis=1), inner.reshape(shape).sum(axis=1), together.sum()


#: Entries that are worked on at a time, so that their sums stay in the nearest cache.
_BLOCK = 1024


@kernel
def remember(models, start, rows, updates, new_weights, old_weights, total):
    """Put the updates ``models[i] - start`` in the rows of ``updates``, and their sum right.

    ``total`` gets ``new_weights[i]`` times the new update less ``old_weights[i]`` times the one
    that was remembered. Returns the sum of the squared lengths of the new updates, the squared
    length of their sum, and of each its inner product with the one before, and that one's squared
    length. All sums are in double and in a fixed order.
    """
    count, size = models.shape
    apart = together = 0.0
    inner, squares = np.zeros(count), np.zeros(count)
    moved = np.empty(_BLOCK)
    for first in range(0, size, _BLOCK):
        end = min(first + _BLOCK, size)
        moved[:] = 0.0
        for k in range(count):
            row, gain, loss = rows[k], new_weights[k], old_weights[k]
            own = product = length = 0.0
            for i in range(first, end):
                old = np.float64(updates[row, i])
                change = models[k, i] - start[i]
                new = np.float64(change)
                total[i] += gain * new - loss * old
                moved[i - first] += new
                own += new * new
                product += new * old
                length += old * old
                updates[row, i] = change
            apart += own
            inner[k] += product
            squares[k] += length
        for i in range(end - first):
            together += moved[i] * moved[i]
    return apart, together, inner, squares


@kernel
def moved_by(start, total, factor, result):
    """``start + factor * total``, rounded once, in ``result``."""
    for i in range(start.size):
        result[i] = np.float32(np.float64(start[i]) + factor * total[i])
