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

    ``phases[tap, :]`` are the cosines of the tap's phases at the frequencies above the middle of
    the band, then their sines, times the root of the tap's power; the powers add up to 1. It is
    empty if each subchannel has a coefficient of its own.
    """

    key: np.uint64
    phases: NDArray[np.float64]


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


@inlined
def _add_three(phases, tap, re, im, sums):
    """Add three taps to the sums; one at a time, the loop would cost more than its work."""
    a0, a1, a2 = re[tap], re[tap + 1], re[tap + 2]
    b0, b1, b2 = im[tap], im[tap + 1], im[tap + 2]
    for i in range(phases.shape[1]):
        p0, p1, p2 = phases[tap, i], phases[tap + 1, i], phases[tap + 2, i]
        sums[0, i] += a0 * p0 + a1 * p1 + a2 * p2
        sums[1, i] += b0 * p0 + b1 * p1 + b2 * p2


@njit
def _spread(paths, re, im, direct, mean, sums, gains):
    """Gains of the subchannels from the taps.

    The band is symmetric about its middle, so each product serves a subchannel above and one
    below it. The order of sums is written out, whatever the vector unit.
    """
    taps, both = paths.phases.shape
    for i in range(both):
        sums[0, i] = 0.0
        sums[1, i] = 0.0
    whole = taps - taps % 3
    for tap in range(0, whole, 3):
        _add_three(paths.phases, tap, re, im, sums)
    for tap in range(whole, taps):
        a, b = re[tap], im[tap]
        for i in range(both):
            sums[0, i] += a * paths.phases[tap, i]
            sums[1, i] += b * paths.phases[tap, i]
    half, rest = both // 2, direct[2]
    upper, lower = gains.size // 2, (gains.size - 1) // 2
    for i in range(half):
        x = direct[0] + rest * (sums[0, i] + sums[1, half + i])
        y = direct[1] + rest * (sums[1, i] - sums[0, half + i])
        gains[upper + i] = mean * (x * x + y * y)
        x = direct[0] + rest * (sums[0, i] - sums[1, half + i])
        y = direct[1] + rest * (sums[1, i] + sums[0, half + i])
        gains[lower - i] = mean * (x * x + y * y)


@njit
def _combine(paths, re, im, direct, mean, sums, gains):
    """Gains ``mean |direct + scattered|²`` of the subchannels of one UE from its coefficients."""
    if paths.phases.size:
        _spread(paths, re, im, direct, mean, sums, gains)
        return
    for n in range(gains.size):
        x, y = direct[0] + direct[2] * re[n], direct[1] + direct[2] * im[n]
        gains[n] = mean * (x * x + y * y)


@kernel(nogil=True)
def fade_paths(paths, t, scene, error, gains, seen):
    """Fill ``gains[ue, subchannel]`` of round ``t``, and ``seen`` unless it is empty.

    What is seen shares the direct path with the truth, and the scattered ones up to the error.
    """
    count = paths.phases.shape[0] or gains.shape[1]
    re, im = np.empty(count), np.empty(count)
    sums, work = np.empty((2, paths.phases.shape[1])), np.empty(2 * WAVES)
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
