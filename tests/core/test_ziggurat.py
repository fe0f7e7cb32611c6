"""The layers under a curve: what they decide without the curve is what the curve says."""

import math

import numpy as np
import pytest

from agewise.core import fading, normal

#: The module, its curve, and the area under that beyond x.
CURVES = [
    pytest.param(fading, lambda x: math.exp(-x), lambda x: math.exp(-x), id="exponential"),
    pytest.param(
        normal,
        lambda x: math.exp(-0.5 * x * x),
        lambda x: math.sqrt(math.pi / 2) * math.erfc(x / math.sqrt(2)),
        id="normal",
    ),
]
each = pytest.mark.parametrize(("module", "curve", "beyond"), CURVES)


@each
def test_layers_have_one_area(module, curve, beyond):
    """The lowest consists of a rectangle and of all that is beyond its end."""
    ends, heights, tail = module._ENDS, module._HEIGHTS, module._TAIL
    lowest = tail * curve(tail) + beyond(tail)
    assert ends[:-1] * np.diff(heights) == pytest.approx(lowest, rel=1e-9)
    assert heights[1:] == pytest.approx([curve(x) for x in ends[1:]], rel=1e-14)


@each
def test_the_curve_stays_within_its_chords_bulge(module, curve, beyond):  # noqa: ARG001
    """Twenty places in each layer but the lowest, which has no chord."""
    for layer in range(1, 256):
        left, right = module._ENDS[layer + 1], module._ENDS[layer]
        for x in np.linspace(left, right, 20):
            chord = module._HEIGHTS[layer] + (x - right) * module._CHORDS[layer]
            assert abs(curve(x) - chord) < module._BULGES[layer]


@each
def test_draws_that_are_surely_inside_are_below_the_curve(module, curve, beyond):  # noqa: ARG001
    for layer in range(1, 256):
        last = float(module._INSIDE[layer] - 1) * module._STEPS[layer]
        assert curve(max(last, 0.0)) >= module._HEIGHTS[layer + 1] * (1 - 1e-15)
