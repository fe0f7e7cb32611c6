"""Fading by paths: taps of a delay line or subchannels on their own, over time, in line of sight.

Each coefficient (of a tap, or of a subchannel) is complex normal with mean power 1. Its time
correlation, where it has one, is that of scattered waves from all sides (Clarke 1968, Jakes
1974): J0 of 2 pi times the way moved in wavelengths. ``parts`` are the real and the imaginary
part of each coefficient, one after the other.
"""

import math

import numpy as np

from agewise.core.doubles import WIDTH, load, spread, spread_at, store_part, turned_round
from agewise.core.elementary import circle
from agewise.core.jit import inlined, kernel, njit
from agewise.core.normal import fill_normal
from agewise.core.random import bits, fill_bits, subkey, unit
from agewise.core.vectors import store

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
def _draw_waves(ue_key, waves):
    """Fill ``waves[row, coefficient]``: the random phases of its waves, and where they come from.

    The phases have 16 bits. The directions are a sixteenth of a turn apart, and all turned by a
    random part of that, of which the last rows are the cosine and the sine (Xiao, Zheng, Beaulieu
    2006).
    """
    count = waves.shape[1]
    for i in range(count):
        turn = unit(bits(ue_key, np.uint64(5 * i))) / WAVES
        waves[WAVES, i], waves[WAVES + 1, i] = circle(turn)
    for four in range(4):
        for i in range(count):
            word = bits(ue_key, np.uint64(5 * i + four + 1))
            for wave in range(4 * four, 4 * four + 4):
                waves[wave, i] = np.float64(np.int64(word & np.uint64(0xFFFF))) * 2.0**-16
                word >>= np.uint64(16)


