"""Normal and gamma numbers, each from a word of 64 random bits.

Normal numbers by the ziggurat of Marsaglia and Tsang (2000), as the exponential ones of
`agewise.core.fading`: the area under exp(-x²/2) for x > 0 is cut into 256 horizontal layers of
equal area, and 99 of 100 draws cost one table look-up and one multiplication.
"""

from decimal import Decimal, localcontext

import numpy as np

from agewise.core.elementary import exp, log, log1p, power
from agewise.core.jit import inlined, kernel, njit
from agewise.core.random import bits, mix, subkey, unit

_LAYERS = 256
_TAIL = 3.6541528853610088  # where the lowest layer's rectangle ends
_AREA = 4.928673233974658e-3  # of each layer
_SPAN = 2.0**53


def _tables():
    """Right ends of the layers, heights of the curve there, and shares that are surely inside.

    In decimal numbers, which are the same on every machine.
    """
    with localcontext(prec=25):
        area, end = Decimal(_AREA), Decimal(_TAIL)
        height = (-end * end / 2).exp()
        # The lowest layer is as wide as if it were a rectangle.
        ends, heights = [area / height, end], [Decimal(0), height]
        for _ in range(2, _LAYERS):
            height += area / end
            end = (-2 * height.ln()).sqrt()
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
    share = word >> np.uint64(11)  # 53 bits that neither the layer nor the sign touches
    return np.float64(share) * _STEPS[layer], layer, share < _INSIDE[layer]


@njit
def _beyond(word):
    """The size of a normal number whose first draw is not surely below the curve."""
    while True:
        x, layer, surely = _from_layer(word)
        if surely:
            return x
        word = mix(word + np.uint64(1))
        if layer == 0:
            while True:
                x = -log1p(-unit(word)) / _TAIL
                word = mix(word + np.uint64(1))
                if -2.0 * log1p(-unit(word)) > x * x:
                    return _TAIL + x
                word = mix(word + np.uint64(1))
        low, high = _HEIGHTS[layer], _HEIGHTS[layer + 1]
        if low + unit(word) * (high - low) < exp(-0.5 * x * x):
            return x
        word = mix(word + np.uint64(1))


@inlined
def normal(word):
    """A standard normal number from 64 random bits; rarely, more are derived from them."""
    x, _, surely = _from_layer(word)  # nearly always; the rest is a call, too long to inline
    if not surely:
        x = _beyond(word)
    # The sign is a product: a branch that half of the draws take would cost more than the draw.
    return x * (np.float64((word >> np.uint64(7)) & np.uint64(2)) - 1.0)


@njit
def gamma(word, shape):
    """A gamma number of this shape (above 0) and scale 1, by Marsaglia and Tsang (2000).

    A shape below 1 is reached from the next higher one by a power of a uniform number.
    """
    boost = 1.0
    if shape < 1.0:
        boost = power(1.0 - unit(word), 1.0 / shape)
        word = mix(word + np.uint64(1))
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal(word)
        word = mix(word + np.uint64(1))
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if log(1.0 - unit(word)) < 0.5 * x * x + d - d * v + d * log(v):
                return boost * d * v
        word = mix(word + np.uint64(1))


@kernel(nogil=True)
def fade_nakagami(key, t, shape, means, gains):
    """Fill ``gains[ue, subchannel]`` of round ``t``: gamma of this shape, mean ``means[ue]``."""
    round_key = subkey(key, t)
    for ue in range(gains.shape[0]):
        scale = means[ue] / shape
        first = np.uint64(ue) * np.uint64(gains.shape[1])
        for subchannel in range(gains.shape[1]):
            word = bits(round_key, first + np.uint64(subchannel))
            gains[ue, subchannel] = scale * gamma(word, shape)


@kernel(nogil=True)
def disturb(key, t, correlation, means, gains, seen):
    """Fill ``seen[ue, subchannel]``: Rayleigh ``gains`` as they look through an error.

    The amplitude seen is ``correlation`` times the true one plus a complex normal error, so that
    both have the mean power ``means[ue]``.
    """
    round_key = subkey(key, t)
    for ue in range(gains.shape[0]):
        first = np.uint64(ue) * np.uint64(gains.shape[1])
        rest = np.sqrt(0.5 * (1.0 - correlation * correlation) * means[ue])
        for subchannel in range(gains.shape[1]):
            count = np.uint64(2) * (first + np.uint64(subchannel))
            x = correlation * np.sqrt(gains[ue, subchannel]) + rest * normal(bits(round_key, count))
            y = rest * normal(bits(round_key, count + np.uint64(1)))
            seen[ue, subchannel] = x * x + y * y
