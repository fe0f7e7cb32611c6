"""Fading by paths: taps of a delay line or subchannels on their own, over time, in line of sight.

Each coefficient (of a tap, or of a subchannel) is complex normal with mean power 1; ``re`` and
``im`` are the parts ``[coefficient, ue]`` of those of some UEs. Its time correlation, where it has
one, is that of scattered waves from all sides (Clarke 1968, Jakes 1974): J0 of 2 pi times the way
moved in wavelengths. The innermost loops go over UEs, without branches and doing one thing each, so
that they become vector instructions; sums over waves and taps keep their order. No array is
assigned to a slice: for its error message Numba would compile three seconds of string functions.
"""

import math

import numpy as np

from agewise.core.elementary import cos_sin, log, log_unit, power
from agewise.core.jit import kernel, njit
from agewise.core.mobility import draw_point
from agewise.core.random import complex_normal, exponential, fold_in, random_bits, uniform

#: Waves of which a time-correlated coefficient is the sum. Their phases are independent, so the
#: mean of its squared power is 2 - 1 / _WAVES where a normal one has 2.
_WAVES = 16
_SCALE = 1.0 / math.sqrt(_WAVES)
_DIRECT = np.uint64(2**48)  # the count of a direct path's direction, beyond those of all waves
#: UEs that are worked on together: their coefficients stay in the cache.
_UES = 128


@njit
def _draw_anew(round_key, first_ue, re, im):
    """Fill coefficients of one round, independent of those of any other (Box and Muller 1958)."""
    count, ues = re.shape
    for i in range(count):
        radius, angle = re[i], im[i]
        first = np.uint64(2 * (first_ue * count + i))
        step = np.uint64(2 * count)
        for u in range(ues):
            radius[u] = exponential(random_bits(round_key, first + step * np.uint64(u)))
        for u in range(ues):
            angle[u] = uniform(random_bits(round_key, first + step * np.uint64(u) + np.uint64(1)))
        for u in range(ues):
            root = math.sqrt(radius[u])
            cosine, sine = cos_sin(angle[u])
            radius[u], angle[u] = root * cosine, root * sine


@njit
def _sum_waves(keys, x, y, re, im):
    """Fill coefficients of UEs at the places (``x[ue]``, ``y[ue]``) in wavelengths.

    Directions are a sixteenth of a turn apart, and those of one coefficient are all turned by a
    random part of that (Xiao, Zheng, Beaulieu 2006).
    """
    count, ues = re.shape
    along, across, phase = np.empty((3, ues))
    for i in range(count):
        real, imaginary = re[i], im[i]
        for u in range(ues):
            cosine, sine = cos_sin(uniform(random_bits(keys[u], i)) / _WAVES)
            along[u], across[u] = x[u] * cosine + y[u] * sine, y[u] * cosine - x[u] * sine
            real[u], imaginary[u] = 0.0, 0.0
        for wave in range(_WAVES):
            towards_x, towards_y = cos_sin(wave / _WAVES)
            for u in range(ues):
                phase[u] = uniform(random_bits(keys[u], (wave + 1) * count + i))
            for u in range(ues):
                turns = phase[u] + (along[u] * towards_x + across[u] * towards_y)
                cosine, sine = cos_sin(turns)
                real[u] += _SCALE * cosine
                imaginary[u] += _SCALE * sine


@njit
def _find_direct(keys, shares, x, y, direct):
    """Fill ``direct[(real, imaginary, scattered), ue]``: amplitudes of the paths at these places.

    ``shares[ue]`` is that of the power on the direct path.
    """
    for u in range(shares.size):
        cosine, sine = cos_sin(uniform(random_bits(keys[u], _DIRECT)))
        cosine, sine = cos_sin(x[u] * cosine + y[u] * sine)
        root = math.sqrt(shares[u])
        direct[0, u], direct[1, u] = root * cosine, root * sine
        direct[2, u] = math.sqrt(1.0 - shares[u])


@njit
def _combine(phases, re, im, direct, means, gains):
    """Fill ``gains[ue, subchannel]``: ``means[ue] |direct + scattered|²``.

    Over taps the scattered part is H(f) = sum of sqrt(p) g exp(-j phase), with cosines and sines of
    the phases times the roots of the powers in ``phases[:, tap, subchannel]``.
    """
    ues, count = gains.shape
    x, y = np.empty((2, ues))
    for n in range(count):
        if phases.size:
            x[:], y[:] = 0.0, 0.0
            for tap in range(phases.shape[1]):
                cosine, sine = phases[0, tap, n], phases[1, tap, n]
                real, imaginary = re[tap], im[tap]
                for u in range(ues):
                    x[u] += real[u] * cosine + imaginary[u] * sine
                    y[u] += imaginary[u] * cosine - real[u] * sine
        else:
            for u in range(ues):
                x[u], y[u] = re[n, u], im[n, u]
        for u in range(ues):
            real_part = direct[0, u] + direct[2, u] * x[u]
            imaginary_part = direct[1, u] + direct[2, u] * y[u]
            gains[u, n] = means[u] * (real_part * real_part + imaginary_part * imaginary_part)


