"""How gains vary around their means."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.doubles import WIDTH, aligned
from agewise.core.elementary import circle_each
from agewise.core.fading import fade
from agewise.core.multipath import fade_paths
from agewise.core.normal import disturb, fade_nakagami
from agewise.radio.large_scale import LargeScale
from agewise.radio.profiles import DelayProfile, delay_profile
from agewise.random import Streams, normal
from agewise.scenario.fading import LIGHT_M_S, doppler_hz
from agewise.units import db_to_linear

_Gains = NDArray[np.float64]
_Error = tuple[np.uint64, float, _Gains]
_NOTHING = np.empty((0, 0))
_STILL, _UP_TO_DATE, _ALL = np.empty((0, 2)), np.empty(0), np.empty(0, np.bool_)
#: Mean and deviation in dB of the K-factor in line of sight (TR 38.901 table 7.5-6).
_K_DB = {"uma": (9.0, 3.5), "umi": (9.0, 5.0), "inh": (7.0, 4.0), "inf": (7.0, 8.0)}


@dataclass(frozen=True)
class Staleness:
    """What separates the amplitudes that the access point sees from the true ones.

    The scattered parts have this ``correlation``. Where fading is correlated over time, they were
    seen ``delay_s`` before.
    """

    key: np.uint64
    correlation: float
    delay_s: float = 0.0


class Fading(Protocol):
    """Gains around their means: any round in any order, reproducibly."""

    def gains(self, t: int, large: LargeScale, subchannels: int) -> _Gains:
        """``float64[ue, subchannel]`` of round ``t``, whatever was drawn before."""
        ...

    def seen_and_true(
        self, t: int, large: LargeScale, subchannels: int, staleness: Staleness
    ) -> tuple[_Gains, _Gains]:
        """The gains of round ``t`` as they are seen, and as they are (`gains`)."""
        ...


@dataclass(frozen=True)
class RayleighFading:
    """Rayleigh block fading: exponential gains, independent over rounds, UEs and subchannels."""

    key: np.uint64

    def gains(self, t: int, large: LargeScale, subchannels: int) -> _Gains:
        """``float64[ue, subchannel]`` of round ``t``, whatever was drawn before."""
        gains = np.empty((large.mean_gains.size, subchannels))
        fade(self.key, t, large.mean_gains, gains)
        return gains

    def seen_and_true(
        self, t: int, large: LargeScale, subchannels: int, staleness: Staleness
    ) -> tuple[_Gains, _Gains]:
        """The gains of round ``t`` as they are seen, and as they are."""
        true = self.gains(t, large, subchannels)
        seen = np.empty_like(true)
        disturb(staleness.key, t, staleness.correlation, large.mean_gains, true, seen)
        return seen, true


@dataclass(frozen=True)
class NakagamiFading:
    """Nakagami block fading: gamma gains, independent over rounds, UEs and subchannels."""

    key: np.uint64
    m: float

    def gains(self, t: int, large: LargeScale, subchannels: int) -> _Gains:
        """``float64[ue, subchannel]`` of round ``t``, whatever was drawn before."""
        gains = np.empty((large.mean_gains.size, subchannels))
        fade_nakagami(self.key, t, self.m, large.mean_gains, gains)
        return gains

    def seen_and_true(
        self,
        t: int,
        large: LargeScale,
        subchannels: int,
        staleness: Staleness,
    ) -> tuple[_Gains, _Gains]:
        """Not defined: the distribution says nothing of amplitudes."""
        raise ValueError("Nakagami fading has no amplitudes that could be seen with an error")


@dataclass(frozen=True)
class Unfaded:
    """Gains stay at their means."""

    def gains(
        self,
        t: int,
        large: LargeScale,
        subchannels: int,
    ) -> _Gains:
        """``float64[ue, subchannel]``, the same wherever the mean gains are."""
        return np.repeat(large.mean_gains[:, np.newaxis], subchannels, axis=1)

    def seen_and_true(
        self,
        t: int,
        large: LargeScale,
        subchannels: int,
        staleness: Staleness,
    ) -> tuple[_Gains, _Gains]:
        """The gains, which do not change."""
        gains = self.gains(t, large, subchannels)
        return gains, gains


@dataclass(frozen=True)
class Motion:
    """What makes fading correlated over time: waves of this length, passed at this Doppler shift.

    Without a shift (``None``) it follows from where the UEs are.
    """

    wavelength_m: float
    round_s: float
    doppler_hz: float | None

    def moved(self, t: int, large: LargeScale) -> _Gains:
        """``[ue, (x, y)]``: where the UEs are among the waves in round ``t``, in wavelengths."""
        if self.doppler_hz is None:
            return large.positions_m / self.wavelength_m
        moved = np.zeros((large.mean_gains.size, 2))
        moved[:, 0] = self.doppler_hz * (self.round_s * t)
        return moved

    def behind(self, delay_s: float, large: LargeScale) -> _Gains:
        """``[ue]``: how far the UEs move in this time, in wavelengths."""
        if self.doppler_hz is None:
            return large.speed_m_s * (delay_s / self.wavelength_m)
        return np.full(large.mean_gains.size, self.doppler_hz * delay_s)


@dataclass(frozen=True, eq=False)
class MultipathFading:
    """Rayleigh or Rician fading over the taps of a delay profile, over time, or both.

    ``phases`` are those of the taps, as `fade_paths` takes them.
    ``direct_share[ue]`` is the share of a UE's power that comes on a direct path, in rounds in
    which the UE is in line of sight if it ``needs_sight``. Without ``motion`` fading is drawn
    anew in every round.
    """

    key: np.uint64
    phases: _Gains
    direct_share: _Gains
    needs_sight: bool = False
    motion: Motion | None = None

    def gains(self, t: int, large: LargeScale, subchannels: int) -> _Gains:
        """``float64[ue, subchannel]`` of round ``t``, whatever was drawn before."""
        gains = np.empty((large.mean_gains.size, subchannels))
        self._fade(t, large, (self.key, 1.0, _UP_TO_DATE), gains, _NOTHING)
        return gains

    def seen_and_true(
        self, t: int, large: LargeScale, subchannels: int, staleness: Staleness
    ) -> tuple[_Gains, _Gains]:
        """The gains of round ``t`` as they are seen, and as they are."""
        true = np.empty((large.mean_gains.size, subchannels))
        seen = np.empty_like(true)
        behind = _UP_TO_DATE
        if self.motion is not None and staleness.delay_s > 0:
            behind = self.motion.behind(staleness.delay_s, large)
        error = (staleness.key, staleness.correlation, behind)
        self._fade(t, large, error, true, seen)
        return seen, true

    def _fade(self, t: int, large: LargeScale, error: _Error, true: _Gains, seen: _Gains) -> None:
        sight = large.line_of_sight if self.needs_sight else _ALL
        moved = _STILL if self.motion is None else self.motion.moved(t, large)
        scene = (large.mean_gains, self.direct_share, sight, moved)
        fade_paths((self.key, self.phases), t, scene, error, true, seen)


def make_fading(
    settings: scenario.Rayleigh | scenario.Rician | scenario.Nakagami | scenario.NoFading,
    cell: scenario.Cell,
    round_s: float | None,
    streams: Streams,
) -> Fading:
    """The fading that a scenario describes."""
    if isinstance(settings, scenario.NoFading):
        return Unfaded()
    if isinstance(settings, scenario.Nakagami):
        return NakagamiFading(streams.channel, settings.m)
    profile, motion = _profile(settings.frequency), _motion(settings.time, round_s)
    if isinstance(settings, scenario.Rayleigh) and profile is None and motion is None:
        return RayleighFading(streams.channel)
    return MultipathFading(
        key=streams.channel,
        phases=_phases(profile, cell),
        direct_share=_direct_share(settings, profile, cell.ues, streams),
        needs_sight=isinstance(settings, scenario.Rician)
        and isinstance(settings.k_factor, scenario.DrawnK),
        motion=motion,
    )


def _profile(settings: scenario.fading.Frequency) -> DelayProfile | None:
    if isinstance(settings, scenario.IndependentSubchannels):
        return None
    return delay_profile(settings.kind, getattr(settings, "delay_spread_s", 0.0))


def _motion(
    settings: scenario.IndependentRounds | scenario.Jakes, round_s: float | None
) -> Motion | None:
    if isinstance(settings, scenario.IndependentRounds):
        return None
    shift = None if settings.speed_m_s is None else doppler_hz(settings)
    return Motion(LIGHT_M_S / settings.carrier_hz, round_s or 0.0, shift)


def _phases(profile: DelayProfile | None, cell: scenario.Cell) -> _Gains:
    """The phases of the taps at the offsets of the subchannels from the middle of the band."""
    if profile is None:
        return _NOTHING
    count, bandwidth_hz = cell.subchannels, cell.subchannel_bandwidth_hz or 0.0
    offsets = np.arange((count + 1) // 2) + (0.5 if count % 2 == 0 else 0.0)
    turns = np.multiply.outer(profile.delays_s, offsets * bandwidth_hz) % 1.0
    phases = circle_each(turns.ravel()).reshape(*turns.shape, 2)
    taps = np.sqrt(profile.powers)[:, np.newaxis, np.newaxis] * phases
    taps = np.pad(taps, ((0, 0), (0, -offsets.size % WIDTH), (0, 0)))
    return aligned(np.concatenate([taps[..., 0], taps[..., 1]], axis=1))


def _direct_share(
    settings: scenario.Rayleigh | scenario.Rician,
    profile: DelayProfile | None,
    ues: int,
    streams: Streams,
) -> _Gains:
    """``[ue]``: K / (K + 1); a Rician K-factor takes the place of the profile's."""
    if isinstance(settings, scenario.Rayleigh):
        return np.full(ues, 0.0 if profile is None else profile.direct_share)
    if isinstance(settings.k_factor, scenario.FixedK):
        k_db = np.full(ues, settings.k_factor.k_db)
    else:
        mean, deviation = _K_DB[settings.k_factor.environment]
        k_db = mean + deviation * normal(streams.rician(), ues)
    ratios = np.array([db_to_linear(-one) for one in k_db])
    return np.asarray(1.0 / (1.0 + ratios))


def bessel_j0(x: float) -> float:
    """The Bessel function J0, by the mean of ``cos(x cos a)`` over angles, the same everywhere.

    >>> round(bessel_j0(1.0), 12)
    0.765197686558
    """
    if not x < 1e5:
        return 0.0  # below 0.003, and of no use to anyone
    angles = circle_each(np.arange(2 * int(x) + 64) / (2 * int(x) + 64))[:, 0]
    turns = (x / (2.0 * math.pi) * angles) % 1.0
    return float(math.fsum(circle_each(turns)[:, 0]) / turns.size)
