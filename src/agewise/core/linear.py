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

from agewise.core.elementary import exp32, log, log1p32
from agewise.core.jit import inlined, kernel, njit
from agewise.core.lanes import (
    LANES,
    any_nonzero,
    entry,
    fused,
    load,
    load_four,
    prefetch,
    spread,
    spread_one,
    store,
    where_positive,
)
from agewise.core.samples import ask_for_row, draw_rows

_NO_PENALTY, L2, L1 = range(3)
_HINGE, _SQUARED_HINGE, _LOGISTIC, _SQUARED_ERROR, MULTINOMIAL = range(5)
#: Scale below which the stored weights are brought back to size, far from underflow.
LEAST_SCALE = np.float32(1e-3)
#: Rows are drawn at random, so the processor cannot guess them; they are asked for so early.
AHEAD = 3
#: Samples of which evaluation has the scores at a time.
_TOGETHER = 128

_CACHE_LINE = 64
_ZERO, _HALF, _ONE, _TWO = (np.float32(x) for x in (0.0, 0.5, 1.0, 2.0))


class Scores(NamedTuple):
    """What a linear model gives: the number of its scores, and the code of their loss."""

    outputs: int
    loss: int


class Descent(NamedTuple):
    """Local SGD as all UEs do it in every round."""

    penalty: int
    penalty_weight: float
    steps: int
    batch: int
    proximal_weight: float = 0.0


class Cohort(NamedTuple):
    """The UEs that train: ``ues[i]`` from the model ``start[i]``, which is that of round ``t[i]``.

    It takes steps of ``step_size[i]``, with ``corrections[i]`` of its gradients; without
    corrections, that array is empty.
    """

    ues: np.ndarray
    start: np.ndarray
    t: np.ndarray
    step_size: np.ndarray
    corrections: np.ndarray


# ------------------------------------------------------------------------ a model in padded form
@inlined
def stride_of(outputs):
    """The number of scores with the padding."""
    return (outputs + LANES - 1) // LANES * LANES


