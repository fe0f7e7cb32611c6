"""Losses of linear models and their slopes, for the scores of one sample.

Scores and slopes are padded to whole lanes of 16 floats (`agewise.core.linear`).
"""

from typing import NamedTuple

import numpy as np

from agewise.core.elementary import exp32, log, log1p32
from agewise.core.jit import inlined
from agewise.core.lanes import LANES, load, store, where_positive

HINGE, SQUARED_HINGE, LOGISTIC, SQUARED_ERROR, MULTINOMIAL = range(5)

_ZERO, _HALF, _ONE, _TWO = (np.float32(x) for x in (0.0, 0.5, 1.0, 2.0))


class Scores(NamedTuple):
    """What a linear model gives: the number of its scores, and the code of their loss."""

    outputs: int
    loss: int


@inlined
def stride_of(outputs):
    """The number of scores with the padding."""
    return (outputs + LANES - 1) // LANES * LANES


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
def find_slopes(scores, given, label, signs, slopes, at):
    """The derivatives of a sample's loss by its scores ``given`` go to ``slopes[at:]``.

    Those of the padding are 0, as they were before.
    """
    own = label * given.size
    if scores.loss == MULTINOMIAL:
        whole = _exponentials(given, scores.outputs, slopes, at)
        for i in range(at, at + scores.outputs):
            slopes[i] /= whole
        slopes[at + label] -= _ONE
    elif scores.loss == LOGISTIC:
        for i in range(given.size):  # whole lanes: the signs of the padding are 0
            y = signs[own + i]
            margin = y * given[i]
            smaller = exp32(-abs(margin))  # never overflows
            share = smaller / (_ONE + smaller)
            slopes[at + i] = -y * (share if margin > _ZERO else _ONE - share)
    else:
        for block in range(0, given.size, LANES):
            y = load(signs, own + block)
            short = _ONE - y * load(given, block)
            if scores.loss == HINGE:
                slope = where_positive(short, -_ONE * y)
            elif scores.loss == SQUARED_HINGE:
                slope = -_TWO * y * where_positive(short, short)
            else:
                slope = -_ONE * y * short
            store(slopes, at + block, slope)


@inlined
def find_loss(scores, given, label, signs, terms):
    """The loss of a sample with the scores ``given``; ``terms`` is memory for as many floats."""
    own = label * given.size
    if scores.loss == MULTINOMIAL:
        whole = _exponentials(given, scores.outputs, terms, 0)
        top = _largest(given, scores.outputs)
        return np.float64(np.float32(log(np.float64(whole))) + (top - given[label]))
    if scores.loss == LOGISTIC:
        for i in range(given.size):
            margin = signs[own + i] * given[i]
            terms[i] = log1p32(exp32(-abs(margin))) + max(_ZERO, -margin)
    else:
        for block in range(0, given.size, LANES):
            short = _ONE - load(signs, own + block) * load(given, block)
            if scores.loss == HINGE:
                term = where_positive(short, short)
            elif scores.loss == SQUARED_HINGE:
                term = where_positive(short, short * short)
            else:
                term = _HALF * short * short
            store(terms, block, term)
    loss = 0.0
    for i in range(scores.outputs):
        loss += terms[i]
    return loss


@inlined
def _largest(given, outputs):
    top = given[0]
    for i in range(1, outputs):
        top = max(top, given[i])
    return top


@inlined
def _exponentials(given, outputs, powers, at):
    """``exp(given[i] - top)`` into ``powers[at:]``; returns their sum."""
    top, whole = _largest(given, outputs), _ZERO
    for i in range(given.size):  # whole lanes, and then nothing in the padding
        powers[at + i] = exp32(given[i] - top)
    for i in range(outputs):
        whole += powers[at + i]
    for i in range(outputs, given.size):
        powers[at + i] = _ZERO
    return whole


@inlined
def predict(given, outputs):
    """The class of these scores; the first one among equals."""
    if outputs == 1:
        return np.int64(given[0] > _ZERO)
    best, top = 0, given[0]
    for i in range(1, outputs):
        if given[i] > top:
            best, top = i, given[i]
    return best
