"""Water-filling (Eqs. 5 and 6), and Algorithm 1: the fewest subchannels that carry enough (Eq. 7).

Rates are in nats of the complex channel, so that reaching the threshold reads
``nats >= 2 ln 2 * rate_threshold`` (less a rounding allowance).

Water-filling over the best n subchannels, gain_1 >= ... >= gain_n, is written in the excesses
``d_i = (gain_1 - gain_i) / gain_i``, which keep every digit from the smallest gains to the
largest; ``snr_1 = gain_1 * power_budget`` is what the best gives with all the power on it:

    level  u_n = (snr_1 + sum d) / n           power_i = (u_n - d_i) / gain_1
    active     d_n < u_n                       nats_n  = n log(1 + u_n) - sum log(1 + d_i)

A `Filling` holds these sums and grows by the next best subchannel; whoever water-fills, from
packing to the exact optimum, does it by the functions on it.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import NATS_PER_BIT, log1p
from agewise.core.jit import inlined, kernel, njit

#: A subchannel set reaches the threshold if it does so up to this relative rounding allowance:
#: without it a set that meets the threshold exactly would be taken or refused by the last bit.
_RATE_ROUNDING = 1e-12
#: The bound on the need is loosened by this, relatively, so that its rounding excludes no set.
_BOUND_SLACK = 1e-9
#: The slope of that bound is raised by this, relative to what it is a difference of, likewise.
_SLOPE_ROUNDING = 1e-15
#: A subchannel whose SNR is below every normal number has too few digits left to be used.
_LEAST_SNR = np.finfo(np.float64).tiny


class Link(NamedTuple):
    """What a UE may spend, and the nats it must carry."""

    power_budget: float
    target: float


class Filling(NamedTuple):
    """Power water-filled over the ``size`` best subchannels; nothing if the size is 0."""

    size: int
    best_gain: float
    best_snr: float
    excess_sum: float
    log_sum: float


#: The filling of no subchannel.
_NOTHING = Filling(0, 0.0, 0.0, 0.0, 0.0)


class _FillScratch(NamedTuple):
    """Working arrays of `fewest_best`, one entry per subchannel.

    ``gain`` and ``channel`` list what can be used. ``chosen`` are the subchannels of the filling,
    best first, and ``excess`` their excesses.
    """

    gain: NDArray[np.float64]
    channel: NDArray[np.int64]
    chosen: NDArray[np.int64]
    excess: NDArray[np.float64]


@njit
def fill_scratch(subchannels):
    """Working arrays for this many subchannels."""
    return _FillScratch(
        np.empty(subchannels),
        np.empty(subchannels, np.int64),
        np.empty(subchannels, np.int64),
        np.empty(subchannels),
    )


@njit(inline="always")  # before LLVM sees it, which then orders the loops around it better
def is_usable(gain, power_budget):
    """Whether a subchannel can carry anything."""
    return gain * power_budget >= _LEAST_SNR


@inlined
def start(best_gain, power_budget):
    """All the power on the best subchannel."""
    return Filling(1, best_gain, best_gain * power_budget, 0.0, 0.0)


@inlined
def excess_of(filling, gain):
    """The excess of a subchannel that is no better than those of the filling."""
    return (filling.best_gain - gain) / gain


@inlined
def gets_power(filling, excess):
    """Whether a further subchannel would get power; if not, no worse one would."""
    return filling.size * excess < filling.best_snr + filling.excess_sum


@inlined
def add(filling, excess):
    """The filling with a further subchannel, no better than the others."""
    return Filling(
        filling.size + 1,
        filling.best_gain,
        filling.best_snr,
        filling.excess_sum + excess,
        filling.log_sum + log1p(excess),
    )


@inlined
def _level_of(filling):
    """The level u; the water level in units of power is ``(1 + u) / gain_1``."""
    return (filling.best_snr + filling.excess_sum) / filling.size


@inlined
def nats_of(filling):
    """What the subchannels of the filling carry together."""
    return filling.size * log1p(_level_of(filling)) - filling.log_sum


@inlined
def write_powers(filling, chosen, excess, power):
    """Set ``power[subchannel]`` of the subchannels that were chosen."""
    # Eq. 5, in the excesses of the gains (see above).
    level = _level_of(filling)
    for i in range(filling.size):
        # P_i = (u - d_i) / gain_1, so that all P_i + 1 / gain_i are the same water level.
        power[chosen[i]] = (level - excess[i]) / filling.best_gain


@inlined
def _collect(gains, power_budget, free, found, channels):
    """List the ``free`` subchannels that can be used: how many, and where the best one stands."""
    count = at = 0
    best_gain = 0.0
    for channel in free:
        gain = gains[channel]
        # Written in any case and counted if usable: no branch that the processor guesses wrong.
        found[count], channels[count] = gain, channel
        better = gain > best_gain
        at = count if better else at
        best_gain = gain if better else best_gain
        count += is_usable(gain, power_budget)
    return count, at


@inlined
def _grow(count, at, link, bound, found, channels, chosen, excesses):
    """Fill the best of the ``count`` collected subchannels until they carry the target.

    ``at`` is where the best one stands, and fewer than ``bound`` are known not to suffice.
    Returns the filling and whether it reaches the target; if not, it carries the most possible.
    The arrays are those of a `_FillScratch`, one by one: taking them out of it counts references,
    which would cost more here than the arithmetic.
    """
    target = link.target
    filling = start(found[at], link.power_budget)
    chosen[0], excesses[0] = channels[at], 0.0
    reached = bound <= 1 and nats_of(filling) >= target
    while filling.size < count and not reached:
        found[at] = -1.0
        # Few are needed as a rule, so the next best is sought by a scan that the processor can
        # run without guessing; a heap costs more in mispredicted branches.
        at, gain = 0, -1.0
        for i in range(count):
            better = found[i] > gain
            at = i if better else at
            gain = found[i] if better else gain
        excess = excess_of(filling, gain)
        # Eq. 6: water would not rise to the floor of this one, nor of worse ones.
        if not gets_power(filling, excess):
            break  # the rate cannot grow any more
        chosen[filling.size], excesses[filling.size] = channels[at], excess
        filling = add(filling, excess)
        reached = filling.size >= bound and nats_of(filling) >= target
    return filling, reached


@inlined
def link_of(ue, power_budget, rate_threshold):
    """The `Link` of a UE, from ``power_budget[ue]`` and ``rate_threshold[ue]`` in bits."""
    threshold = rate_threshold[ue]
    if threshold < 1e-300:
        return Link(power_budget[ue], 0.0)  # out of the range in which bounds are rounded safely
    return Link(power_budget[ue], NATS_PER_BIT * threshold * (1.0 - _RATE_ROUNDING))


@inlined
def least_need(best_gain, link, subchannels):
    """A lower bound on the subchannels that a UE needs, or 0 if it cannot reach the target.

    n equal subchannels with the best SNR carry n log(1 + snr/n), the most any n can.
    """
    snr, target = best_gain * link.power_budget, link.target * (1.0 - _BOUND_SLACK)
    excess = snr / target - 1.0
    if snr < _LEAST_SNR or not excess > 0.0:
        return 0
    # log(1 + x) <= x / sqrt(1 + x) gives a bound, and a step of Newton's method from it a better
    # one: the tangent lies above a concave function, so that it never oversteps.
    n = max(1.0, snr / (excess * (excess + 2.0)))
    share = snr / n
    nats = log1p(share)
    slope = nats - share / (1.0 + share) + _SLOPE_ROUNDING * share
    n += max(0.0, target - n * nats) / slope
    return math.ceil(n) if n <= subchannels else 0


@njit
def fewest_best(gains, link, free, scratch):
    """Algorithm 1 for one UE: the fewest best of the ``free`` subchannels that carry the target.

    Corrected as in docs/errata.md: the rate is that of the best n subchannels, G_{k,tau(n)}, and
    once the next one would get no power, no more of them reach it. ``free`` is in rising order.
    The filling has size 0 if even all that water-filling would use do not suffice.
    """
    found, channels, chosen, excess = scratch
    count, at = _collect(gains, link.power_budget, free, found, channels)
    bound = least_need(found[at], link, count) if count > 0 else 0
    filling, reached = _NOTHING, False
    if bound > 0:
        filling, reached = _grow(count, at, link, bound, found, channels, chosen, excess)
    return filling if reached else _NOTHING


@njit
def _fill_all(gains, power_budget, channels, scratch):
    """Water-fill ``channels``, as many of them as get power."""
    found, listed, chosen, excess = scratch
    count, at = _collect(gains, power_budget, channels, found, listed)
    if count == 0:
        return _NOTHING
    filling, _ = _grow(count, at, Link(power_budget, np.inf), 1, found, listed, chosen, excess)
    return filling


@kernel
def fewest_subchannels(gains, power_budget, rate_threshold, free):
    """Algorithm 1 for one UE: its fewest best of the ``free`` subchannels; none if out of reach.

    ``power_budget`` and ``rate_threshold`` have the entry of that UE alone.
    """
    scratch = fill_scratch(gains.size)
    filling = fewest_best(gains, link_of(0, power_budget, rate_threshold), free, scratch)
    return scratch.chosen[: filling.size].copy()


@kernel
def waterfill(gains, power_budget):
    """The power on each subchannel, the water level and the nats that all carry together."""
    scratch, power = fill_scratch(gains.size), np.zeros(gains.size)
    filling = _fill_all(gains, power_budget, np.arange(gains.size), scratch)
    if filling.size == 0:
        return power, np.inf, 0.0
    write_powers(filling, scratch.chosen, scratch.excess, power)
    return power, (1.0 + _level_of(filling)) / filling.best_gain, nats_of(filling)


@kernel
def waterfill_owners(gains, power_budget, owner):
    """The power of each owner, water-filled over its subchannels: ``power[subchannel]``.

    ``power_budget[ue]`` is what each UE may spend.
    """
    power = np.zeros(owner.size)
    scratch, done = fill_scratch(owner.size), np.zeros(gains.shape[0], np.bool_)
    for ue in owner:
        if ue >= 0 and not done[ue]:
            done[ue] = True
            # Eq. 5 on all that the UE holds together.
            held = np.flatnonzero(owner == ue)
            filling = _fill_all(gains[ue], power_budget[ue], held, scratch)
            write_powers(filling, scratch.chosen, scratch.excess, power)
    return power


@kernel
def reach(gains, free, power_budget, rate_threshold):
    """Fewest best of the ``free`` subchannels that reach the threshold, and the rate on them.

    All have an entry per UE. The need of a UE that cannot reach its threshold is 0, and its rate
    is the highest that it can.
    """
    ues = gains.shape[0]
    need, rate = np.zeros(ues, np.int64), np.zeros(ues)
    found, channels, chosen, excess = fill_scratch(free.size)
    for ue in range(ues):
        link = link_of(ue, power_budget, rate_threshold)
        count, at = _collect(gains[ue], link.power_budget, free, found, channels)
        if count > 0:
            filling, reached = _grow(count, at, link, 1, found, channels, chosen, excess)
            rate[ue] = nats_of(filling) / NATS_PER_BIT
            need[ue] = filling.size if reached else 0
    return need, rate


@njit
def reaches_alone(gain, link):
    """Whether a single subchannel of this gain carries the target."""
    return is_usable(gain, link.power_budget) and (
        nats_of(start(gain, link.power_budget)) >= link.target
    )
