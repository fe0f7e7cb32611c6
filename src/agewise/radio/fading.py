"""Fading: how gains vary around their means, over subchannels and from round to round."""

import math
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.elementary import cos_sin_each
from agewise.core.fading import fade_nakagami, fade_paths
from agewise.part import Decibels, Kinds, Part, State
from agewise.radio.cell import Cell, RunContext
from agewise.radio.large_scale import LargeScale
from agewise.radio.profiles import DelayProfile, Frequency, IndependentSubchannels
from agewise.random import normal
from agewise.units import db_to_linear

_Gains = NDArray[np.float64]
#: Seconds from round to round, and the fastest speed of the mobility in m/s (`Time.check`).
Rounds = tuple[float | None, float | None]
_Error = tuple[np.uint64, float, _Gains]
_NOTHING, _NO_TAPS = np.empty((0, 0)), np.empty((2, 0, 0))
_STILL, _ALL = np.empty((0, 2)), np.empty(0, np.bool_)
#: The speed of light in m/s.
LIGHT_M_S = 299_792_458.0
#: Mean and deviation in dB of the K-factor in line of sight (TR 38.901 table 7.5-6).
_K_DB = {"uma": (9.0, 3.5), "umi": (9.0, 5.0), "inh": (7.0, 4.0), "inf": (7.0, 8.0)}
CARRIER = "carrier frequency in Hz"
SPEED = "how fast a UE or what surrounds it moves, in m/s"


class CsiError(NamedTuple):
    """Error of the amplitudes that the access point knows.

    The scattered parts have this ``correlation``. Where fading is correlated over time, they were
    measured ``delay_s`` before.
    """

    key: np.uint64
    correlation: float
    delay_s: float = 0.0


# -------------------------------------------------------------------------------------- over time
class Time(Part):
    """Correlation of fading from round to round."""

    #: Whether there is any.
    is_correlated: ClassVar[bool] = False

    kind: str = ""

    def check(self, round_s: float | None, top_speed_m_s: float | None) -> None:
        """Raise ``ValueError`` if rounds of this length cannot follow such fading.

        The speed is the fastest of the mobility: 0 without any, ``None`` where not known yet.
        """

    def places(self, time_s: float, large: LargeScale, delay_s: float = 0.0) -> _Gains:
        """Return where the UEs are among the waves then, ``[ue, (x, y)]`` in wavelengths.

        A delay is how long before that. Empty if fading is drawn anew in every round.
        """
        return _STILL


class IndependentRounds(Time):
    """Fading is drawn anew in every round, as in the paper."""

    kind: Literal["independent"] = "independent"


class Jakes(Time):
    """Correlated from round to round by the Doppler spread of waves from all sides (J0)."""

    is_correlated: ClassVar[bool] = True

    kind: Literal["jakes"] = "jakes"
    carrier_hz: float = Field(ge=1e6, le=1e12, description=CARRIER)
    speed_m_s: float | None = Field(
        default=None, ge=0, le=1e4, description=f"{SPEED}; left out, it follows from the mobility"
    )

    def check(self, round_s: float | None, top_speed_m_s: float | None) -> None:
        """Raise ``ValueError`` unless rounds are shorter than half a period of the Doppler shift.

        The speed is its own or else the fastest of the mobility.
        """
        if round_s is None:
            raise ValueError("channel.fading.time = jakes needs channel.round_s")
        speed_m_s = top_speed_m_s if self.speed_m_s is None else self.speed_m_s
        if self.speed_m_s is None and top_speed_m_s == 0.0:
            where = "channel.fading.time.speed_m_s"
            raise ValueError(f"{where} is missing: without channel.mobility it must be given")
        shift = (speed_m_s or 0.0) * self.carrier_hz / LIGHT_M_S
        if shift * round_s > 0.5:
            whose = f" of UEs that move at {speed_m_s:.4g} m/s" if self.speed_m_s is None else ""
            raise ValueError(
                f"channel.round_s = {round_s:g}: must be from 1e-06 to {0.5 / shift:.4g} with "
                f"channel.fading.time = jakes, half a period of the Doppler shift of {shift:.4g} "
                f"Hz{whose}, or fading aliases; the nearest is {0.5 / shift:.4g}, or take "
                'channel.fading.time = "independent", which such rounds are'
            )

    def places(self, time_s: float, large: LargeScale, delay_s: float = 0.0) -> _Gains:
        """Return the places in wavelengths; along x if the speed is the same for all."""
        if self.speed_m_s is None:
            positions_m = large.positions_before(delay_s) if delay_s else large.positions_m
            return positions_m / (LIGHT_M_S / self.carrier_hz)
        places = np.zeros((large.mean_gains.size, 2))
        doppler_hz = self.speed_m_s * self.carrier_hz / LIGHT_M_S
        places[:, 0] = doppler_hz * time_s - doppler_hz * delay_s
        return places


