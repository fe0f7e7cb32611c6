"""Block fading."""

import numpy as np

from agewise.core.elementary import exp, log1p
from agewise.core.jit import inlined, kernel, njit
from agewise.core.random import bits, mix, subkey, unit
from agewise.core.ziggurat import LAYERS, height_of, layers, over_chord

_TAIL = 7.69711747013104972
_ENDS, _HEIGHTS, _STEPS, _INSIDE, _CHORDS, _BULGES = layers(
    _TAIL, 3.949659822581572e-3, height=lambda x: (-x).exp(), inverse=lambda y: -y.ln()
)


@inlined
def _from_layer(word):
    """Where a draw lies in its layer, which layer, and whether that is surely below the curve."""
    layer = np.int64(word & np.uint64(LAYERS - 1))
    share = np.int64(word >> np.uint64(11))  # 53 bits that the layer's choice does not touch
    return np.float64(share) * _STEPS[layer], layer, share < _INSIDE[layer]


@inlined
def _is_below(x, layer, share):
    """Whether a draw at x, at this share of the layer's height, is below the curve."""
    y = height_of(_HEIGHTS, layer, share)
    over = over_chord(x, y, (_ENDS[layer], _HEIGHTS[layer]), _CHORDS[layer])
    if abs(over) > _BULGES[layer]:
        return over < 0.0
    return y < exp(-x)


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
        if _is_below(x, layer, unit(word)):
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
