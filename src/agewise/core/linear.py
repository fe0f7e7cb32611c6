"""Kernels of linear models: local SGD (Algorithm 3) and evaluation.

Layout. A model is ``[feature][output]`` with the outputs of a feature padded to whole lanes of 16
floats, so that a non-zero feature of a sample costs one load and one fused multiply-add for up to
16 outputs at once, and zeros (four fifths of MNIST) cost nothing. Samples are rows of (feature,
value) pairs, those of one UE next to each other. The last row of a model is the bias.

The L2 penalty shrinks all weights at every step; it is kept as one number beside them
(``weights = scale * stored``), so that a step touches only what its samples touch.

What a UE does follows from (key, UE) and the start model, and sums run in a fixed order: nothing
depends on how the UEs and the samples are divided among threads.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from agewise.core.jit import kernel
from agewise.core.lanes import (
    LANES,
    any_nonzero,
    entry,
    fused,
    load,
    spread,
    store,
    where_positive,
)
from agewise.core.losses import find_slopes, loss_of, predict, signs_of, stride_of
from agewise.core.random import below, subkey
from agewise.core.samples import ask_for_row, read_values

NO_PENALTY, L2, L1 = range(3)
#: Scale below which the stored weights are brought back to size, far from underflow.
LEAST_SCALE = np.float32(1e-3)
#: Rows are drawn at random, so the processor cannot guess them; they are asked for so early.
AHEAD = 2

_CACHE_LINE = 64
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class Descent(NamedTuple):
    """Local SGD as all UEs do it in every round."""

    penalty: int
    penalty_weight: float
    steps: int
    batch: int


class Round(NamedTuple):
    """What is particular to one round: the key of its draws is that of ``key`` and ``t``."""

    key: np.uint64
    t: int
    step_size: float


# ------------------------------------------------------------------------ a model in padded form
@njit
def padded(size, outputs):
    """Memory for the padded form of a model of this size.

    It begins at a cache line, so that no lanes straddle two.
    """
    length = size // outputs * stride_of(outputs)
    memory = np.empty(length + _CACHE_LINE // 4, np.float32)
    first = (-memory.ctypes.data % _CACHE_LINE) // 4
    return memory[first : first + length]


@njit
def pad(model, outputs, stored):
    """Spread a flat model ``[feature][output]`` over whole lanes; the padding becomes 0."""
    stride = stride_of(outputs)
    mask = np.zeros(stride, np.float32)
    mask[:outputs] = _ONE
    for row in range(model.size // outputs):
        if row * outputs + stride <= model.size:
            for block in range(0, stride, LANES):
                lanes = load(model, row * outputs + block)
                store(stored, row * stride + block, where_positive(load(mask, block), lanes))
        else:  # the last rows, past which 16 floats cannot be read
            for i in range(stride):
                inside = i < outputs
                stored[row * stride + i] = model[row * outputs + i] if inside else _ZERO


@njit
def trim(stored, outputs, scale, model):
    """The flat model of ``scale * stored``: the reverse of `pad`."""
    stride = stride_of(outputs)
    for row in range(model.size // outputs):
        if row * outputs + stride <= model.size:
            # What this writes beyond the row's own outputs, the next rows write again.
            for block in range(0, stride, LANES):
                lanes = scale * load(stored, row * stride + block)
                store(model, row * outputs + block, lanes)
        else:
            for i in range(outputs):
                model[row * outputs + i] = scale * stored[row * stride + i]


# ------------------------------------------------------------------------- a sample and a model
@njit
def place(features, at, stride):
    """Where the weights of the feature of entry ``at`` begin."""
    return np.int64(entry(features, at)) * stride


@njit
def score(stored, stride, features, start, count, numbers):
    """16 scores of one sample: the sum of ``numbers[i]`` times the weights of its feature i.

    ``stored`` begins at the block of outputs that is meant.
    """
    # Four sums at a time, because each has to wait for its own last addition.
    a = spread(0.0)
    b = spread(0.0)
    c = spread(0.0)
    d = spread(0.0)
    i = 0
    while i + 4 <= count:
        at = start + i
        a = fused(entry(numbers, i), load(stored, place(features, at, stride)), a)
        b = fused(entry(numbers, i + 1), load(stored, place(features, at + 1, stride)), b)
        c = fused(entry(numbers, i + 2), load(stored, place(features, at + 2, stride)), c)
        d = fused(entry(numbers, i + 3), load(stored, place(features, at + 3, stride)), d)
        i += 4
    # At most three are left. Zeros follow them, and adding those costs less than a wrong guess
    # of the processor how many are left.
    at = start + i
    a = fused(entry(numbers, i), load(stored, place(features, at, stride)), a)
    a = fused(entry(numbers, i + 1), load(stored, place(features, at + 1, stride)), a)
    a = fused(entry(numbers, i + 2), load(stored, place(features, at + 2, stride)), a)
    return (a + b) + (c + d)


@njit
def add(stored, stride, features, start, count, numbers, change):
    """Add ``numbers[i] * change`` (lanes) to the weights of each feature i of a sample."""
    i = 0
    while i + 4 <= count:  # the features of a sample differ: four loads may go before four stores
        at = start + i
        p = place(features, at, stride)
        q = place(features, at + 1, stride)
        r = place(features, at + 2, stride)
        s = place(features, at + 3, stride)
        a = fused(entry(numbers, i), change, load(stored, p))
        b = fused(entry(numbers, i + 1), change, load(stored, q))
        c = fused(entry(numbers, i + 2), change, load(stored, r))
        d = fused(entry(numbers, i + 3), change, load(stored, s))
        store(stored, p, a)
        store(stored, q, b)
        store(stored, r, c)
        store(stored, s, d)
        i += 4
    while i < count:
        p = place(features, start + i, stride)
        store(stored, p, fused(entry(numbers, i), change, load(stored, p)))
        i += 1


# ---------------------------------------------------------------------------------------- one UE
@njit
def shrink(stored, factor):
    """Multiply stored weights, a whole number of lanes, by a factor."""
    for i in range(0, stored.size, LANES):
        store(stored, i, factor * load(stored, i))


@njit
def pull_to_zero(stored, amount):
    """A step along the L1 penalty's subgradient."""
    for i in range(stored.size):
        stored[i] -= amount * np.sign(stored[i])