# --------------------------------------------------------------------------------------- K-factors
class KFactor(Part):
    """Power of the direct path over the scattered ones."""

    #: Whether only UEs in line of sight have a direct path.
    needs_los: ClassVar[bool] = False

    kind: str = ""

    def ratios_db(self, run: RunContext) -> _Gains:
        """Return the K-factors of the UEs in dB."""
        raise self.lacks("ratios_db")


class FixedK(KFactor):
    """The same K-factor for every UE."""

    kind: Literal["fixed"] = "fixed"
    k_db: Decibels = Field(description="power of the direct path over the scattered ones, dB")

    def ratios_db(self, run: RunContext) -> _Gains:
        """Return the same number for all."""
        return np.full(run.cell.ues, self.k_db)


class DrawnK(KFactor):
    """A K-factor for each UE in line of sight, log-normal by 3GPP TR 38.901 table 7.5-6.

    UEs that are not in line of sight have Rayleigh fading.
    """

    needs_los: ClassVar[bool] = True

    kind: Literal["drawn"] = "drawn"
    environment: Literal["uma", "umi", "inh", "inf"] = Field(
        description="whose mean and deviation in dB: 9 and 3.5 (uma), 9 and 5 (umi), 7 and 4 "
        "(inh), 7 and 8 (inf)"
    )

    def ratios_db(self, run: RunContext) -> _Gains:
        """Draw the K-factors."""
        mean, deviation = _K_DB[self.environment]
        return np.asarray(mean + deviation * normal(run.streams.rician(), run.cell.ues))


# ----------------------------------------------------------------------------------------- fading
class Fading(Part):
    """Variation of gains around their means: any round in any order, reproducibly.

    A kind of your own has `gains`.
    """

    #: Whether amplitudes are known, so that CSI can have an error in them.
    has_amplitudes: ClassVar[bool] = False

    kind: str = ""

    @property
    def is_over_time(self) -> bool:
        """Tell whether fading is correlated from round to round."""
        return False

    def check(self, cell: Cell, rounds: Rounds, *, knows_los: bool) -> None:
        """Raise ``ValueError`` if it cannot be, for subchannels so wide and rounds so long.

        ``knows_los`` says whether the path loss tells who is in line of sight.
        """

    def prepare(self, run: RunContext) -> State:
        """Return the state for one run: by default what the run asks of its channel."""
        return run

    def gains(self, state: State, t: int, large: LargeScale) -> _Gains:
        """Return the gains ``[ue, subchannel]`` of round ``t``, whatever was drawn before."""
        raise self.lacks("gains")

    def seen_and_true(
        self, state: State, t: int, large: LargeScale, error: CsiError
    ) -> tuple[_Gains, _Gains]:
        """Return the gains of round ``t`` as they are estimated, and as they are (`gains`)."""
        raise self.lacks("seen_and_true")


class NoFading(Fading):
    """Gains stay at their means."""

    has_amplitudes: ClassVar[bool] = True

    kind: Literal["none"] = "none"

    def gains(self, state: State, t: int, large: LargeScale) -> _Gains:
        """Return the means, the same on all subchannels."""
        return np.repeat(large.mean_gains[:, np.newaxis], state.cell.subchannels, axis=1)

    def seen_and_true(
        self, state: State, t: int, large: LargeScale, error: CsiError
    ) -> tuple[_Gains, _Gains]:
        """Return the gains, which do not change."""
        gains = self.gains(state, t, large)
        return gains, gains


class Nakagami(Fading):
    """Nakagami block fading, independent over rounds, UEs and subchannels; gains are gamma."""

    kind: Literal["nakagami"] = "nakagami"
    m: float = Field(
        ge=0.5, le=1e6, description="shape: 1 is Rayleigh, less is worse, more is steadier"
    )

    def gains(self, state: State, t: int, large: LargeScale) -> _Gains:
        """Draw gamma gains."""
        gains = np.empty((large.mean_gains.size, state.cell.subchannels))
        fade_nakagami(state.streams.channel, t, self.m, large.mean_gains, gains)
        return gains


class _Paths(NamedTuple):
    """State of fading over paths: what `fade_paths` takes in every round.

    ``direct_share[ue]`` is the share of a UE's power that comes on a direct path.
    """

    run: RunContext
    phases: _Gains
    direct_share: _Gains


