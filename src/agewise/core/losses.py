"""Losses of linear models and their slopes, for the scores of one sample.

Scores and slopes are padded to whole lanes of 16 floats (`agewise.core.linear`).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from agewise.core.lanes import LANES, load, store, where_positive

HINGE, SQUARED_HINGE, LOGISTIC, SQUARED_ERROR, MULTINOMIAL = range(5)

_ZERO, _HALF, _ONE, _TWO = (np.float32(x) for x in (0.0, 0.5, 1.0, 2.0))


class Scores(NamedTuple):
    """What a linear model gives: the number of its scores, and the code of their loss."""

    outputs: int
    loss: int


@njit
def stride_of(outputs):
    """The number of scores with the padding."""
    return (outputs + LANES - 1) // LANES * LANES


@njit
def signs_of(outputs, classes):
    """``[class, stride]``: +1 for the output of a class, -1 for the others, 0 for the padding.

    One output tells class 1 (score > 0) from class 0; several are one against the rest.
    """
    stride = stride_of(outputs)
    signs = np.zeros((classes, stride), np.float32)
    for label in range(classes):
        own = label if outputs > 1 else label - 1
        for i in range(outputs):
            signs[label, i] = _ONE if i == own else -_ONE
    return signs


@njit(error_model="numpy")
def find_slopes(scores, given, label, signs, slopes):
    """The derivatives of a sample's loss by its scores ``given[i]``; 0 for the padding."""
    if scores.loss == MULTINOMIAL:
        _multinomial_slopes(given, scores.outputs, label, slopes)
    elif scores.loss == LOGISTIC:
        for i in range(scores.outputs):
            y = signs[label, i]
            margin = y * given[i]
            smaller = np.exp(-abs(margin))  # never overflows
            share = smaller / (_ONE + smaller)
            slopes[i] = -y * (share if margin > _ZERO else _ONE - share)
    else:
        for block in range(0, slopes.size, LANES):
            y = load(signs[label], block)
            short = _ONE - y * load(given, block)
            if scores.loss == HINGE:
                slope = where_positive(short, -_ONE * y)
            elif scores.loss == SQUARED_HINGE:
                slope = -_TWO * y * where_positive(short, short)
            else:
                slope = -_ONE * y * short
            store(slopes, block, slope)


@njit(error_model="numpy")
def _multinomial_slopes(given, outputs, label, slopes):
    top = given[0]
    for i in range(1, outputs):
        top = max(top, given[i])
    whole = _ZERO
    for i in range(outputs):
        slopes[i] = np.exp(given[i] - top)
        whole += slopes[i]
    for i in range(outputs):
        slopes[i] /= whole
    slopes[label] -= _ONE


@njit(error_model="numpy")
def loss_of(scores, given, label, signs):
    """The loss of a sample with the scores ``given[i]``."""
    if scores.loss == MULTINOMIAL:
        return _multinomial_loss(given, scores.outputs, label)
    value = 0.0
    for i in range(scores.outputs):
        margin = signs[label, i] * given[i]
        short = max(_ZERO, _ONE - margin)
        if scores.loss == HINGE:
            value += short
        elif scores.loss == SQUARED_HINGE:
            value += short * short
        elif scores.loss == LOGISTIC:
            value += np.log1p(np.exp(-abs(margin))) + max(_ZERO, -margin)
        else:
            value += _HALF * (_ONE - margin) * (_ONE - margin)
    return value


@njit(error_model="numpy")
def _multinomial_loss(given, outputs, label):
    top = given[0]
    for i in range(1, outputs):
        top = max(top, given[i])
    whole = _ZERO
    for i in range(outputs):
        whole += np.exp(given[i] - top)
    return np.float64(np.log(whole) + (top - given[label]))


@njit
def predict(given, outputs):
    """The class of these scores; the first one among equals."""
    if outputs == 1:
        return np.int64(given[0] > _ZERO)
    best, top = 0, given[0]
    for i in range(1, outputs):
        if given[i] > top:
            best, top = i, given[i]
    return best