@njit
def _sum_waves(waves, x, y, sums, parts):
    """The coefficients of a UE at the place (x, y) in wavelengths; ``sums`` is room for them."""
    count = waves.shape[1]
    for i in range(0, count, WIDTH):
        cosine, sine = load(waves, WAVES * count + i), load(waves, (WAVES + 1) * count + i)
        along, across = x * cosine + y * sine, y * cosine - x * sine
        re, im = spread(0.0), spread(0.0)
        for wave in range(WAVES):
            phase = load(waves, wave * count + i)
            phase = phase + (along * _COSINES[wave] + across * _SINES[wave])
            cosine, sine = _turned(phase)
            re, im = re + cosine, im + sine
        store(sums, i, 0.25 * re)
        store(sums, count + i, 0.25 * im)
    for i in range(parts.size // 2):
        parts[2 * i], parts[2 * i + 1] = sums[0, i], sums[1, i]


@inlined
def _draw_anew(round_key, ue, scale, words, doubtful, parts):
    """Coefficients of one round, independent of those of any other; each part has this scale."""
    fill_bits(round_key, np.uint64(ue) * np.uint64(words.size), words)
    fill_normal(words, scale, doubtful, parts)


@njit
def _phase(ue_key, x, y):
    """Cosine and sine of the direct path's phase at a place."""
    c, s = circle(unit(bits(ue_key, np.uint64(0xFFFFFFFFFFFF))))
    return _turned(x * c + y * s)


@inlined
def _direct(ue_key, share, x, y):
    """Amplitudes of the direct path at a place, as (real, imaginary), and of the scattered ones."""
    if share == 0.0:
        return 0.0, 0.0, 1.0
    root, rest = math.sqrt(share), math.sqrt(1.0 - share)
    if x == 0.0 and y == 0.0:
        return root, 0.0, rest
    c, s = _phase(ue_key, x, y)
    return root * c, root * s, rest


@inlined
def _three(phases, at, width, parts, first):
    """What three taps add to a sum over the taps, at these phases; every other part is of it."""
    one = spread_at(parts, first) * load(phases, at)
    two = spread_at(parts, first + 2) * load(phases, at + width)
    return (one + two) + spread_at(parts, first + 4) * load(phases, at + 2 * width)


@inlined
def _over_taps(phases, at, parts):
    """Sums of real and imaginary parts over the taps; their order is written out."""
    taps, width = phases.shape
    whole = taps - taps % 3
    real, imaginary = spread(0.0), spread(0.0)
    for tap in range(0, whole, 3):
        real = real + _three(phases, tap * width + at, width, parts, 2 * tap)
        imaginary = imaginary + _three(phases, tap * width + at, width, parts, 2 * tap + 1)
    for tap in range(whole, taps):
        phase = load(phases, tap * width + at)
        real = real + spread_at(parts, 2 * tap) * phase
        imaginary = imaginary + spread_at(parts, 2 * tap + 1) * phase
    return real, imaginary


@inlined
def _spread(phases, parts, direct, mean, ue, gains):
    """Gains of the subchannels from the taps.

    The band is symmetric about its middle, so each product serves a subchannel above and one
    below it.
    """
    count, reach, rest = gains.shape[1], phases.shape[1] // 2, direct[2]
    half = (count + 1) // 2
    above, below = ue * count + count // 2, ue * count + half - WIDTH
    for i in range(0, half, WIDTH):
        lanes = min(half - i, WIDTH)
        re_cosine, im_cosine = _over_taps(phases, i, parts)
        re_sine, im_sine = _over_taps(phases, reach + i, parts)
        x = direct[0] + rest * (re_cosine + im_sine)
        y = direct[1] + rest * (im_cosine - re_sine)
        store_part(gains, above + i, mean * (x * x + y * y), 0, lanes)
        x = direct[0] + rest * (re_cosine - im_sine)
        y = direct[1] + rest * (im_cosine + re_sine)
        down = turned_round(mean * (x * x + y * y))
        store_part(gains, below - i, down, WIDTH - lanes, WIDTH)


@inlined
def _combine(phases, parts, direct, mean, ue, gains):
    """Gains ``mean |direct + scattered|²`` of the subchannels of one UE from its coefficients."""
    if phases.size:
        _spread(phases, parts, direct, mean, ue, gains)
        return
    for n in range(gains.shape[1]):
        x, y = direct[0] + direct[2] * parts[2 * n], direct[1] + direct[2] * parts[2 * n + 1]
        gains[ue, n] = mean * (x * x + y * y)


@kernel(nogil=True)
def fade_paths(paths, t, scene, error, gains, seen):
    """Fill ``gains[ue, subchannel]`` of round ``t``, and ``seen`` unless it is empty.

    ``paths`` is (key, phases). ``phases[tap, :]`` are the cosines of the tap's phases at the
    frequencies above the middle of the band, then their sines, each with zeros up to a multiple of
    `doubles.WIDTH`, times the root of the tap's power; the powers add up to 1. It is empty if each
    subchannel has a coefficient of its own.

    ``scene`` is the large scale: (``means[ue]``, ``shares[ue]`` of power in a direct path,
    ``line_of_sight[ue]``, ``moved[ue, (x, y)]``). Only UEs in line of sight have a direct path, or
    all if that is empty. ``moved`` is where the UEs are, in wavelengths, for coefficients that are
    correlated over time; empty for those that are drawn anew in every round.

    ``error`` is what separates seen from true: (key, ``correlation`` of scattered coefficients,
    ``behind[ue]``). The direct path they share. Where coefficients are correlated over time,
    ``behind`` is how far each UE has moved on since it was seen, in wavelengths, and nothing else
    separates them if the correlation is 1.
    """
    key, phases = paths  # plain tuples: named ones take longer to pass
    means, shares, line_of_sight, moved = scene
    other_key, correlation, behind = error
    count = phases.shape[0] or gains.shape[1]
    parts, errors = np.empty(2 * count), np.empty(2 * count)
    padded = (count + WIDTH - 1) // WIDTH * WIDTH
    waves, sums = np.empty((WAVES + 2, padded)), np.empty((2, padded))
    words, doubtful = np.empty(2 * count, np.uint64), np.empty(2 * count, np.int64)
    rest = math.sqrt(0.5 * (1.0 - correlation * correlation))
    round_key, error_key = subkey(key, t), subkey(other_key, t)
    over_time = moved.shape[0] > 0
    ue_key, x, y = round_key, 0.0, 0.0
    for ue in range(gains.shape[0]):
        mean, share = means[ue], shares[ue]
        if line_of_sight.size and not line_of_sight[ue]:
            share = 0.0
        if over_time:
            ue_key, x, y = subkey(key, ue), moved[ue, 0], moved[ue, 1]
            _draw_waves(ue_key, waves)
            _sum_waves(waves, x, y, sums, parts)
        else:
            _draw_anew(round_key, ue, _ROOT_HALF, words, doubtful, parts)
        direct = _direct(ue_key, share, x, y)
        _combine(phases, parts, direct, mean, ue, gains)
        if seen.shape[0] == 0:
            continue
        if over_time and behind.size:
            x -= behind[ue]
            _sum_waves(waves, x, y, sums, parts)
            direct = _direct(ue_key, share, x, y)
        if correlation != 1.0:
            _draw_anew(error_key, ue, rest, words, doubtful, errors)
            for i in range(parts.size):
                parts[i] = correlation * parts[i] + errors[i]
        _combine(phases, parts, direct, mean, ue, seen)