class _Scattered(Fading):
    """Fading by scattered waves, over the taps of a delay profile, over time, or both."""

    has_amplitudes: ClassVar[bool] = True

    frequency: Annotated[Frequency, Kinds] = Field(
        default=IndependentSubchannels(),
        description="how fading differs between subchannels: independent, or by the taps of a "
        "delay profile",
    )
    time: Annotated[Time, Kinds] = Field(
        default=IndependentRounds(), description="how fading goes on from round to round"
    )

    @property
    def is_over_time(self) -> bool:
        """Tell whether fading is correlated from round to round."""
        return self.time.is_correlated

    def check(self, cell: Cell, rounds: Rounds, *, knows_los: bool) -> None:
        """Raise ``ValueError`` if the profile lacks a bandwidth, or rounds are too long."""
        self.frequency.check(cell.subchannel_bandwidth_hz)
        self.time.check(*rounds)

    def direct_share(self, run: RunContext, profile: DelayProfile | None) -> _Gains:
        """Return the share of power on a direct path, ``[ue]``: K / (K + 1)."""
        return np.full(run.cell.ues, 0.0 if profile is None else profile.direct_share)

    def direct_ues(self, large: LargeScale) -> NDArray[np.bool_]:
        """Return which UEs have a direct path, or nothing if all do."""
        return _ALL

    def prepare(self, run: RunContext) -> _Paths:
        """Return the phases of the taps and the shares of direct paths."""
        profile = self.frequency.delay_profile()
        phases = _NO_TAPS if profile is None else _phases(profile, run.cell)
        return _Paths(run, phases, self.direct_share(run, profile))

    def gains(self, state: _Paths, t: int, large: LargeScale) -> _Gains:
        """Sum the paths of every UE."""
        gains = np.empty((large.mean_gains.size, state.run.cell.subchannels))
        error = (state.run.streams.channel, 1.0, _STILL)
        self._fade(state, t, large, error, gains, _NOTHING)
        return gains

    def seen_and_true(
        self, state: _Paths, t: int, large: LargeScale, error: CsiError
    ) -> tuple[_Gains, _Gains]:
        """Sum the paths as they are estimated, and as they are."""
        seen, true = np.empty((2, large.mean_gains.size, state.run.cell.subchannels))
        before, time_s = _STILL, (state.run.round_s or 0.0) * t
        if error.delay_s > 0:
            before = self.time.places(time_s, large, error.delay_s)
        self._fade(state, t, large, (error.key, error.correlation, before), true, seen)
        return seen, true

    def _fade(self, state: _Paths, t: int, large: LargeScale, error: _Error, *out: _Gains) -> None:
        places = self.time.places((state.run.round_s or 0.0) * t, large)
        scene = (large.mean_gains, state.direct_share, self.direct_ues(large), places)
        fade_paths((state.run.streams.channel, state.phases), t, scene, error, *out)


class Rayleigh(_Scattered):
    """Rayleigh block fading: waves from all sides, none of which stands out."""

    kind: Literal["rayleigh"] = "rayleigh"


class Rician(_Scattered):
    """Rician block fading: a direct path beside the scattered ones."""

    kind: Literal["rician"] = "rician"
    k_factor: Annotated[KFactor, Kinds] = Field(description="how strong the direct path is")

    def check(self, cell: Cell, rounds: Rounds, *, knows_los: bool) -> None:
        """Raise ``ValueError`` also if the direct path needs a line of sight that nobody knows."""
        if self.k_factor.needs_los and not knows_los:
            raise ValueError(
                f"channel.fading.k_factor = {self.k_factor.kind} needs a path loss that says who "
                "is in line of sight: set channel.path_loss to uma, umi, inh or inf, or "
                "channel.fading.k_factor to fixed"
            )
        super().check(cell, rounds, knows_los=knows_los)

    def direct_share(self, run: RunContext, profile: DelayProfile | None) -> _Gains:
        """Return K / (K + 1), in the place of the profile's."""
        ratios = np.array([db_to_linear(-k_db) for k_db in self.k_factor.ratios_db(run)])
        return np.asarray(1.0 / (1.0 + ratios))

    def direct_ues(self, large: LargeScale) -> NDArray[np.bool_]:
        """Return who is in line of sight, if that decides."""
        return large.line_of_sight if self.k_factor.needs_los else _ALL


def _phases(profile: DelayProfile, cell: Cell) -> _Gains:
    """Return the phases of the taps by the subchannels' offsets from the middle of the band."""
    count, bandwidth_hz = cell.subchannels, cell.subchannel_bandwidth_hz or 0.0
    offsets_hz = (np.arange(count) - 0.5 * (count - 1)) * bandwidth_hz
    turns = np.multiply.outer(profile.delays_s, offsets_hz)
    turned = cos_sin_each(turns.ravel()).T.reshape(2, *turns.shape)
    return np.ascontiguousarray(np.sqrt(profile.powers)[:, np.newaxis] * turned)


def bessel_j0(x: float) -> float:
    """Return the Bessel function J0: the mean of ``cos(x cos a)`` over angles, the same everywhere.

    >>> round(bessel_j0(1.0), 12)
    0.765197686558
    """
    if not x < 1e5:
        return 0.0  # below 0.003, and of no use to anyone
    angles = cos_sin_each(np.arange(2 * int(x) + 64) / (2 * int(x) + 64))[:, 0]
    turns = (x / (2.0 * math.pi) * angles) % 1.0
    return float(math.fsum(cos_sin_each(turns)[:, 0]) / turns.size)
