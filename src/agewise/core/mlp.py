"""Kernels of multilayer perceptrons: minibatch SGD (Algorithm 3) and evaluation.

Hidden layers have ReLU, the loss is softmax cross-entropy. Units of a batch are ``[sample][unit]``.

A flat model is ``[input + 1][output]`` for each layer, one after another, the bias last, as in
linear models. Here the weights of a layer are in panels of 16 outputs, ``[panel][input][16]``, so
that what one panel of outputs needs is next to each other and stays in the nearest cache while all
samples of a batch go through it. Outputs are padded to whole panels, and with them the inputs of
the next layer; the padding is 0 and stays so.

The first layer reads samples as (feature, value) pairs, so that zeros (four fifths of MNIST) cost
nothing; it goes through a batch panel by panel, because the rows of a panel that a batch touches
fit into the nearest cache and those of all panels do not. Its L2 penalty is kept as one number
(``weights = scale * kept``), so that a step touches only what its samples touch. The other layers
are dense: sums over inputs run in registers, for five samples at a time.

What a UE does follows from (key, UE), the start model and its correction, and every sum has a
fixed order: nothing depends on how UEs and samples are divided among threads.
"""

from typing import NamedTuple

import numpy as np

from agewise.core.jit import inlined, kernel, njit
from agewise.core.lanes import (
    LANES,
    any_nonzero,
    entry,
    fused,
    load,
    spread,
    store,
    sums_across,
    where_positive,
)
from agewise.core.linear import (
    AHEAD,
    L1,
    L2,
    LEAST_SCALE,
    MULTINOMIAL,
    Scores,
    add,
    add_losses,
    aligned,
    apply_terms,
    count_right,
    find_slopes,
    proximal_terms,
    score,
    shrink,
    step_l1,
    stride_of,
)
from agewise.core.samples import ask_for_row, draw_rows

#: Samples whose sums a dense layer keeps in registers together.
TILE = 5
#: Samples that evaluation sends through the net together.
_TOGETHER = 40

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class _Net(NamedTuple):
    """Layer l leads from ``widths[l]`` to ``widths[l + 1]`` units.

    Its weights begin at ``starts[l]``, its biases at ``bias_starts[l]``; the last entries of
    these say how many numbers there are.
    """

    widths: np.ndarray
    starts: np.ndarray
    bias_starts: np.ndarray
    weights: np.ndarray
    biases: np.ndarray


class _Batch(NamedTuple):
    """Samples on their way through a net.

    Sample j has the entries from ``ends[j]`` to ``ends[j + 1]``: a place (16 times the feature)
    and a value each. Layer l gives ``units[starts[l]:]``, ``[sample][unit]``, and ``slopes`` are
    the derivatives there.
    """

    places: np.ndarray
    values: np.ndarray
    ends: np.ndarray
    starts: np.ndarray
    units: np.ndarray
    slopes: np.ndarray


# -------------------------------------------------------------------------------- a model in panels
@inlined
def _inputs_of(widths, layer):
    """The inputs of a layer with the padding; those of the first layer have none."""
    return widths[0] if layer == 0 else stride_of(widths[layer])


@njit
def empty_net(widths):
    """Memory for a model with these widths."""
    layers = widths.size - 1
    starts, bias_starts = np.zeros(layers + 1, np.int64), np.zeros(layers + 1, np.int64)
    for layer in range(layers):
        stride = stride_of(widths[layer + 1])
        starts[layer + 1] = starts[layer] + _inputs_of(widths, layer) * stride
        bias_starts[layer + 1] = bias_starts[layer] + stride
    weights, biases = aligned(starts[layers]), aligned(bias_starts[layers])
    return _Net(widths, starts, bias_starts, weights, biases)


@njit
def put(model, net):
    """Spread a flat model over the panels, and 0 over the padding."""
    at = 0
    for layer in range(net.widths.size - 1):
        inputs, outputs = net.widths[layer], net.widths[layer + 1]
        rows, first = _inputs_of(net.widths, layer), net.starts[layer]
        # A panel is 16 outputs of all inputs: what a vector instruction needs lies in one piece.
        for i in range(inputs):  # row by row, as the model lies in memory
            _put_row(model[at : at + outputs], net.weights, first + i * LANES, rows * LANES)
            at += outputs
        for panel in range(0, outputs, LANES):
            net.weights[first + panel * rows + inputs * LANES : first + (panel + LANES) * rows] = 0
        _put_row(model[at : at + outputs], net.biases, net.bias_starts[layer], LANES)
        at += outputs


