"""Compiled kernels of linear models: local SGD (Algorithm 3) and evaluation.

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
from agewise.core.lanes import LANES, entry, fused, load, prefetch, spread, store
from agewise.learn.team_kernels import SUBJECT, array_at, await_all, await_tasks, finish, post, take
from agewise.core.random import below, subkey

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


# --------------------------------------------------------------------- tasks that threads share
#: What a board says the tasks are: local SGD of a UE, or measuring a part of the samples.
TRAINING, MEASURING_TEST, MEASURING_TRAIN = range(3)
#: Where a board says what they are about.
KIND, KEY, UES, MODEL, TRAINED, PARTS, RIGHT, LOSSES, COUNT = range(SUBJECT, SUBJECT + 9)


@njit
def train_task(
    i, features, values, starts, labels, unit, offsets, ues, round_key, model, outputs, stored,
    loss, penalty, penalty_weight, step_size, steps, batch, trained,
):  # fmt: skip
    """Model ``i`` of ``trained``: that of ``ues[i]`` after its local steps from ``model``."""
    ue = ues[i]
    stride = stored.size // (model.size // outputs)
    pad(model, outputs, stride, stored)
    scale = train_one(
        features, values, starts, labels, unit, offsets[ue], offsets[ue + 1] - offsets[ue],
        subkey(round_key, ue), stored, stride, outputs,
        loss, penalty, penalty_weight, step_size, steps, batch,
    )  # fmt: skip
    trim(stored, outputs, stride, scale, trained[i * model.size : (i + 1) * model.size])


@njit
def measure_task(
    part, features, values, starts, labels, unit, outputs, stored, stride, loss, parts,
    right, losses,
):  # fmt: skip
    """How many samples of a part are classified rightly, and the sum of their losses.

    The part's first row and the one behind its last are ``parts[2 part]`` and the next entry.
    """
    bias = stored.size - stride
    scores = np.zeros(stride, np.float32)
    slopes = np.zeros(stride, np.float32)
    right[part], losses[part] = 0, 0.0
    for row in range(parts[2 * part], parts[2 * part + 1]):
        for block in range(0, stride, LANES):
            score(stored, stride, block, features, values, starts[row], starts[row + 1], scores)
        for i in range(outputs):
            scores[i] = unit * scores[i] + stored[bias + i]
        losses[part] += loss_and_slopes(loss, scores, outputs, labels[row], slopes, 0)
        right[part] += predict(scores, outputs) == labels[row]


# ----------------------------------------------------------------------------- what Python calls
@compiled(nogil=True)
def train(
    board, step_sizes, stored, outputs, loss, penalty, penalty_weight, steps, batch, offsets,
    features, values, starts, labels, unit, key, t, step_size, ues, model, trained,
):  # fmt: skip
    """Fill ``trained``, the models of ``ues`` one after another, with whoever helps."""
    round_key = subkey(key, t)
    board[KIND] = TRAINING
    board[KEY] = np.int64(round_key)
    board[UES], board[COUNT] = ues.ctypes.data, ues.size
    board[MODEL], board[TRAINED] = model.ctypes.data, trained.ctypes.data
    step_sizes[0] = step_size
    post(board, ues.size)
    while True:
        i = take(board)
        if i < 0:
            break
        train_task(
            i, features, values, starts, labels, unit, offsets, ues, round_key, model, outputs,
            stored, loss, penalty, penalty_weight, step_size, steps, batch, trained,
        )  # fmt: skip
        finish(board)
    await_all(board, ues.size)


@compiled(nogil=True)
def measure(
    board, kind, shown, outputs, loss, features, values, starts, labels, unit,
    model, parts, right, losses,
):  # fmt: skip
    """What `measure_task` says of every part of the samples of this kind, with whoever helps.

    ``shown`` is padded memory for the model, which the helpers read.
    """
    stride = shown.size // (model.size // outputs)
    pad(model, outputs, stride, shown)
    board[KIND], board[COUNT] = kind, right.size
    board[PARTS], board[RIGHT] = parts.ctypes.data, right.ctypes.data
    board[LOSSES] = losses.ctypes.data
    post(board, right.size)
    while True:
        part = take(board)
        if part < 0:
            break
        measure_task(
            part, features, values, starts, labels, unit, outputs, shown, stride, loss, parts,
            right, losses,
        )  # fmt: skip
        finish(board)
    await_all(board, right.size)


@compiled(nogil=True)
def help_out(
    board, step_sizes, shown, outputs, loss, penalty, penalty_weight, steps, batch, offsets,
    features, values, starts, labels, unit,
    test_features, test_values, test_starts, test_labels, test_unit,
    parameters, stored, looks,
):  # fmt: skip
    """Take tasks from the board until there are none for so many looks, or on being told to leave.

    ``parameters`` is the length of a model and ``stored`` padded memory of the helper's own.
    """
    stride = shown.size // (parameters // outputs)
    while await_tasks(board, looks):
        task = take(board)
        if task < 0:
            continue
        count = board[COUNT]
        if board[KIND] == TRAINING:
            train_task(
                task, features, values, starts, labels, unit, offsets,
                array_at(board[UES], count, board), np.uint64(board[KEY]),
                array_at(board[MODEL], parameters, stored), outputs,
                stored, loss, penalty, penalty_weight, step_sizes[0], steps, batch,
                array_at(board[TRAINED], count * parameters, stored),
            )  # fmt: skip
        else:
            parts = array_at(board[PARTS], 2 * count, board)
            right = array_at(board[RIGHT], count, board)
            losses = array_at(board[LOSSES], count, step_sizes)
            if board[KIND] == MEASURING_TEST:
                measure_task(
                    task, test_features, test_values, test_starts, test_labels, test_unit,
                    outputs, shown, stride, loss, parts, right, losses,
                )  # fmt: skip
            else:
                measure_task(
                    task, features, values, starts, labels, unit,
                    outputs, shown, stride, loss, parts, right, losses,
                )  # fmt: skip
        finish(board)