@inlined
def aligned(length):
    """``float32[length]`` of zeros from the start of a cache line on: no lanes straddle two."""
    memory = np.zeros(length + _CACHE_LINE // 4, np.float32)
    first = (-memory.ctypes.data % _CACHE_LINE) // 4
    return memory[first : first + length]


@inlined
def _pad(model, outputs, stored):
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


@inlined
def _trim(stored, outputs, scale, model):
    """The flat model of ``scale * stored``: the reverse of `_pad`."""
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


# ----------------------------------------------------------------------------- losses of one sample
@inlined
def signs_of(outputs, classes):
    """``[class * stride + output]``: +1 for a class's own output, -1 for others, 0 for padding.

    One output tells class 1 (score > 0) from class 0; several are one against the rest.
    """
    stride = stride_of(outputs)
    signs = np.zeros(classes * stride, np.float32)
    for label in range(classes):
        own = label if outputs > 1 else label - 1
        for i in range(outputs):
            signs[label * stride + i] = _ONE if i == own else -_ONE
    return signs


@inlined
def _by_margin(loss):
    """Whether a loss takes each score by itself, in few operations: whole lanes at once."""
    return loss in (_HINGE, _SQUARED_HINGE, _SQUARED_ERROR)


@inlined
def _margin_slopes(loss, given, y):
    """The derivatives of such a loss by 16 scores, of which ``y`` are the signs."""
    short = _ONE - y * given
    if loss == _HINGE:
        return where_positive(short, -_ONE * y)
    if loss == _SQUARED_HINGE:
        return -_TWO * y * where_positive(short, short)
    return -_ONE * y * short


@inlined
def _margin_losses(loss, given, y):
    """Such a loss of 16 scores, of which ``y`` are the signs."""
    short = _ONE - y * given
    if loss == _HINGE:
        return where_positive(short, short)
    if loss == _SQUARED_HINGE:
        return where_positive(short, short * short)
    return _HALF * short * short


@njit
def find_slopes(scores, given, at, label, signs, slopes):
    """The derivatives of a sample's loss by its scores ``given[at:]`` go to ``slopes[at:]``.

    Those of the padding are 0, as they were before.
    """
    stride = stride_of(scores.outputs)
    if _by_margin(scores.loss):
        for block in range(0, stride, LANES):
            y = load(signs, label * stride + block)
            store(slopes, at + block, _margin_slopes(scores.loss, load(given, at + block), y))
    elif scores.loss == MULTINOMIAL:
        whole = _exponentials(given, scores.outputs, slopes, at)
        for i in range(at, at + scores.outputs):
            slopes[i] /= whole
        slopes[at + label] -= _ONE
    else:
        for i in range(stride):  # whole lanes: the signs of the padding are 0
            y = signs[label * stride + i]
            margin = y * given[at + i]
            smaller = exp32(-abs(margin))  # never overflows
            share = smaller / (_ONE + smaller)
            slopes[at + i] = -y * (share if margin > _ZERO else _ONE - share)


@njit
def add_losses(scores, given, labels, signs, loss):
    """``loss`` plus that of each sample i, of the scores ``given[i * stride:]``, in this order."""
    # In one function for many samples: passing arrays costs more than most of these losses.
    stride = stride_of(scores.outputs)
    terms = np.empty(labels.size * stride, np.float32)
    for j in range(labels.size):
        at, own = j * stride, labels[j] * stride
        if scores.loss == MULTINOMIAL:
            whole = _exponentials(given, scores.outputs, terms, at)
            below = _largest(given, scores.outputs, at) - given[at + labels[j]]
            loss += np.float64(np.float32(log(np.float64(whole))) + below)
            continue
        if scores.loss == _LOGISTIC:
            for i in range(stride):
                margin = signs[own + i] * given[at + i]
                terms[at + i] = log1p32(exp32(-abs(margin))) + max(_ZERO, -margin)
        else:
            for block in range(0, stride, LANES):
                y = load(signs, own + block)
                store(terms, at + block, _margin_losses(scores.loss, load(given, at + block), y))
        sample = 0.0
        for i in range(at, at + scores.outputs):
            sample += terms[i]
        loss += sample
    return loss


@inlined
def _largest(given, outputs, at):
    top = given[at]
    for i in range(at + 1, at + outputs):
        top = max(top, given[i])
    return top


@inlined
def _exponentials(given, outputs, powers, at):
    """``exp(given[i] - top)`` into ``powers[i]`` from ``at`` on; returns their sum."""
    top, whole = _largest(given, outputs, at), _ZERO
    end = at + stride_of(outputs)
    for i in range(at, end):  # whole lanes, and then nothing in the padding
        powers[i] = exp32(given[i] - top)
    for i in range(at, at + outputs):
        whole += powers[i]
    for i in range(at + outputs, end):
        powers[i] = _ZERO
    return whole


@njit
def count_right(given, outputs, labels, right):
    """Add to ``right[label]`` the samples of these scores whose highest is that of their class.

    The first one among equals; one score alone tells class 1 (above 0) from class 0.
    """
    stride = stride_of(outputs)
    for j in range(labels.size):
        at = j * stride
        best, top = np.int64(0), given[at]
        for i in range(1, outputs):
            better = given[at + i] > top
            best, top = (i if better else best), (given[at + i] if better else top)
        if outputs == 1:
            best = np.int64(top > _ZERO)
        right[labels[j]] += best == labels[j]


# ------------------------------------------------------------------------- a sample and a model
@inlined
def _place(features, at, stride, block):
    """Where the weights of the feature of entry ``at`` are, from output ``block`` on."""
    return np.int64(entry(features, at)) * stride + block


@inlined
def score(stored, block, stride, features, values, start, stop):
    """16 sums of value * stored weights over the entries of one sample, from ``block`` on."""
    # Four sums at a time, because each has to wait for its own last addition.
    a = spread(0.0)
    b = spread(0.0)
    c = spread(0.0)
    d = spread(0.0)
    at = start
    while at + 4 <= stop:
        four = load_four(values, at)  # converted together, at a fraction of the cost
        a = fused(spread_one(four, 0), load(stored, _place(features, at, stride, block)), a)
        b = fused(spread_one(four, 1), load(stored, _place(features, at + 1, stride, block)), b)
        c = fused(spread_one(four, 2), load(stored, _place(features, at + 2, stride, block)), c)
        d = fused(spread_one(four, 3), load(stored, _place(features, at + 3, stride, block)), d)
        at += 4
    while at < stop:
        a = fused(entry(values, at), load(stored, _place(features, at, stride, block)), a)
        at += 1
    return (a + b) + (c + d)


@inlined
def add(stored, block, stride, features, values, start, stop, change):
    """Add value * ``change`` (16 lanes) to the weights that `score` reads."""
    at = start
    while at + 4 <= stop:  # the features of a sample differ: four loads may go before four stores
        four = load_four(values, at)
        p = _place(features, at, stride, block)
        q = _place(features, at + 1, stride, block)
        r = _place(features, at + 2, stride, block)
        s = _place(features, at + 3, stride, block)
        a = fused(spread_one(four, 0), change, load(stored, p))
        b = fused(spread_one(four, 1), change, load(stored, q))
        c = fused(spread_one(four, 2), change, load(stored, r))
        d = fused(spread_one(four, 3), change, load(stored, s))
        store(stored, p, a)
        store(stored, q, b)
        store(stored, r, c)
        store(stored, s, d)
        at += 4
    while at < stop:
        p = _place(features, at, stride, block)
        store(stored, p, fused(entry(values, at), change, load(stored, p)))
        at += 1


# ---------------------------------------------------------------------------------------- one UE
@inlined
def shrink(stored, start, stop, factor):
    """Multiply stored weights, a whole number of lanes, by a factor."""
    for i in range(start, stop, LANES):
        store(stored, i, factor * load(stored, i))


@inlined
def step_l1(stored, stop, amount):
    """A step along the L1 penalty's subgradient."""
    for i in range(stop):
        stored[i] -= amount * np.sign(stored[i])


@inlined
def proximal_terms(model, cohort, i, descent):
    """What a step adds to the weights of UE number ``i`` besides gradient and penalty.

    A step against the proximal term mu (w - model) and the correction is ``w - step * mu * w``
    plus these, which are the same in all steps.
    """
    terms = np.float32(cohort.step_size[i] * descent.proximal_weight) * model
    if cohort.corrections.size > 0:
        terms -= np.float32(cohort.step_size[i]) * cohort.corrections[i]
    return terms


@inlined
def apply_terms(stored, terms, start, stop, kept, amount):
    """``kept * weights + terms``, and a step of ``amount`` along the L1 penalty's subgradient."""
    if amount == _ZERO:
        for i in range(start, stop, LANES):
            store(stored, i, fused(kept, load(stored, i), load(terms, i)))
    else:
        for i in range(start, stop):
            stored[i] = (kept * stored[i] + terms[i]) - amount * np.sign(stored[i])


@inlined
def _train_one(rows, drawn, scores, descent, step_size, signs, terms, stored):
    """SGD on the rows ``drawn[step * batch + sample]`` of one UE, in place; returns the scale.

    The bias is not penalised, but scaled like the weights: what decays them is taken from it again.
    With ``terms`` (`proximal_terms`, padded; else empty) every step touches all weights, and
    nothing is scaled.
    """
    # No views of arrays in these loops: counting references to them costs as much as a step.
    features, values, starts, labels, unit = rows
    penalty, batch, stride = descent.penalty, descent.batch, stride_of(scores.outputs)
    bias = stored.size - stride
    given, slopes = np.zeros((2, batch * stride), np.float32)
    by_margin, scale = _by_margin(scores.loss), _ONE
    decay = np.float32(1.0 - step_size * descent.penalty_weight) if penalty == L2 else _ONE
    undo = _ONE / decay
    step = np.float32(step_size / batch)
    # Eq. 9, the mean gradient of a batch in place of that of one sample.
    for s in range(0, drawn.size, batch):
        for j in range(batch):  # all slopes at the same weights, before any of them moves
            if s + j + AHEAD < drawn.size:
                ask_for_row(rows, drawn[s + j + AHEAD])
            row = drawn[s + j]
            start, stop = starts[row], starts[row + 1]
            for block in range(0, stride, LANES):
                at, own = j * stride + block, labels[row] * stride + block
                sums = score(stored, block, stride, features, values, start, stop)
                found = scale * (unit * sums + load(stored, bias + block))
                if by_margin:
                    slope = _margin_slopes(scores.loss, found, load(signs, own))
                    store(slopes, at, slope)
                else:
                    store(given, at, found)
            if not by_margin:
                find_slopes(scores, given, j * stride, labels[row], signs, slopes)
        if terms.size > 0:
            proximal = step_size * descent.proximal_weight
            shrinking = step_size * descent.penalty_weight
            rest = np.float32(1.0 - proximal - (shrinking if penalty == L2 else 0.0))
            amount = np.float32(shrinking if penalty == L1 else 0.0)
            apply_terms(stored, terms, 0, bias, rest, amount)
            apply_terms(stored, terms, bias, stored.size, np.float32(1.0 - proximal), _ZERO)
        elif penalty == L2:
            # xi r(w) with r = |w|^2 / 2: its step is w (1 - eta xi), one number for all weights.
            if abs(scale * decay) < LEAST_SCALE:
                shrink(stored, 0, bias, scale * decay)
                shrink(stored, bias, stored.size, scale)
                scale = _ONE
            else:
                shrink(stored, bias, stored.size, undo)
                scale *= decay
        elif penalty == L1:
            step_l1(stored, bias, np.float32(step_size * descent.penalty_weight))
        for j in range(batch):
            row = drawn[s + j]
            start, stop = starts[row], starts[row + 1]
            for block in range(0, stride, LANES):
                change = -step * load(slopes, j * stride + block) / scale
                # A hinge loss has slope 0 on most samples once they are told apart.
                if any_nonzero(change):
                    store(stored, bias + block, load(stored, bias + block) + change)
                    change = unit * change
                    add(stored, block, stride, features, values, start, stop, change)
    return scale


@njit
def _score_rows(rows, first, last, stored, stride, given):
    """Put the scores of the rows from ``first`` to ``last`` in ``given[sample][output]``."""
    features, values, starts, _, unit = rows
    bias = stored.size - stride
    for row in range(first, last):
        start, stop = starts[row], starts[row + 1]
        for block in range(0, stride, LANES):
            sums = score(stored, block, stride, features, values, start, stop)
            found = unit * sums + load(stored, bias + block)
            store(given, (row - first) * stride + block, found)


# ----------------------------------------------------------------------------- what Python calls
@kernel(nogil=True)
def train(rows, offsets, scores, descent, key, cohort, starts, trained):
    """``trained[i]``: the flat model of the cohort's UE i after its local steps.

    The samples of UE k are the rows from ``offsets[k]`` to ``offsets[k + 1]``. It is faster where
    UEs that start from the same of the ``starts`` follow one another.
    """
    outputs, ues = scores.outputs, cohort.ues
    with_terms = descent.proximal_weight > 0.0 or cohort.corrections.size > 0
    size = starts.shape[1] // outputs * stride_of(outputs)
    stored, terms = aligned(size), aligned(size if with_terms else 0)
    signs = signs_of(outputs, max(2, outputs))
    padded, start = aligned(size), -1
    for i in range(ues.size):
        if cohort.start[i] != start:
            start = cohort.start[i]
            _pad(starts[start], outputs, padded)
        drawn = draw_rows(key, cohort.t[i], ues[i], offsets, descent.steps * descent.batch)
        for row in drawn:  # to ask for its entries one must know where they are
            prefetch(rows.starts, row)
        for row in drawn[:AHEAD]:
            ask_for_row(rows, row)
        for at in range(0, size, LANES):
            store(stored, at, load(padded, at))
        if with_terms:
            _pad(proximal_terms(starts[start], cohort, i, descent), outputs, terms)
        scale = _train_one(rows, drawn, scores, descent, cohort.step_size[i], signs, terms, stored)
        _trim(stored, outputs, scale, trained[i])


@kernel(nogil=True)
def measure(rows, scores, model, parts, losses, right):
    """``losses[i]``: the sum over the rows from ``parts[i, 0]`` to ``parts[i, 1]``.

    Adds to ``right[label]`` the samples of each class in these parts that are classified rightly.
    """
    labels, outputs, stride = rows.labels, scores.outputs, stride_of(scores.outputs)
    signs = signs_of(outputs, max(2, outputs))
    stored = aligned(model.size // outputs * stride)
    _pad(model, outputs, stored)
    given = np.empty(_TOGETHER * stride, np.float32)
    for part in range(losses.size):
        loss = 0.0
        for first in range(parts[part, 0], parts[part, 1], _TOGETHER):
            last = min(first + _TOGETHER, parts[part, 1])
            _score_rows(rows, first, last, stored, stride, given)
            loss = add_losses(scores, given, labels[first:last], signs, loss)
            count_right(given, outputs, labels[first:last], right)
        losses[part] = loss