@inlined
def _put_row(row, target, to, step):
    """Numbers of all outputs, 16 to a panel; panels are ``step`` numbers apart."""
    whole = row.size // LANES * LANES
    for k in range(0, whole, LANES):
        store(target, to, load(row, k))
        to += step
    if whole < row.size:
        store(target, to, spread(0.0))
        for k in range(whole, row.size):
            target[to + k - whole] = row[k]


@njit
def take(net, scale, model):
    """The flat model of a net whose first layer has ``scale`` times the weights kept there."""
    at = 0
    for layer in range(net.widths.size - 1):
        inputs, outputs = net.widths[layer], net.widths[layer + 1]
        rows, factor = _inputs_of(net.widths, layer), scale if layer == 0 else _ONE
        for i in range(inputs):
            for panel in range(0, outputs, LANES):
                source = net.starts[layer] + panel * rows + i * LANES
                to = at + i * outputs + panel
                if to + LANES <= model.size:
                    # What this writes beyond the row's own outputs is written again by the next.
                    store(model, to, factor * load(net.weights, source))
                else:
                    for k in range(min(LANES, outputs - panel)):
                        model[to + k] = factor * net.weights[source + k]
        at += inputs * outputs
        for i in range(outputs):
            model[at + i] = net.biases[net.bias_starts[layer] + i]
        at += outputs


# ------------------------------------------------------------------------------- samples of a batch
@njit
def _empty_batch(widths, size, longest):
    """Memory for ``size`` samples of at most ``longest`` entries."""
    padded = (size + TILE - 1) // TILE * TILE
    starts = np.zeros(widths.size, np.int64)
    for layer in range(widths.size - 1):
        starts[layer + 1] = starts[layer] + padded * stride_of(widths[layer + 1])
    length = starts[widths.size - 1]
    return _Batch(
        np.empty(size * longest, np.uint32),
        np.empty(size * longest, np.float32),
        np.zeros(size + 1, np.int64),
        starts,
        aligned(length),
        aligned(length),
    )


@njit
def _longest_row(rows, first, stop):
    """The most entries of a row among these."""
    longest = 0
    for row in range(first, stop):
        longest = max(longest, rows.starts[row + 1] - rows.starts[row])
    return longest


@inlined
def _gather(rows, row, j, batch):
    """Put the entries of a row in place as sample ``j``."""
    source, to = rows.starts[row], batch.ends[j]
    count = rows.starts[row + 1] - source
    places, values = batch.places[to : to + count], batch.values[to : to + count]
    features, numbers = rows.features[source : source + count], rows.values[source : source + count]
    for i in range(count):
        places[i] = np.uint32(features[i]) * np.uint32(LANES)
    for i in range(count):
        values[i] = rows.unit * np.float32(numbers[i])
    batch.ends[j + 1] = to + count


# --------------------------------------------------------------------------------------- forwards
@inlined
def _dot_two(weights, base, behind, places, values, start, stop):
    """`score` of a panel and of the one that is ``behind`` numbers further on."""
    # Values are read once for both; the sums are those of `score`, in the same order.
    a = b = c = d = e = f = g = h = spread(0.0)
    at = start
    while at + 4 <= stop:
        p, value = base + entry(places, at), spread(entry(values, at))
        a = fused(value, load(weights, p), a)
        e = fused(value, load(weights, p + behind), e)
        p, value = base + entry(places, at + 1), spread(entry(values, at + 1))
        b = fused(value, load(weights, p), b)
        f = fused(value, load(weights, p + behind), f)
        p, value = base + entry(places, at + 2), spread(entry(values, at + 2))
        c = fused(value, load(weights, p), c)
        g = fused(value, load(weights, p + behind), g)
        p, value = base + entry(places, at + 3), spread(entry(values, at + 3))
        d = fused(value, load(weights, p), d)
        h = fused(value, load(weights, p + behind), h)
        at += 4
    while at < stop:
        p, value = base + entry(places, at), spread(entry(values, at))
        a = fused(value, load(weights, p), a)
        e = fused(value, load(weights, p + behind), e)
        at += 1
    return (a + b) + (c + d), (e + f) + (g + h)


