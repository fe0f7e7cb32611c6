"""Compiled kernels of linear models: local SGD (Algorithm 3), evaluation, averaging.

Layout. A model is ``[feature][output]`` with the outputs of a feature padded to whole lanes of 16
floats, so that a non-zero feature of a sample costs one load and one fused multiply-add for up to
16 outputs at once, and zeros (four fifths of MNIST) cost nothing. Samples are rows of (feature,
value) pairs, those of one UE next to each other. The last row of a model is the bias.

The L2 penalty shrinks all weights at every step; it is kept as one number beside them
(``weights = scale * stored``), so that a step touches only what its samples touch.

Nothing depends on the number of threads: a UE's work follows from (key, UE) and the start model,
and sums run in a fixed order.
"""

import numpy as np
from numba import njit

from agewise.compiled import compiled
from agewise.learn.lanes import LANES, entry, fused, load, prefetch, spread, store
from agewise.random_kernels import below, subkey

HINGE, SQUARED_HINGE, LOGISTIC, SQUARED_ERROR, MULTINOMIAL = range(5)
NO_PENALTY, L2, L1 = range(3)
#: Scale below which the stored weights are brought back to size, far from underflow.
LEAST_SCALE = np.float32(1e-3)
#: Rows are drawn at random, so the processor cannot guess them; they are asked for so early.
AHEAD = 2

_ZERO, _HALF, _ONE, _TWO = (np.float32(x) for x in (0.0, 0.5, 1.0, 2.0))


# ------------------------------------------------------------------------- a sample and a model
@njit
def place(features, at, stride):
    """Where the weights of the feature of entry ``at`` begin."""
    return np.int64(entry(features, at)) * stride


@njit
def score(stored, stride, block, features, values, start, stop, scores):
    """``scores[block : block + 16]`` of one sample: the sum of value * stored weights."""
    # Four sums at a time, because each has to wait for its own last addition.
    a = spread(0.0)
    b = spread(0.0)
    c = spread(0.0)
    d = spread(0.0)
    at = start
    while at + 4 <= stop:
        a = fused(entry(values, at), load(stored, place(features, at, stride) + block), a)
        b = fused(entry(values, at + 1), load(stored, place(features, at + 1, stride) + block), b)
        c = fused(entry(values, at + 2), load(stored, place(features, at + 2, stride) + block), c)
        d = fused(entry(values, at + 3), load(stored, place(features, at + 3, stride) + block), d)
        at += 4
    while at < stop:
        a = fused(entry(values, at), load(stored, place(features, at, stride) + block), a)
        at += 1
    one = spread(1.0)
    store(scores, block, fused(one, fused(one, a, b), fused(one, c, d)))


@njit
def add(stored, stride, block, features, values, start, stop, changes, change):
    """Add value * ``changes[change : change + 16]`` to the weights of each feature of a sample."""
    step = load(changes, change)
    at = start
    while at + 4 <= stop:  # the features of a sample differ: four loads may go before four stores
        p = place(features, at, stride) + block
        q = place(features, at + 1, stride) + block
        r = place(features, at + 2, stride) + block
        s = place(features, at + 3, stride) + block
        a = fused(entry(values, at), step, load(stored, p))
        b = fused(entry(values, at + 1), step, load(stored, q))
        c = fused(entry(values, at + 2), step, load(stored, r))
        d = fused(entry(values, at + 3), step, load(stored, s))
        store(stored, p, a)
        store(stored, q, b)
        store(stored, r, c)
        store(stored, s, d)
        at += 4
    while at < stop:
        p = place(features, at, stride) + block
        store(stored, p, fused(entry(values, at), step, load(stored, p)))
        at += 1


