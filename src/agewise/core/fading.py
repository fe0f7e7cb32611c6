"""Block fading.

Exponential numbers by the ziggurat of Marsaglia and Tsang (2000): the area under exp(-x) is cut
into 256 horizontal layers of equal area; in 98 of 100 cases a draw lies in the part of its layer
that is surely below the curve, and costs one table look-up and one multiplication.
"""

from decimal import Decimal, localcontext

import numpy as np

from agewise.core.elementary import exp, log1p
from agewise.core.jit import inlined, kernel, njit
from agewise.core.random import bits, mix, subkey, unit

_LAYERS = 256
_TAIL = 7.69711747013104972  # where the lowest layer's rectangle ends
_AREA = 3.949659822581572e-3  # of each layer
_SPAN = 2.0**53


def _tables():
    """Right ends of the layers, heights of the curve there, and shares that are surely inside.

    In decimal numbers, which are the same on every machine.
    """
    with localcontext(prec=25):
        area, end = Decimal(_AREA), Decimal(_TAIL)
        height = (-end).exp()
        # The lowest layer is as wide as if it were a rectangle.
        ends, heights = [area / height, end], [(-area / height).exp(), height]
        for _ in range(2, _LAYERS):
            height += area / end
            end = -height.ln()
            ends.append(end)
            heights.append(height)
    ends, heights = np.array([*ends, 0], float), np.array([*heights, 1], float)
    inside = np.ceil(ends[1:] / ends[:-1] * _SPAN).astype(np.uint64)
    return ends, heights, inside


_ENDS, _HEIGHTS, _INSIDE = _tables()
_STEPS = _ENDS / _SPAN  # of a draw's 53 bits


@inlined
def _from_layer(word):
    """Where a draw lies in its layer, which layer, and whether that is surely below the curve."""
    layer = np.int64(word & np.uint64(_LAYERS - 1))
    share = word >> np.uint64(11)  # 53 bits that the layer's choice does not touch
    return np.float64(share) * _STEPS[layer], layer, share < _INSIDE[layer]


@njit
def exponential(word):
    """An exponential number of mean 1 from 64 random bits; rarely, more are derived from them."""
    while True:
        x, layer, surely = _from_layer(word)
        if surely:
            return x
        word = mix(word + np.uint64(1))
        if layer == 0:
            return _TAIL - log1p(-unit(word))
        low, high = _HEIGHTS[layer], _HEIGHTS[layer + 1]
        if low + unit(word) * (high - low) < exp(-x):
            return x
        word = mix(word + np.uint64(1))


@inlined
def fade_ue(round_key, ue, mean, gains):
    """Fill ``gains[subchannel]`` of one UE, exponential with this mean; returns the best."""
    first = np.uint64(ue) * np.uint64(gains.size)
    best = 0.0
    for subchannel in range(gains.size):
        word = bits(round_key, first + np.uint64(subchannel))
        x, _, surely = _from_layer(word)  # nearly always; the rest is a call, too long to inline
        gain = mean * (x if surely else exponential(word))
        gains[subchannel] = gain
        best = max(best, gain)
    return best


@kernel(nogil=True)
def fade(key, t, means, gains):
    """Fill ``gains[ue, subchannel]`` of round ``t``: each exponential with mean ``means[ue]``."""
    round_key = subkey(key, t)
    for ue in range(gains.shape[0]):
        fade_ue(round_key, ue, means[ue], gains[ue])