@inlined
def _activate(net, batch, sums, scale, at, panel):
    """Units of the first layer from the sums of one sample for a panel."""
    given = scale * sums + load(net.biases, panel)
    store(batch.units, at + panel, where_positive(given, given))


@njit
def _first_layer(net, batch, count, scale):
    """The units of the first layer for ``count`` samples."""
    weights, places, values, ends = net.weights, batch.places, batch.values, batch.ends
    inputs, stride = net.widths[0], stride_of(net.widths[1])
    behind, panel = inputs * LANES, 0
    # Two panels at a time: entries of the samples are read half as often.
    while panel + 2 * LANES <= stride:
        for j in range(count):
            one, other = _dot_two(
                weights, panel * inputs, behind, places, values, ends[j], ends[j + 1]
            )
            _activate(net, batch, one, scale, j * stride, panel)
            _activate(net, batch, other, scale, j * stride, panel + LANES)
        panel += 2 * LANES
    if panel < stride:
        for j in range(count):
            sums = score(weights, panel * inputs, 1, places, values, ends[j], ends[j + 1])
            _activate(net, batch, sums, scale, j * stride, panel)


@njit
def _dense_layer(net, batch, count, layer, hidden):
    """The units of a later layer; a hidden one has ReLU."""
    weights, units = net.weights, batch.units
    width, inputs = net.widths[layer], _inputs_of(net.widths, layer)
    stride = stride_of(net.widths[layer + 1])
    for panel in range(0, stride, LANES):
        base = net.starts[layer] + panel * inputs
        bias = load(net.biases, net.bias_starts[layer] + panel)
        # Five samples share each row of weights that is loaded. Those beyond the batch are padding,
        # and nobody reads what comes of them.
        for j in range(0, count, TILE):
            at = batch.starts[layer - 1] + j * inputs
            a = bias
            b = bias
            c = bias
            d = bias
            e = bias
            for i in range(width):
                row = load(weights, base + i * LANES)
                a = fused(entry(units, at + i), row, a)
                b = fused(entry(units, at + inputs + i), row, b)
                c = fused(entry(units, at + 2 * inputs + i), row, c)
                d = fused(entry(units, at + 3 * inputs + i), row, d)
                e = fused(entry(units, at + 4 * inputs + i), row, e)
            to = batch.starts[layer] + j * stride + panel
            if hidden:
                a = where_positive(a, a)
                b = where_positive(b, b)
                c = where_positive(c, c)
                d = where_positive(d, d)
                e = where_positive(e, e)
            store(units, to, a)
            store(units, to + stride, b)
            store(units, to + 2 * stride, c)
            store(units, to + 3 * stride, d)
            store(units, to + 4 * stride, e)


@inlined
def _forwards(net, batch, count, scale):
    """All layers for ``count`` samples."""
    last = net.widths.size - 2
    _first_layer(net, batch, count, scale)
    for layer in range(1, last + 1):
        _dense_layer(net, batch, count, layer, layer < last)


# -------------------------------------------------------------------------------------- backwards
@njit
def _backwards(net, batch, count, layer):
    """The slopes of the units before a layer, from those behind it."""
    weights, slopes = net.weights, batch.slopes
    inputs, stride = _inputs_of(net.widths, layer), stride_of(net.widths[layer + 1])
    first, size = net.starts[layer], inputs * LANES
    for i in range(0, inputs, LANES):  # the weights of 16 inputs stay in the nearest cache
        for j in range(count):
            a = b = c = d = e = f = g = h = spread(0.0)
            k = m = n = o = p = q = r = s = spread(0.0)
            at, row = first + i * LANES, batch.starts[layer] + j * stride
            for _ in range(0, stride, LANES):
                slope = load(slopes, row)
                a = fused(load(weights, at), slope, a)
                b = fused(load(weights, at + 16), slope, b)
                c = fused(load(weights, at + 32), slope, c)
                d = fused(load(weights, at + 48), slope, d)
                e = fused(load(weights, at + 64), slope, e)
                f = fused(load(weights, at + 80), slope, f)
                g = fused(load(weights, at + 96), slope, g)
                h = fused(load(weights, at + 112), slope, h)
                k = fused(load(weights, at + 128), slope, k)
                m = fused(load(weights, at + 144), slope, m)
                n = fused(load(weights, at + 160), slope, n)
                o = fused(load(weights, at + 176), slope, o)
                p = fused(load(weights, at + 192), slope, p)
                q = fused(load(weights, at + 208), slope, q)
                r = fused(load(weights, at + 224), slope, r)
                s = fused(load(weights, at + 240), slope, s)
                at += size
                row += LANES
            # Sixteen vectors of partial sums become one vector of sixteen sums.
            sums = sums_across((a, b, c, d, e, f, g, h, k, m, n, o, p, q, r, s))
            to = batch.starts[layer - 1] + j * inputs + i
            # The derivative of ReLU: 1 where the unit was above 0, else 0.
            store(slopes, to, where_positive(load(batch.units, to), sums))


