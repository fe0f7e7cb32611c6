"""Decibels, and Gaussian random fields over the plane as sums of waves."""

import math

import numpy as np

from agewise.core.elementary import cos_sin, exp, log
from agewise.core.jit import inlined, kernel
from agewise.core.random import fold_in, random_bits, uniform

_DB_PER_LOG = 10.0 / math.log(10.0)
_LOG_PER_DB = math.log(10.0) / 10.0
_ROUND = 1.5 * 2.0**52  # added and taken away again, it rounds to a whole number
_TWO_PI = 2.0 * math.pi


@kernel
def decibels_each(ratios):
    """10 lg of each entry of a float64 vector."""
    found = np.empty(ratios.size)
    for i in range(ratios.size):
        found[i] = _DB_PER_LOG * log(ratios[i])
    return found


@kernel
def ratios_each(decibels):
    """10^(x/10) of each entry of a float64 vector."""
    found = np.empty(decibels.size)
    for i in range(decibels.size):
        found[i] = exp(_LOG_PER_DB * decibels[i])
    return found


@kernel
def normal_cdf_each(values):
    """The standard normal distribution function, to 1e-7 (Abramowitz and Stegun 26.2.17)."""
    found = np.empty(values.size)
    for i in range(values.size):
        x = abs(values[i])
        t = 1.0 / (1.0 + 0.2316419 * x)
        tail = 0.319381530 + t * (
            -0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))
        )
        tail *= t * exp(-0.5 * x * x) / math.sqrt(_TWO_PI)
        found[i] = tail if values[i] < 0.0 else 1.0 - tail
    return found


@inlined
def _cosine(turns):
    """The cosine of ``2 pi turns`` to 1e-13; without branches, for vector units."""
    part = abs(turns - ((turns + _ROUND) - _ROUND))  # from 0 to a half
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
    waves, field_key = np.empty((count, 3)), fold_in(key, index)
    for i in range(count):
        first = np.uint64(3 * i)
        rest = 1.0 - (i + uniform(random_bits(field_key, first))) / count
        length = math.sqrt(max(1.0 / (rest * rest) - 1.0, 0.0)) / _TWO_PI
        cosine, sine = cos_sin(uniform(random_bits(field_key, first + np.uint64(1))))
        waves[i, 0], waves[i, 1] = length * cosine, length * sine
        waves[i, 2] = uniform(random_bits(field_key, first + np.uint64(2)))
    return waves


@kernel(nogil=True)
def field_each(positions, waves):
    """The field of ``waves[wave, (x, y, phase)]`` at ``positions[place, (x, y)]``.

    Its mean is 0 and its variance 1. The loop over places is inside, so that it becomes vector
    instructions; the waves of a place are summed in their order all the same.
    """
    count = positions.shape[0]
    x, y, found = positions[:, 0].copy(), positions[:, 1].copy(), np.zeros(count)
    for wave in range(waves.shape[0]):
        along, up, phase = waves[wave, 0], waves[wave, 1], waves[wave, 2]
        for i in range(count):
            found[i] += _cosine((x[i] * along + y[i] * up) + phase)
    return found * math.sqrt(2.0 / waves.shape[0])
