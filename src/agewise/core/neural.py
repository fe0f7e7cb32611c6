"""Kernels beside PyTorch's own: which samples a UE draws, and max-pooling by two.

PyTorch's max-pooling of images ordered by channel takes one thread 25 times as long as these do.
They choose as it does: the first of equal values, and a NaN before any number.
"""

import numpy as np

from agewise.core.jit import inlined, kernel
from agewise.core.random import fold_in, randint


@kernel(nogil=True)
def draw_rows(key, t, ue, first, size, count):
    """``int64[count]``: rows that a UE draws in round ``t`` from its ``size`` ones after ``first``.

    They are those of all learners, for the same key.
    """
    own = fold_in(fold_in(key, t), ue)
    drawn = np.empty(count, np.int64)
    for n in range(count):
        drawn[n] = first + randint(own, n, size)
    return drawn


@kernel
def seed_of(key, t, ue):
    """A seed for other generators that follows from the key, the round and the UE."""
    return fold_in(fold_in(key, t), ue)


@inlined
def _beats(challenger, best):
    return challenger > best or challenger != challenger


@kernel(nogil=True)
def max_pool(planes, pooled, chosen):
    """The largest of every two by two of ``planes[plane, row, column]``, and which it was.

    ``chosen`` counts the four by rows. A last odd row or column is left out.
    """
    count, rows, columns = pooled.shape
    for n in range(count):
        for i in range(rows):
            for j in range(columns):
                best, place = planes[n, 2 * i, 2 * j], np.int8(0)
                value = planes[n, 2 * i, 2 * j + 1]
                if _beats(value, best):
                    best, place = value, np.int8(1)
                value = planes[n, 2 * i + 1, 2 * j]
                if _beats(value, best):
                    best, place = value, np.int8(2)
                value = planes[n, 2 * i + 1, 2 * j + 1]
                if _beats(value, best):
                    best, place = value, np.int8(3)
                pooled[n, i, j] = best
                chosen[n, i, j] = place


@kernel(nogil=True)
def spread_gradient(gradient, chosen, spread):
    """``spread[plane, row, column]``: the gradient where it was chosen, 0 elsewhere."""
    spread[:] = np.float32(0.0)
    count, rows, columns = gradient.shape
    for n in range(count):
        for i in range(rows):
            for j in range(columns):
                place = chosen[n, i, j]
                spread[n, 2 * i + (place >> 1), 2 * j + (place & 1)] = gradient[n, i, j]
