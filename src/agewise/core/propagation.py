"""Decibels, and Gaussian random fields over the plane as sums of waves."""

import math

import numpy as np

from agewise.core.doubles import WIDTH, load, low_halves, magnitude, spread, spread_at
from agewise.core.elementary import circle, exp, log
from agewise.core.jit import inlined, kernel, njit
from agewise.core.lanes import LANES
from agewise.core.lanes import spread as spread_lanes
from agewise.core.random import bits, subkey, unit
from agewise.core.vectors import store

_DB_PER_LOG = 10.0 / math.log(10.0)
_LOG_PER_DB = math.log(10.0) / 10.0
_ROUND = 1.5 * 2.0**52  # added and taken away again, it rounds to a whole number
_TWO_PI = 2.0 * math.pi
#: Added to a number of turns, it puts their fraction into the lower 32 bits, as long as there are
#: fewer than `MOST_TURNS` of them.
_FRACTION = 1.5 * 2.0**20
MOST_TURNS = 2.0**19


@inlined
def decibels(ratio):
    """10 lg of a ratio."""
    return _DB_PER_LOG * log(ratio)


@inlined
def ratio_of(decibels):
    """10^(x/10)."""
    return exp(_LOG_PER_DB * decibels)


@kernel
def decibels_each(ratios):
    """10 lg of each entry of a float64 vector."""
    found = np.empty(ratios.size)
    for i in range(ratios.size):
        found[i] = decibels(ratios[i])
    return found


@kernel
def ratios_each(decibels):
    """10^(x/10) of each entry of a float64 vector."""
    found = np.empty(decibels.size)
    for i in range(decibels.size):
        found[i] = ratio_of(decibels[i])
    return found


@inlined
def normal_cdf(value):
    """The standard normal distribution function, to 1e-7 (Abramowitz and Stegun 26.2.17)."""
    x = abs(value)
    t = 1.0 / (1.0 + 0.2316419 * x)
    tail = 0.319381530 + t * (
        -0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))
    )
    tail *= t * exp(-0.5 * x * x) / math.sqrt(_TWO_PI)
    return tail if value < 0.0 else 1.0 - tail


@kernel
def normal_cdf_each(values):
    """`normal_cdf` of each entry of a float64 vector."""
    found = np.empty(values.size)
    for i in range(values.size):
        found[i] = normal_cdf(values[i])
    return found


@inlined
def _cosine(turns):
    """The cosine of ``2 pi turns`` to 1e-13, of eight doubles."""
    part = magnitude(turns - ((turns + _ROUND) - _ROUND))  # from 0 to a half
    x = _TWO_PI * (0.25 - part)  # cos(2 pi part) = sin(x), x from -pi/2 to pi/2
    z = x * x
    s = 1.0 / 6227020800.0 - z * (1.0 / 1307674368000.0 - z * (1.0 / 355687428096000.0))
    s = 1.0 / 5040.0 - z * (1.0 / 362880.0 - z * (1.0 / 39916800.0 - z * s))
    return x * (1.0 - z * (1.0 / 6.0 - z * (1.0 / 120.0 - z * s)))


@kernel
def draw_waves(key, index, count):
    """``[wave, (x, y, phase)]``: a field of a key, with covariance ``exp(-distance)``.

    In turns per unit of length. That covariance has the spectral density ``(1 + k^2)^(-3/2)`` in
    the plane, so k is ``sqrt((1-u)^-2 - 1)`` for a uniform u; u is drawn once in each of
    ``count`` equal parts of (0, 1), which brings every single field near its law.
    """
    waves, field_key = np.empty((count, 3)), subkey(key, index)
    for i in range(count):
        first = np.uint64(3 * i)
        rest = 1.0 - (i + unit(bits(field_key, first))) / count
        length = math.sqrt(max(1.0 / (rest * rest) - 1.0, 0.0)) / _TWO_PI
        cosine, sine = circle(unit(bits(field_key, first + np.uint64(1))))
        waves[i, 0], waves[i, 1] = length * cosine, length * sine
        waves[i, 2] = unit(bits(field_key, first + np.uint64(2)))
    return waves


@inlined
def padded(count):
    """The least multiple of `WIDTH` that is not below ``count``."""
    return (count + WIDTH - 1) // WIDTH * WIDTH


@njit
def fill_field(x, y, waves, found):
    """The field of ``waves[wave, (x, y, phase)]`` at places in vectors of a `padded` length.

    Its mean is 0 and its variance 1. The waves of a place are summed in their order.
    """
    count = waves.shape[0]
    scale = math.sqrt(2.0 / count)
    for i in range(0, x.size, WIDTH):
        at_x, at_y, total = load(x, i), load(y, i), spread(0.0)
        for wave in range(0, 3 * count, 3):
            along = at_x * spread_at(waves, wave) + at_y * spread_at(waves, wave + 1)
            total = total + _cosine(along + spread_at(waves, wave + 2))
        store(found, i, total * scale)


@inlined
def _rough_cosine(half_turns):
    """The cosine of ``pi half_turns`` in sixteen floats from -1 to 1, to 8e-7 before rounding.

    Its Chebyshev series to the tenth power.
    """
    z = half_turns * half_turns
    s = 0.22965035984432375 - z * 0.020577251589506528
    s = 4.058041088814628 - z * (1.332369086473516 - z * s)
    return 0.999999210782322 - z * (4.934745088941009 - z * s)


@njit
def fill_estimate(x, y, waves, found):
    """`fill_field` in float32, for places in vectors whose length is a multiple of `LANES`.

    Phases are reduced in double. A cosine is wrong by less than 4e-6, and a sum of 128 of them
    loses less than 2^-24 of 128 at each step: a value of the field is wrong by less than 2e-4.
    """
    count = waves.shape[0]
    scale = math.sqrt(2.0 / count)
    for i in range(0, x.size, LANES):
        x_first, y_first, x_last, y_last = (
            load(x, i),
            load(y, i),
            load(x, i + WIDTH),
            load(y, i + WIDTH),
        )
        total = spread_lanes(0.0)
        for wave in range(0, 3 * count, 3):
            across, up = spread_at(waves, wave), spread_at(waves, wave + 1)
            phase = spread_at(waves, wave + 2) + _FRACTION
            first = (x_first * across + y_first * up) + phase
            last = (x_last * across + y_last * up) + phase
            total = total + _rough_cosine(low_halves(first, last) * 2.0**-31)
        store(found, i, total * scale)


@kernel(nogil=True)
def field_each(positions, waves):
    """The field of these waves at ``positions[place, (x, y)]``."""
    count = positions.shape[0]
    x, y, found = np.zeros((3, padded(count)))
    x[:count], y[:count] = positions[:, 0], positions[:, 1]
    fill_field(x, y, waves, found)
    return found[:count].copy()