@njit
def draw_rows(key, first, size, count):
    """The rows that a UE draws from its own, ``first`` and the ``size - 1`` that follow."""
    drawn = np.empty(count, np.int64)
    for i in range(count):
        drawn[i] = first + below(key, i, size)
    return drawn


@njit(error_model="numpy")
def train_one(rows, drawn, scores, descent, step_size, signs, stored):
    """SGD on the rows ``drawn[step * batch + sample]`` of one UE, in place; returns the scale.

    The bias is not penalised, but scaled like the weights, so it is raised when they shrink.
    """
    features, values, starts, labels, unit = rows
    penalty, batch, stride = descent.penalty, descent.batch, signs.shape[1]
    weights, bias = stored[:-stride], stored[-stride:]
    numbers = np.empty(weights.size // stride + 2 * LANES, np.float32)
    given = np.zeros(stride, np.float32)
    slopes = np.zeros((batch, stride), np.float32)
    scale = _ONE
    kept = np.float32(1.0 - step_size * descent.penalty_weight) if penalty == L2 else _ONE
    raised = _ONE / kept
    step = np.float32(step_size / batch)
    for s in range(0, drawn.size, batch):
        for j in range(batch):  # all slopes at the same weights, before any of them moves
            if s + j + AHEAD < drawn.size:
                ask_for_row(rows, drawn[s + j + AHEAD])
            row = drawn[s + j]
            start, count = starts[row], starts[row + 1] - starts[row]
            read_values(values, start, count, numbers)
            for block in range(0, stride, LANES):
                sums = score(weights[block:], stride, features, start, count, numbers)
                store(given, block, scale * (unit * sums + load(bias, block)))
            find_slopes(scores, given, labels[row], signs, slopes[j])
        if penalty == L2:
            if abs(scale * kept) < LEAST_SCALE:
                shrink(weights, scale * kept)
                shrink(bias, scale)
                scale = _ONE
            else:
                shrink(bias, raised)
                scale *= kept
        elif penalty == L1:
            pull_to_zero(weights, np.float32(step_size * descent.penalty_weight))
        for j in range(batch):
            row = drawn[s + j]
            start, count = starts[row], starts[row + 1] - starts[row]
            if batch > 1:
                read_values(values, start, count, numbers)
            for block in range(0, stride, LANES):
                change = -step * load(slopes[j], block) / scale
                if any_nonzero(change):
                    store(bias, block, load(bias, block) + change)
                    add(weights[block:], stride, features, start, count, numbers, unit * change)
    return scale


# ----------------------------------------------------------------------------- what Python calls
@kernel(nogil=True)
def train(rows, offsets, scores, descent, now, ues, model, trained):
    """``trained[i]``: the flat model of ``ues[i]`` after its local steps from ``model``.

    The samples of UE k are the rows from ``offsets[k]`` to ``offsets[k + 1]``.
    """
    outputs = scores.outputs
    signs = signs_of(outputs, max(2, outputs))
    stored = padded(model.size, outputs)
    round_key = subkey(now.key, now.t)
    for i in range(ues.size):
        ue = ues[i]
        key, first, size = subkey(round_key, ue), offsets[ue], offsets[ue + 1] - offsets[ue]
        drawn = draw_rows(key, first, size, descent.steps * descent.batch)
        pad(model, outputs, stored)
        scale = train_one(rows, drawn, scores, descent, now.step_size, signs, stored)
        trim(stored, outputs, scale, trained[i])


@kernel(nogil=True)
def measure(rows, scores, model, parts, losses, right):
    """``losses[i]``: the sum over the rows from ``parts[i, 0]`` to ``parts[i, 1]``.

    Adds to ``right[label]`` the samples of each class in these parts that are classified rightly.
    """
    features, values, starts, labels, unit = rows
    outputs = scores.outputs
    signs = signs_of(outputs, max(2, outputs))
    stride = signs.shape[1]
    stored = padded(model.size, outputs)
    pad(model, outputs, stored)
    weights, bias = stored[:-stride], stored[-stride:]
    numbers = np.empty(weights.size // stride + 2 * LANES, np.float32)
    given = np.zeros(stride, np.float32)
    for part in range(losses.size):
        loss = 0.0
        for row in range(parts[part, 0], parts[part, 1]):
            start, count = starts[row], starts[row + 1] - starts[row]
            read_values(values, start, count, numbers)
            for block in range(0, stride, LANES):
                sums = score(weights[block:], stride, features, start, count, numbers)
                store(given, block, unit * sums + load(bias, block))
            loss += loss_of(scores, given, labels[row], signs)
            right[labels[row]] += predict(given, outputs) == labels[row]
        losses[part] = loss