@kernel(nogil=True)
def fade_paths(paths, t, scene, error, gains, seen):
    """Fill ``gains[ue, subchannel]`` of round ``t``, and ``seen`` unless it is empty.

    ``paths`` is (key, phases); ``phases`` (see `_combine`) are empty if each subchannel has a
    coefficient of its own.

    ``scene`` is the large scale: (``means[ue]``, ``shares[ue]`` of power in a direct path,
    ``line_of_sight[ue]``, ``places[ue, (x, y)]``). Only UEs in line of sight have a direct path,
    or all if that is empty. ``places`` is where the UEs are, in wavelengths, for coefficients that
    are correlated over time; empty for those that are drawn anew in every round.

    ``error`` is what separates seen from true: (key, ``correlation`` of scattered coefficients,
    ``before[ue, (x, y)]``). The direct path they share. Where coefficients are correlated over
    time, ``before`` is where each UE was seen, in wavelengths, or empty if it was where it is;
    nothing else separates them if the correlation is 1.
    """
    key, phases = paths  # plain tuples: named ones take longer to pass
    means, all_shares, line_of_sight, places = scene
    other_key, correlation, before = error
    count = phases.shape[1] if phases.size else gains.shape[1]
    rest = math.sqrt(1.0 - correlation * correlation)
    round_key, error_key = fold_in(key, t), fold_in(other_key, t)
    over_time = places.shape[0] > 0
    for first in range(0, gains.shape[0], _UES):
        ues = min(_UES, gains.shape[0] - first)
        re, im = np.empty((count, ues)), np.empty((count, ues))
        x, y, direct = np.zeros(ues), np.zeros(ues), np.empty((3, ues))
        keys, shares = np.empty(ues, np.uint64), all_shares[first : first + ues].copy()
        mean = means[first : first + ues]
        for u in range(ues):
            keys[u] = fold_in(key, first + u)
            if line_of_sight.size and not line_of_sight[first + u]:
                shares[u] = 0.0
        if over_time:
            for u in range(ues):
                x[u], y[u] = places[first + u, 0], places[first + u, 1]
            _sum_waves(keys, x, y, re, im)
        else:
            _draw_anew(round_key, first, re, im)
        _find_direct(keys, shares, x, y, direct)
        _combine(phases, re, im, direct, mean, gains[first : first + ues])
        if seen.shape[0] == 0:
            continue
        if over_time and before.size:
            for u in range(ues):
                x[u], y[u] = before[first + u, 0], before[first + u, 1]
            _sum_waves(keys, x, y, re, im)
            _find_direct(keys, shares, x, y, direct)
        if correlation != 1.0:
            error_re, error_im = np.empty((count, ues)), np.empty((count, ues))
            _draw_anew(error_key, first, error_re, error_im)
            for i in range(count):
                for u in range(ues):
                    re[i, u] = correlation * re[i, u] + rest * error_re[i, u]
                    im[i, u] = correlation * im[i, u] + rest * error_im[i, u]
        _combine(phases, re, im, direct, mean, seen[first : first + ues])


# ----------------------------------------------------------------------------------------- Nakagami
@njit
def _gamma(key, shape):
    """A gamma number of this shape (above 0) and scale 1, by Marsaglia and Tsang (2000).

    A shape below 1 is reached from the next higher one by a power of a uniform number.
    """
    boost = 1.0
    if shape < 1.0:
        boost = power(1.0 - uniform(random_bits(key, 0)), 1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    count = 1
    while True:
        x = math.sqrt(2.0) * complex_normal(key, count)[0]
        v = 1.0 + c * x
        if v > 0.0:
            v, share = v * v * v, 1.0 - uniform(random_bits(key, 2 * count + 2))
            if log_unit(share) < 0.5 * x * x + d - d * v + d * log(v):
                return boost * d * v
        count += 2


@kernel(nogil=True)
def fade_nakagami(key, t, shape, means, gains):
    """Fill ``gains[ue, subchannel]`` of round ``t``: gamma of this shape, mean ``means[ue]``."""
    round_key = fold_in(key, t)
    for ue in range(gains.shape[0]):
        ue_key, scale = fold_in(round_key, ue), means[ue] / shape
        for n in range(gains.shape[1]):
            gains[ue, n] = scale * _gamma(fold_in(ue_key, n), shape)


# ------------------------------------------------------------------------------------ interference
@kernel(nogil=True)
def draw_interferers(key, t, subchannels, sites, cell, load):
    """(``positions[link, (x, y)]``, ``fading[link]``, ``subchannel[link]``) of round ``t``.

    On each subchannel a cell transmits with the probability ``load``, from a uniform place in it.
    """
    most = subchannels * sites.shape[0]
    positions, fading = np.empty((most, 2)), np.empty(most)
    subchannel = np.empty(most, np.int64)
    round_key, found = fold_in(key, t), 0
    for link in range(most):
        link_key = fold_in(round_key, link)
        if uniform(random_bits(link_key, 0)) >= load:
            continue
        site = sites[link % sites.shape[0]]
        x, y, _ = draw_point(link_key, 2, cell)
        positions[found, 0], positions[found, 1] = site[0] + x, site[1] + y
        fading[found] = exponential(random_bits(link_key, 1))
        subchannel[found] = link // sites.shape[0]
        found += 1
    return positions[:found], fading[:found], subchannel[:found]
