"""Normal and gamma numbers, each from a word of 64 random bits."""

import numpy as np

from agewise.core.elementary import exp, log, log1p, power
from agewise.core.jit import inlined, kernel, njit
from agewise.core.random import bits, mix, subkey, unit
from agewise.core.ziggurat import LAYERS, height_of, layers, over_chord

_TAIL = 3.6541528853610088
_ENDS, _HEIGHTS, _STEPS, _INSIDE, _CHORDS, _BULGES = layers(
    _TAIL,
    4.928673233974658e-3,
    height=lambda x: (-x * x / 2).exp(),
    inverse=lambda y: (-2 * y.ln()).sqrt(),
)
_SURELY = 1.0 - 1e-6  # 1, less far more than rounding changes
_LAYER = np.uint64(LAYERS - 1)
#: The bit above the layer is the sign, negative if it is 0.
_SIGN_AND_LAYER = np.uint64(2 * LAYERS - 1)
_SIGNED_STEPS = np.concatenate([-_STEPS, _STEPS])


@inlined
def _is_below(x, layer, share):
    """Whether a draw at x, at this share of the layer's height, is below the curve."""
    y = height_of(_HEIGHTS, layer, share)
    over = over_chord(x, y, (_ENDS[layer], _HEIGHTS[layer]), _CHORDS[layer])
    if abs(over) > _BULGES[layer]:
        return over < 0.0
    return y < exp(-0.5 * x * x)


@njit
def _beyond(word):
    """The size of a normal number whose first draw is not surely below the curve."""
    while True:
        layer, share = np.int64(word & _LAYER), np.int64(word >> np.uint64(11))
        x = np.float64(share) * _STEPS[layer]
        if share < _INSIDE[layer]:
            return x
        word = mix(word + np.uint64(1))
        if layer == 0:
            while True:
                x = -log1p(-unit(word)) / _TAIL
                word = mix(word + np.uint64(1))
                if -2.0 * log1p(-unit(word)) > x * x:
                    return _TAIL + x
                word = mix(word + np.uint64(1))
        if _is_below(x, layer, unit(word)):
            return x
        word = mix(word + np.uint64(1))


@inlined
def normal(word):
    """A standard normal number from 64 random bits; rarely, more are derived from them."""
    share = np.int64(word >> np.uint64(11))  # 53 bits that neither the layer nor the sign touches
    step = _SIGNED_STEPS[np.int64(word & _SIGN_AND_LAYER)]
    if share < _INSIDE[np.int64(word & _LAYER)]:
        return np.float64(share) * step
    size = _beyond(word)
    return size if step > 0.0 else -size


@njit
def fill_normal(words, scale, doubtful, found):
    """Fill ``found[i]`` with ``scale`` times the normal number of ``words[i]``.

    The rare draws that are not surely below the curve are found first and drawn afterwards, which
    keeps the loop short. ``doubtful`` is room for as many whole numbers as there are words.
    """
    doubts = 0
    for i in range(words.size):
        word = words[i]
        share = np.int64(word >> np.uint64(11))
        found[i] = scale * (np.float64(share) * _SIGNED_STEPS[np.int64(word & _SIGN_AND_LAYER)])
        if share >= _INSIDE[np.int64(word & _LAYER)]:
            doubtful[doubts] = i
            doubts += 1
    for k in range(doubts):
        found[doubtful[k]] = scale * normal(words[doubtful[k]])


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
            v, share = v * v * v, 1.0 - unit(word)
            # Nearly always the first test decides, which is the second without logarithms.
            if share < _SURELY - 0.0331 * (x * x) * (x * x):
                return boost * d * v
            if log(share) < 0.5 * x * x + d - d * v + d * log(v):
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
def add_estimation_error(key, t, correlation, means, gains, seen):
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
