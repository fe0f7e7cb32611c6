"""A multilayer perceptron as the kernels keep it: weights in panels of 16 outputs.

A flat model is ``[input + 1][output]`` for each layer, one after another, the bias last, as in
linear models. Here the weights of a layer are ``[panel][input][16]``, so that what one panel of
outputs needs is next to each other and stays in the nearest cache while all samples of a batch go
through it. Outputs are padded to whole panels, and with them the inputs of the next layer; the
padding is 0 and stays so.
"""

from typing import NamedTuple

import numpy as np

from agewise.core.jit import inlined, njit
from agewise.core.lanes import LANES, fused, load, spread, store
from agewise.core.losses import stride_of

_CACHE_LINE = 64
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class Net(NamedTuple):
    """Layer l leads from ``widths[l]`` to ``widths[l + 1]`` units.

    Its weights begin at ``starts[l]``, its biases at ``bias_starts[l]``; the last entries of
    these say how many numbers there are.
    """

    widths: np.ndarray
    starts: np.ndarray
    bias_starts: np.ndarray
    weights: np.ndarray
    biases: np.ndarray


@inlined
def aligned(length):
    """``float32[length]`` of zeros from the start of a cache line on: no lanes straddle two."""
    memory = np.zeros(length + _CACHE_LINE // 4, np.float32)
    first = (-memory.ctypes.data % _CACHE_LINE) // 4
    return memory[first : first + length]


@inlined
def inputs_of(widths, layer):
    """The inputs of a layer with the padding; those of the first layer have none."""
    return widths[0] if layer == 0 else stride_of(widths[layer])


@njit
def empty_net(widths):
    """Memory for a model with these widths."""
    layers = widths.size - 1
    starts, bias_starts = np.zeros(layers + 1, np.int64), np.zeros(layers + 1, np.int64)
    for layer in range(layers):
        stride = stride_of(widths[layer + 1])
        starts[layer + 1] = starts[layer] + inputs_of(widths, layer) * stride
        bias_starts[layer + 1] = bias_starts[layer] + stride
    weights, biases = aligned(starts[layers]), aligned(bias_starts[layers])
    return Net(widths, starts, bias_starts, weights, biases)


@njit
def put(model, net):
    """Spread a flat model over the panels, and 0 over the padding."""
    at = 0
    for layer in range(net.widths.size - 1):
        inputs, outputs = net.widths[layer], net.widths[layer + 1]
        rows, first = inputs_of(net.widths, layer), net.starts[layer]
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
        rows, factor = inputs_of(net.widths, layer), scale if layer == 0 else _ONE
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


@njit
def pull_all(numbers, pulls, kept, amount):
    """``kept * numbers + pulls``, and a step of ``amount`` along the L1 penalty's subgradient."""
    if amount == _ZERO:
        for i in range(0, numbers.size, LANES):
            store(numbers, i, fused(kept, load(numbers, i), load(pulls, i)))
    else:
        for i in range(numbers.size):
            numbers[i] = (kept * numbers[i] + pulls[i]) - amount * np.sign(numbers[i])
