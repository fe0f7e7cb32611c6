"""Tables of the ziggurat of Marsaglia and Tsang (2000), for numbers whose density only falls.

The area under the curve is cut into 256 horizontal layers of equal area. The low bits of a word
choose a layer, and 53 others a place in it. Nearly always that is surely below the curve, and the
draw costs one table look-up and one multiplication. Where the layer meets the curve, a second word
says how high the draw lies: clearly above or below the chord of the curve, or so near to it that
the curve itself has to be computed.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.jit import inlined

LAYERS = 256
_SPAN = 2.0**53
_ROUNDING = 1e-12  # far more than rounding changes of a height

_Function = Callable[[Decimal], Decimal]


class Layers(NamedTuple):
    """``[layer]``, from the lowest; ``ends`` and ``heights`` go on to the top of the curve.

    A layer ends at ``ends`` on the right, and the curve has ``heights`` there. ``steps`` are the
    widths per unit of a draw's 53 bits, and draws below ``inside`` are surely under the curve.
    The chord of the curve in the layer has the slope ``chords`` and is off by less than ``bulges``.
    """

    ends: NDArray[np.float64]
    heights: NDArray[np.float64]
    steps: NDArray[np.float64]
    inside: NDArray[np.int64]
    chords: NDArray[np.float64]
    bulges: NDArray[np.float64]


def layers(tail: float, area: float, height: _Function, inverse: _Function) -> Layers:
    """The layers under a curve that falls from 1 at 0.

    ``tail`` is where the rectangle of the lowest layer ends, ``area`` that of each layer, and
    ``inverse`` the place of a height. The curve's second derivative at x is at most
    ``max(1, x²)`` times its height. Computed in decimal numbers, the same on every machine.
    """
    with localcontext(prec=25):
        end, top = Decimal(tail), height(Decimal(tail))
        # The lowest layer is as wide as if it were a rectangle.
        ends, heights = [Decimal(area) / top, end], [Decimal(0), top]
        for _ in range(2, LAYERS):
            top += Decimal(area) / end
            end = inverse(top)
            ends.append(end)
            heights.append(top)
    right, above = np.array([*ends, 0], float), np.array([*heights, 1], float)
    width, far = right[:-1] - right[1:], right[:-1]
    return Layers(
        ends=right,
        heights=above,
        steps=far / _SPAN,
        inside=np.ceil(right[1:] / far * _SPAN).astype(np.int64),
        chords=(above[:-1] - above[1:]) / width,
        bulges=np.maximum(1.0, far * far) * above[1:] * width * width / 8.0 + _ROUNDING,
    )


@inlined
def height_of(heights, layer, share):
    """How high a draw lies that has this share of the layer's height."""
    return heights[layer] + share * (heights[layer + 1] - heights[layer])


@inlined
def over_chord(x, y, corner, chord):
    """How far (x, y) is above a chord of this slope through the corner (x, y) of its layer."""
    return y - (corner[1] + (x - corner[0]) * chord)