@njit
def _change_dense(net, batch, count, layer, kept):
    """``kept`` times the weights of a later layer, plus what the slopes say."""
    weights, units, slopes = net.weights, batch.units, batch.slopes
    inputs, stride = _inputs_of(net.widths, layer), stride_of(net.widths[layer + 1])
    for panel in range(0, stride, LANES):
        for i in range(0, inputs, 8):
            at = net.starts[layer] + panel * inputs + i * LANES
            a = kept * load(weights, at)
            b = kept * load(weights, at + 16)
            c = kept * load(weights, at + 32)
            d = kept * load(weights, at + 48)
            e = kept * load(weights, at + 64)
            f = kept * load(weights, at + 80)
            g = kept * load(weights, at + 96)
            h = kept * load(weights, at + 112)
            for j in range(count):
                slope = load(slopes, batch.starts[layer] + j * stride + panel)
                unit = batch.starts[layer - 1] + j * inputs + i
                a = fused(entry(units, unit), slope, a)
                b = fused(entry(units, unit + 1), slope, b)
                c = fused(entry(units, unit + 2), slope, c)
                d = fused(entry(units, unit + 3), slope, d)
                e = fused(entry(units, unit + 4), slope, e)
                f = fused(entry(units, unit + 5), slope, f)
                g = fused(entry(units, unit + 6), slope, g)
                h = fused(entry(units, unit + 7), slope, h)
            store(weights, at, a)
            store(weights, at + 16, b)
            store(weights, at + 32, c)
            store(weights, at + 48, d)
            store(weights, at + 64, e)
            store(weights, at + 80, f)
            store(weights, at + 96, g)
            store(weights, at + 112, h)


@njit
def _change_first(net, batch, count, scale):
    """Add what the slopes say to the weights of the first layer, which are kept over ``scale``."""
    weights, slopes = net.weights, batch.slopes
    places, values, ends = batch.places, batch.values, batch.ends
    inputs, stride = net.widths[0], stride_of(net.widths[1])
    for panel in range(0, stride, LANES):
        base = panel * inputs
        for j in range(count):
            change = load(slopes, j * stride + panel) / scale
            # Units that ReLU cut off change nothing, and they are many.
            if not any_nonzero(change):
                continue
            add(weights, base, 1, places, values, ends[j], ends[j + 1], change)


@njit
def _change_biases(net, batch, count):
    """Add the slopes of all samples to the biases."""
    for layer in range(net.widths.size - 1):
        stride = stride_of(net.widths[layer + 1])
        for panel in range(0, stride, LANES):
            to = net.bias_starts[layer] + panel
            sums = load(net.biases, to)
            for j in range(count):
                sums = sums + load(batch.slopes, batch.starts[layer] + j * stride + panel)
            store(net.biases, to, sums)


