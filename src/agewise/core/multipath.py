"""Fading by paths: taps of a delay line or subchannels on their own, over time, in line of sight.

Each coefficient (of a tap, or of a subchannel) is complex normal with mean power 1. Its time
correlation, where it has one, is that of scattered waves from all sides (Clarke 1968, Jakes
1974): J0 of 2 pi times the way moved in wavelengths.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import circle
from agewise.core.jit import inlined, kernel, njit
from agewise.core.normal import normal
from agewise.core.random import bits, subkey, unit

#: Waves of which a time-correlated coefficient is the sum. Their phases are independent, so the
#: mean of its squared power is 2 - 1 / WAVES where a normal one has 2.
WAVES = 16
_MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding and taking it away rounds to a whole number
_ROOT_HALF = math.sqrt(0.5)


def _sixteenths():
    """Cosines and sines of the sixteenths of a turn, from square roots, which are exact."""
    near, far = math.sqrt(2.0 + math.sqrt(2.0)) / 2.0, math.sqrt(2.0 - math.sqrt(2.0)) / 2.0
    quarter = [1.0, near, _ROOT_HALF, far]
    half = [*quarter, 0.0, *(-x for x in reversed(quarter[1:]))]
    cosines = [*half, *(-x for x in half)]
    return np.array(cosines), np.array(cosines[-4:] + cosines[:-4])


_COSINES, _SINES = _sixteenths()


class Paths(NamedTuple):
    """What the coefficients of a UE are, and how they make up its subchannels.

    ``amplitudes[tap]`` are the roots of the taps' powers, which add up to 1; none if each
    subchannel has a coefficient of its own. ``cosines[tap, offset]`` and ``sines[tap, offset]``
    are those of the phases of the taps at the frequencies above the middle of the band.
    """

    key: np.uint64
    amplitudes: NDArray[np.float64]
    cosines: NDArray[np.float64]
    sines: NDArray[np.float64]


class Scene(NamedTuple):
    """The large scale: ``means[ue]``, and ``sight[ue]``, the share of power in a direct path.

    ``moved[ue, (x, y)]`` is where the UEs are, in wavelengths, for coefficients that are
    correlated over time; empty for those that are drawn anew in every round.
    """

    means: NDArray[np.float64]
    sight: NDArray[np.float64]
    moved: NDArray[np.float64]


class Error(NamedTuple):
    """What separates seen from true: the ``correlation`` of scattered coefficients.

    Where they are correlated over time, ``behind[ue]`` is how far each UE has moved on since it
    was seen, in wavelengths, and nothing else separates them if the correlation is 1.
    """

    key: np.uint64
    correlation: float
    behind: NDArray[np.float64]


@inlined
def _turned(turns):
    """Cosine and sine of ``2 pi turns``, to 13 digits; without branches, for vector units."""
    r = turns - ((turns + _MAGIC) - _MAGIC)
    y = 3.141592653589793 * r
    z = y * y
    s = 1.0 / 6227020800.0 - z * (1.0 / 1307674368000.0 - z * (1.0 / 355687428096000.0))
    s = 1.0 / 5040.0 - z * (1.0 / 362880.0 - z * (1.0 / 39916800.0 - z * s))
    s = y * (1.0 - z * (1.0 / 6.0 - z * (1.0 / 120.0 - z * s)))
    c = 1.0 / 87178291200.0 - z * (
        1.0 / 20922789888000.0 - z * (1.0 / 6402373705728000.0 - z * (1.0 / 2432902008176640000.0))
    )
    c = 1.0 / 40320.0 - z * (1.0 / 3628800.0 - z * (1.0 / 479001600.0 - z * c))
    c = 1.0 - z * (1.0 / 2.0 - z * (1.0 / 24.0 - z * (1.0 / 720.0 - z * c)))
    return 1.0 - 2.0 * s * s, 2.0 * s * c


@njit
def _sum_of_waves(key, count, x, y, work):
    """The coefficient number ``count`` at the place (x, y) in wavelengths.

    Waves come from directions a sixteenth of a turn apart, turned together by a random part of
    that, with random phases of 16 bits (Xiao, Zheng, Beaulieu 2006).
    """
    first = np.uint64(count) * np.uint64(5)
    c, s = circle(unit(bits(key, first)) / WAVES)
    for four in range(4):
        word = bits(key, first + np.uint64(four + 1))
        for i in range(4):
            work[4 * four + i] = np.float64(word & np.uint64(0xFFFF)) * 2.0**-16
            word >>= np.uint64(16)
    along, across = x * c + y * s, y * c - x * s
    for i in range(WAVES):
        phase = work[i] + (along * _COSINES[i] + across * _SINES[i])
        work[i], work[WAVES + i] = _turned(phase)
    re, im = 0.0, 0.0
    for i in range(WAVES):
        re += work[i]
        im += work[WAVES + i]
    return 0.25 * re, 0.25 * im


@njit
def _draw_waves(ue_key, x, y, re, im, work):
    """Coefficients that follow from the place alone."""
    for i in range(re.size):
        re[i], im[i] = _sum_of_waves(ue_key, i, x, y, work)


@njit
def _draw_anew(round_key, ue, re, im):
    """Coefficients of one round, independent of those of any other."""
    first = np.uint64(2) * np.uint64(ue) * np.uint64(re.size)
    for i in range(re.size):
        re[i] = _ROOT_HALF * normal(bits(round_key, first + np.uint64(2 * i)))
        im[i] = _ROOT_HALF * normal(bits(round_key, first + np.uint64(2 * i + 1)))


@njit
def _mix_in(round_key, ue, correlation, re, im):
    """Coefficients with an error: ``correlation`` of what they were, the rest drawn anew."""
    first = np.uint64(2) * np.uint64(ue) * np.uint64(re.size)
    rest = math.sqrt(0.5 * (1.0 - correlation * correlation))
    for i in range(re.size):
        x = normal(bits(round_key, first + np.uint64(2 * i)))
        y = normal(bits(round_key, first + np.uint64(2 * i + 1)))
        re[i] = correlation * re[i] + rest * x
        im[i] = correlation * im[i] + rest * y


@njit
def _direct(ue_key, share, x, y):
    """Amplitudes of the direct path at a place, as (real, imaginary), and of the scattered ones."""
    if share == 0.0:
        return 0.0, 0.0, 1.0
    c, s = circle(unit(bits(ue_key, np.uint64(0xFFFFFFFFFFFF))))
    c, s = _turned(x * c + y * s)
    root = math.sqrt(share)
    return root * c, root * s, math.sqrt(1.0 - share)


@njit
def _spread(paths, re, im, direct, mean, sums, gains):
    """Gains of the subchannels from the taps.

    The band is symmetric about its middle, so each product serves a subchannel above and one
    below it. Sums run over the taps one after the other, whatever the vector unit.
    """
    half = paths.cosines.shape[1]
    for i in range(half):
        sums[0, i] = sums[1, i] = sums[2, i] = sums[3, i] = 0.0
    for tap in range(re.size):
        amplitude = direct[2] * paths.amplitudes[tap]
        a, b = re[tap] * amplitude, im[tap] * amplitude
        for i in range(half):
            c, s = paths.cosines[tap, i], paths.sines[tap, i]
            sums[0, i] += a * c
            sums[1, i] += b * s
            sums[2, i] += a * s
            sums[3, i] += b * c
    upper, lower = gains.size // 2, (gains.size - 1) // 2
    for i in range(half):
        x, y = direct[0] + (sums[0, i] + sums[1, i]), direct[1] + (sums[3, i] - sums[2, i])
        gains[upper + i] = mean * (x * x + y * y)
        x, y = direct[0] + (sums[0, i] - sums[1, i]), direct[1] + (sums[3, i] + sums[2, i])
        gains[lower - i] = mean * (x * x + y * y)


@njit
def _combine(paths, re, im, direct, mean, sums, gains):
    """Gains ``mean |direct + scattered|²`` of the subchannels of one UE from its coefficients."""
    if paths.amplitudes.size:
        _spread(paths, re, im, direct, mean, sums, gains)
        return
    for n in range(gains.size):
        x, y = direct[0] + direct[2] * re[n], direct[1] + direct[2] * im[n]
        gains[n] = mean * (x * x + y * y)


@kernel(nogil=True)
def fade_paths(paths, t, scene, error, gains, seen):
    """Fill ``gains[ue, subchannel]`` of round ``t``, and ``seen`` likewise unless it is empty.

    What is seen shares the direct path with the truth, and the scattered ones up to the error.
    """
    count = paths.amplitudes.size or gains.shape[1]
    re, im = np.empty(count), np.empty(count)
    sums, work = np.empty((4, paths.cosines.shape[1])), np.empty(2 * WAVES)
    round_key, error_key = subkey(paths.key, t), subkey(error.key, t)
    over_time = scene.moved.shape[0] > 0
    ue_key, x, y = round_key, 0.0, 0.0
    for ue in range(gains.shape[0]):
        mean, share = scene.means[ue], scene.sight[ue]
        if over_time:
            ue_key, x, y = subkey(paths.key, ue), scene.moved[ue, 0], scene.moved[ue, 1]
            _draw_waves(ue_key, x, y, re, im, work)
        else:
            _draw_anew(round_key, ue, re, im)
        _combine(paths, re, im, _direct(ue_key, share, x, y), mean, sums, gains[ue])
        if seen.shape[0] == 0:
            continue
        if over_time and error.behind.size:
            x -= error.behind[ue]
            _draw_waves(ue_key, x, y, re, im, work)
        if error.correlation != 1.0:
            _mix_in(error_key, ue, error.correlation, re, im)
        _combine(paths, re, im, _direct(ue_key, share, x, y), mean, sums, seen[ue])
