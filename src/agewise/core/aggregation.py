"""Kernels of what the access point makes of the models that it receives."""

import numpy as np

from agewise.core.jit import kernel
from agewise.core.lanes import (
    LANES,
    fused,
    load,
    load_sums,
    plus_products,
    plus_scaled,
    prefetch,
    spread,
    store,
)

_ZERO = np.float32(0.0)


@kernel
def squared_norms(models, start):
    """The squared length of each update ``models[i] - start``; squares are added in double."""
    count, size = models.shape
    flat = models.ravel()
    squares = np.zeros(count * LANES)
    whole = size - size % LANES
    for i in range(0, whole, LANES):
        before = load(start, i)
        for k in range(count):
            move = load(flat, k * size + i) - before
            at = k * LANES
            store(squares, at, plus_products(load_sums(squares, at), move, move))
    for i in range(whole, size):
        for k in range(count):
            move = np.float64(flat[k * size + i]) - start[i]
            squares[k * LANES] += move * move
    return squares.reshape((count, LANES)).sum(axis=1)


#: Entries that are worked on at a time, whole lanes, so that their sums stay in the nearest cache.
_BLOCK = 1024


@kernel
def update_memory(models, starts, version, scale, rows, updates, new_weights, old_weights, total):
    """Put the updates ``scale[i] (models[i] - starts[version[i]])`` in the rows of ``updates``.

    ``total`` gets ``new_weights[i]`` times the new update less ``old_weights[i]`` times the one
    that was remembered. Returns the sum of the squared lengths of the new updates, the squared
    length of their sum, and of each its inner product with the one before, and that one's squared
    length. Sums over numbers of the model are in double, and all sums in a fixed order.
    """
    count, size = models.shape
    flat, begun, kept = models.ravel(), starts.ravel(), updates.ravel()
    apart, together, moved = np.zeros(LANES), np.zeros(LANES), np.empty(_BLOCK, np.float32)
    inner, squares = np.zeros(count * LANES), np.zeros(count * LANES)
    for first in range(0, size, _BLOCK):
        end = min(first + _BLOCK, size)
        whole = end - (end - first) % LANES
        moved[:] = _ZERO
        for k in range(count):
            new_at, old_at, sums = k * size, rows[k] * size, k * LANES
            start_at, factor = version[k] * size, spread(scale[k])
            gain, loss = new_weights[k], -old_weights[k]
            # The rows are anywhere in memory: the processor is told early which one is next.
            next_at = rows[k + 1] * size if k + 1 < count else rows[0] * size + _BLOCK
            own = load_sums(apart, 0)
            product = load_sums(inner, sums)
            length = load_sums(squares, sums)
            for i in range(first, whole, LANES):
                prefetch(kept, next_at + i)
                old = load(kept, old_at + i)
                new = factor * (load(flat, new_at + i) - load(begun, start_at + i))
                store(kept, old_at + i, new)
                added = plus_scaled(load_sums(total, i), gain, new)
                store(total, i, plus_scaled(added, loss, old))
                store(moved, i - first, load(moved, i - first) + new)
                own = plus_products(own, new, new)
                product = plus_products(product, new, old)
                length = plus_products(length, old, old)
            store(apart, 0, own)
            store(inner, sums, product)
            store(squares, sums, length)
            for i in range(whole, end):
                before = np.float64(kept[old_at + i])
                change = scale[k] * (flat[new_at + i] - begun[start_at + i])
                now = np.float64(change)
                kept[old_at + i] = change
                total[i] += gain * now
                total[i] += loss * before
                moved[i - first] += change
                apart[0] += now * now
                inner[sums] += now * before
                squares[sums] += before * before
        squared = load_sums(together, 0)
        for i in range(0, whole - first, LANES):
            squared = plus_products(squared, load(moved, i), load(moved, i))
        store(together, 0, squared)
        for i in range(whole - first, end - first):
            together[0] += np.float64(moved[i]) * moved[i]
    shape = count, LANES
    inner, squares = inner.reshape(shape).sum(axis=1), squares.reshape(shape).sum(axis=1)
    return apart.sum(), together.sum(), inner, squares


@kernel
def learn_agreement(sums, kept, inner, squares, rounds):
    """Add what a round says of how well old updates predict new ones, ``rounds[i]`` later.

    ``sums`` are of inner products, of squared lengths of the old updates, and of those times the
    rounds. A round that says something leaves the share ``kept`` of what was known before.
    """
    products, lengths, waited = 0.0, 0.0, 0.0
    for i in range(inner.size):
        products += inner[i]
        lengths += squares[i]
        waited += squares[i] * rounds[i]
    if lengths > 0.0:
        sums[0] = kept * sums[0] + products
        sums[1] = kept * sums[1] + lengths
        sums[2] = kept * sums[2] + waited


@kernel
def mean_update(models, starts, version, shares, step):
    """``step``: the sum of ``shares[i]`` times the update ``models[i] - starts[version[i]]``.

    It is a sum of updates, not a difference of averages, so that single precision keeps its digits
    however small the step is beside the weights. Returns the sum of the squared lengths of the
    updates and the squared length of their sum.
    """
    # Eq. 11 as w + sum p_i u_i with p_i = |D_i| / sum |D_j|, so that each update u_i may have
    # started from a version of its own.
    count, size = models.shape
    flat, begun, begins = models.ravel(), starts.ravel(), version * size
    weights = shares.astype(np.float32)
    apart, together = np.zeros(LANES), np.zeros(LANES)
    apart_sums, together_sums = load_sums(apart, 0), load_sums(together, 0)
    whole = size - size % LANES
    for i in range(0, whole, LANES):
        mean = spread(0.0)
        moved = spread(0.0)
        squared = spread(0.0)
        for k in range(count):
            move = load(flat, k * size + i) - load(begun, begins[k] + i)
            mean = fused(weights[k], move, mean)
            moved = moved + move
            squared = fused(move, move, squared)
        store(step, i, mean)
        apart_sums = plus_scaled(apart_sums, 1.0, squared)
        together_sums = plus_products(together_sums, moved, moved)
    store(apart, 0, apart_sums)
    store(together, 0, together_sums)
    for i in range(whole, size):
        mean, moved = 0.0, 0.0
        for k in range(count):
            move = np.float64(flat[k * size + i] - begun[begins[k] + i])
            mean += shares[k] * move
            apart[0] += move * move
            moved += move
        step[i] = mean
        together[0] += moved * moved
    return apart.sum(), together.sum()


@kernel
def moved_by(start, total, factor, result):
    """``start + factor * total``, rounded once, in ``result``."""
    for i in range(start.size):
        result[i] = np.float32(np.float64(start[i]) + factor * total[i])


@kernel
def shorten(models, start, weights, rows, shortened):
    """Put ``start + weights[i] (models[i] - start)`` in row ``rows[i]`` of ``shortened``."""
    for i in range(rows.size):
        weight, model, row = np.float32(weights[i]), models[i], shortened[rows[i]]
        for j in range(start.size):
            row[j] = start[j] + weight * (model[j] - start[j]) if weight < 1.0 else model[j]