# ---------------------------------------------------------------------------------------- one UE
@njit
def _train_one(rows, drawn, descent, step_size, terms, net, batch):
    """SGD on the rows ``drawn[step * batch + sample]`` of one UE, in place; returns the scale.

    ``terms`` is a net of what every step adds besides; with it nothing is scaled.
    """
    penalty, count, last = descent.penalty, descent.batch, net.widths.size - 2
    scores = Scores(net.widths[last + 1], MULTINOMIAL)
    stride = stride_of(scores.outputs)
    with_terms = terms.weights.size > 0
    proximal, shrinking = step_size * descent.proximal_weight, step_size * descent.penalty_weight
    # The L2 penalty makes every weight (1 - eta xi) times what it was. For the large first layer
    # that is one number, the scale; later layers are touched in each step anyway.
    kept = np.float32(1.0 - shrinking) if penalty == L2 and not with_terms else _ONE
    rest = np.float32(1.0 - proximal - (shrinking if penalty == L2 else 0.0))
    amount = np.float32(shrinking if penalty == L1 else 0.0)
    step = np.float32(-step_size / count)
    scale = _ONE
    for first in range(0, drawn.size, count):
        for j in range(count):
            if first + j + AHEAD < drawn.size:
                ask_for_row(rows, drawn[first + j + AHEAD])
            _gather(rows, drawn[first + j], j, batch)
        # Eq. 9 by backpropagation: scores, slopes of the last layer, then of those before it.
        _forwards(net, batch, count, scale)
        for j in range(count):
            at, label = batch.starts[last] + j * stride, rows.labels[drawn[first + j]]
            find_slopes(scores, batch.units, at, label, batch.units, batch.slopes)
            for i in range(at, at + stride, LANES):
                store(batch.slopes, i, step * load(batch.slopes, i))
        for layer in range(last, 0, -1):
            _backwards(net, batch, count, layer)
        if with_terms:
            apply_terms(net.weights, terms.weights, 0, net.weights.size, rest, amount)
            kept_bias = np.float32(1.0 - proximal)
            apply_terms(net.biases, terms.biases, 0, net.biases.size, kept_bias, _ZERO)
        elif penalty == L1:
            step_l1(net.weights, net.weights.size, amount)
        elif penalty == L2:
            scale *= kept
            # Before the scale gets so small that digits are lost, it goes into the weights.
            if abs(scale) < LEAST_SCALE:
                shrink(net.weights, 0, net.starts[1], scale)
                scale = _ONE
        # Slopes carry the factor -eta / batch already: changes are added as they are.
        _change_first(net, batch, count, scale)
        for layer in range(1, last + 1):
            _change_dense(net, batch, count, layer, kept)
        _change_biases(net, batch, count)
    return scale


# ----------------------------------------------------------------------------- what Python calls
@kernel(nogil=True)
def train(rows, offsets, widths, descent, key, cohort, starts, trained):
    """``trained[i]``: the flat model of the cohort's UE i after its local steps.

    The samples of UE k are the rows from ``offsets[k]`` to ``offsets[k + 1]``.
    """
    net = empty_net(widths)
    with_terms = descent.proximal_weight > 0.0 or cohort.corrections.size > 0
    terms = empty_net(widths if with_terms else widths[:1])
    longest = 0
    for ue in cohort.ues:
        longest = max(longest, _longest_row(rows, offsets[ue], offsets[ue + 1]))
    batch = _empty_batch(widths, descent.batch, longest)
    for i in range(cohort.ues.size):
        model, count = starts[cohort.start[i]], descent.steps * descent.batch
        drawn = draw_rows(key, cohort.t[i], cohort.ues[i], offsets, count)
        if with_terms:
            put(proximal_terms(model, cohort, i, descent), terms)
        put(model, net)
        scale = _train_one(rows, drawn, descent, cohort.step_size[i], terms, net, batch)
        take(net, scale, trained[i])


@kernel(nogil=True)
def measure(rows, widths, model, parts, losses, right):
    """``losses[i]``: the sum over the rows from ``parts[i, 0]`` to ``parts[i, 1]``.

    Adds to ``right[label]`` the samples of each class in these parts that are classified rightly.
    """
    net = empty_net(widths)
    put(model, net)
    last = widths.size - 2
    scores = Scores(widths[last + 1], MULTINOMIAL)
    longest = 0
    for part in range(losses.size):
        longest = max(longest, _longest_row(rows, parts[part, 0], parts[part, 1]))
    batch = _empty_batch(widths, _TOGETHER, longest)
    given = batch.units[batch.starts[last] :]
    for part in range(losses.size):
        loss = 0.0
        for first in range(parts[part, 0], parts[part, 1], _TOGETHER):
            count = min(_TOGETHER, parts[part, 1] - first)
            for j in range(count):
                _gather(rows, first + j, j, batch)
            _forwards(net, batch, count, _ONE)
            labels = rows.labels[first : first + count]
            loss = add_losses(scores, given, labels, given, loss)
            count_right(given, scores.outputs, labels, right)
        losses[part] = loss