@njit
def ask_for_row(features, values, start, stop):
    """Prefetch the entries of a row, one request a cache line."""
    for at in range(start, stop, 64 // features.itemsize):
        prefetch(features, at)
    for at in range(start, stop, 64 // values.itemsize):
        prefetch(values, at)


@compiled()
def pad(model, outputs, stride, stored):
    """Spread a flat model ``[feature][output]`` over whole lanes; the padding becomes 0."""
    mask = np.zeros(stride, np.float32)
    mask[:outputs] = _ONE
    rows = model.size // outputs
    zero = spread(0.0)
    for row in range(rows):
        if (row * outputs + stride) <= model.size:
            for block in range(0, stride, LANES):
                lanes = fused(load(model, row * outputs + block), load(mask, block), zero)
                store(stored, row * stride + block, lanes)
        else:  # the last rows, past which 16 floats cannot be read
            for i in range(stride):
                inside = i < outputs
                stored[row * stride + i] = model[row * outputs + i] if inside else _ZERO


@njit
def trim(stored, outputs, stride, scale, model):
    """The flat model of ``scale * stored``: the reverse of `pad`."""
    rows = model.size // outputs
    zero = spread(0.0)
    for row in range(rows):
        if (row * outputs + stride) <= model.size:
            # What this writes beyond the row's own outputs, the next rows write again.
            for block in range(0, stride, LANES):
                lanes = fused(scale, load(stored, row * stride + block), zero)
                store(model, row * outputs + block, lanes)
        else:
            for i in range(outputs):
                model[row * outputs + i] = scale * stored[row * stride + i]


# ----------------------------------------------------------------------------------- the losses
@njit(error_model="numpy")
def loss_and_slopes(loss, scores, outputs, label, slopes, at):
    """The loss of a sample with these scores; its derivatives go to ``slopes[at:]``.

    One output tells class 1 (score > 0) from class 0; several are one against the rest, except
    for the multinomial loss. ``y`` is +1 for the sample's own class and -1 for the others.
    """
    if loss == MULTINOMIAL:
        return _multinomial(scores, outputs, label, slopes, at)
    value = 0.0
    own = label if outputs > 1 else label - 1  # with one output, class 1 is output 0's own
    for i in range(outputs):
        y = _ONE if i == own else -_ONE
        margin = y * scores[i]
        if loss == HINGE:
            short = max(_ZERO, _ONE - margin)
            value += short
            slopes[at + i] = -y if short > _ZERO else _ZERO
        elif loss == SQUARED_HINGE:
            short = max(_ZERO, _ONE - margin)
            value += short * short
            slopes[at + i] = -_TWO * y * short
        elif loss == LOGISTIC:
            smaller = np.exp(-abs(margin))  # never overflows
            value += np.log1p(smaller) + max(_ZERO, -margin)
            share = smaller / (_ONE + smaller)
            slopes[at + i] = -y * (share if margin > _ZERO else _ONE - share)
        else:
            short = _ONE - margin
            value += _HALF * short * short
            slopes[at + i] = -y * short
    return value


@njit(error_model="numpy")
def _multinomial(scores, outputs, label, slopes, at):
    top = scores[0]
    for i in range(1, outputs):
        top = max(top, scores[i])
    whole = _ZERO
    for i in range(outputs):
        slopes[at + i] = np.exp(scores[i] - top)
        whole += slopes[at + i]
    for i in range(outputs):
        slopes[at + i] /= whole
    slopes[at + label] -= _ONE
    return np.float64(np.log(whole) + (top - scores[label]))


@njit
def predict(scores, outputs):
    """The class of these scores; the first one among equals."""
    if outputs == 1:
        return np.int64(scores[0] > _ZERO)
    best = 0
    for i in range(1, outputs):
        if scores[i] > scores[best]:
            best = i
    return best


# ---------------------------------------------------------------------------------------- one UE
@njit
def shrink(stored, start, stop, factor):
    """Multiply stored weights by a factor."""
    for i in range(start, stop):
        stored[i] *= factor


@njit
def pull_to_zero(stored, stop, amount):
    """A step along the L1 penalty's subgradient."""
    for i in range(stop):
        stored[i] -= amount * np.sign(stored[i])


@njit(error_model="numpy")
def train_one(
    features, values, starts, labels, unit, first, size, key, stored, stride, outputs,
    loss, penalty, penalty_weight, step_size, steps, batch,
):  # fmt: skip
    """``steps`` steps of SGD on one UE's samples, in place; returns the scale.

    The bias is not penalised, but scaled like the weights, so it is raised when they shrink.
    """
    bias = stored.size - stride
    rows = np.empty(steps * batch, np.int64)
    for i in range(rows.size):
        rows[i] = first + below(key, i, size)
    scores = np.zeros(stride, np.float32)
    changes = np.zeros(batch * stride, np.float32)
    scale = _ONE
    kept = np.float32(1.0 - step_size * penalty_weight) if penalty == L2 else _ONE
    step = np.float32(step_size / batch)
    for s in range(steps):
        for j in range(batch):  # all slopes at the same weights, before any of them moves
            i = s * batch + j
            if i + AHEAD < rows.size:
                row = rows[i + AHEAD]
                ask_for_row(features, values, starts[row], starts[row + 1])
            row = rows[i]
            for block in range(0, stride, LANES):
                score(stored, stride, block, features, values, starts[row], starts[row + 1], scores)
            for o in range(outputs):
                scores[o] = scale * (unit * scores[o] + stored[bias + o])
            loss_and_slopes(loss, scores, outputs, labels[row], changes, j * stride)
        if penalty == L2:
            if abs(scale * kept) < LEAST_SCALE:
                shrink(stored, 0, bias, scale * kept)
                shrink(stored, bias, stored.size, scale)
                scale = _ONE
            else:
                shrink(stored, bias, stored.size, _ONE / kept)
                scale *= kept
        elif penalty == L1:
            pull_to_zero(stored, bias, np.float32(step_size * penalty_weight))
        for j in range(batch):
            row = rows[s * batch + j]
            moved = False
            for o in range(j * stride, j * stride + outputs):
                change = -step * changes[o] / scale
                stored[bias + o - j * stride] += change
                moved |= change != _ZERO
                changes[o] = unit * change
            if moved:
                for block in range(0, stride, LANES):
                    add(
                        stored, stride, block, features, values, starts[row], starts[row + 1],
                        changes, j * stride + block,
                    )  # fmt: skip
    return scale


# ----------------------------------------------------------------------------- what Python calls
@compiled(nogil=True)
def train(
    features, values, starts, labels, unit, offsets, ues, key, t, model, outputs, work,
    loss, penalty, penalty_weight, step_size, steps, batch, trained, begin, end,
):  # fmt: skip
    """``trained[i]``: the model of ``ues[i]`` after its local steps, for i in begin..end.

    ``work`` has a row of padded weights for each of them.
    """
    stride = work.shape[1] // (model.size // outputs)
    for i in range(begin, end):
        ue = ues[i]
        stored = work[i]
        pad(model, outputs, stride, stored)
        scale = train_one(
            features, values, starts, labels, unit, offsets[ue], offsets[ue + 1] - offsets[ue],
            subkey(subkey(key, t), ue), stored, stride, outputs,
            loss, penalty, penalty_weight, step_size, steps, batch,
        )  # fmt: skip
        trim(stored, outputs, stride, scale, trained[i])


@compiled(nogil=True)
def evaluate(
    features, values, starts, labels, unit, outputs, stride, stored, loss,
    parts, right, losses, begin, end,
):  # fmt: skip
    """How many samples of each part are classified rightly, and the sum of their losses.

    For the parts begin..end; ``parts[i]`` are the first row of a part and the one behind its
    last, and ``stored`` is the padded model.
    """
    bias = stored.size - stride
    scores = np.zeros(stride, np.float32)
    slopes = np.zeros(stride, np.float32)
    for part in range(begin, end):
        right[part], losses[part] = 0, 0.0
        for row in range(parts[part, 0], parts[part, 1]):
            for block in range(0, stride, LANES):
                score(stored, stride, block, features, values, starts[row], starts[row + 1], scores)
            for i in range(outputs):
                scores[i] = unit * scores[i] + stored[bias + i]
            losses[part] += loss_and_slopes(loss, scores, outputs, labels[row], slopes, 0)
            right[part] += predict(scores, outputs) == labels[row]


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


@compiled()
def count_entries(table, order, starts):
    """Where the entries of each row begin: row i holds the non-zeros of ``table[order[i]]``."""
    starts[0] = 0
    for row in range(order.size):
        count = 0
        for feature in range(table.shape[1]):
            count += table[order[row], feature] != 0
        starts[row + 1] = starts[row] + count


@compiled()
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
