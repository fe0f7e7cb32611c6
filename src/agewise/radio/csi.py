"""CSI: what the access point knows of the gains that the uploads will meet."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.part import Decibels, Part, State
from agewise.radio.cell import RunContext
from agewise.radio.fading import CARRIER, LIGHT_M_S, SPEED, CsiError, Fading, bessel_j0
from agewise.radio.large_scale import LargeScale
from agewise.units import db_to_linear

_Gains = NDArray[np.float64]


class Csi(Part):
    """Channel state information at the access point.

    A kind of your own has `observe`.
    """

    kind: str = ""

    def check(self, fading: Fading) -> None:
        """Raise ``ValueError`` if such fading cannot be known so."""

    def prepare(self, run: RunContext) -> State:
        """Return the state for one run: by default what the run asks of its channel."""
        return run

    def observe(self, state: State, t: int, true: _Gains, large: LargeScale) -> _Gains:
        """Return the gains ``[ue, subchannel]`` as the access point knows them in round ``t``."""
        raise self.lacks("observe")

    def seen_and_true(
        self, state: State, t: int, large: LargeScale, fading: tuple[Fading, State]
    ) -> tuple[_Gains, _Gains]:
        """Return the gains of round ``t`` as they are known, and as the uploads meet them.

        ``fading`` is the part with its state.
        """
        part, faded = fading
        true = part.gains(faded, t, large)
        return self.observe(state, t, true, large), true


class PerfectCsi(Csi):
    """The access point knows the gains that the uploads will meet."""

    kind: Literal["perfect"] = "perfect"

    def observe(self, state: State, t: int, true: _Gains, large: LargeScale) -> _Gains:
        """Return the gains: the same array."""
        return true


class _WithError(Csi):
    """Estimated in noise, or measured before the upload: what is known and true are correlated."""

    def check(self, fading: Fading) -> None:
        """Raise ``ValueError`` if fading has no amplitudes that an error could be in."""
        if not fading.has_amplitudes:
            raise ValueError(
                f"channel.csi = {self.kind} needs amplitudes, and {fading.kind} has only powers: "
                "set channel.fading to rayleigh or rician, or channel.csi to quantised or "
                "statistics"
            )

    def seen_and_true(
        self, state: State, t: int, large: LargeScale, fading: tuple[Fading, State]
    ) -> tuple[_Gains, _Gains]:
        """Return gains of the same mean, whose amplitudes share what the correlation says."""
        part, faded = fading
        return part.seen_and_true(faded, t, large, state)


class Estimated(_WithError):
    """Gains are estimated from pilots in noise."""

    kind: Literal["estimated"] = "estimated"
    pilot_snr_db: Decibels = Field(
        description="SNR in dB of an estimate at a mean gain; estimate and truth have the "
        "correlation sqrt(snr / (1 + snr))"
    )

    def prepare(self, run: RunContext) -> CsiError:
        """Return the error of the estimates."""
        snr = db_to_linear(self.pilot_snr_db)
        return CsiError(run.streams.csi, math.sqrt(snr / (1.0 + snr)))


class Delayed(_WithError):
    """Gains were measured a while before the upload, and the channel has moved on."""

    kind: Literal["delayed"] = "delayed"
    delay_s: float = Field(ge=0, le=1e3, description="seconds from the measurement to the upload")
    carrier_hz: float | None = Field(
        default=None, ge=1e6, le=1e12, description=f"{CARRIER}; left out, that of fading.time"
    )
    speed_m_s: float | None = Field(
        default=None, ge=0, le=1e4, description=f"{SPEED}; left out, that of fading.time"
    )

    def check(self, fading: Fading) -> None:
        """Raise ``ValueError`` also unless the Doppler shift comes from one place."""
        super().check(fading)
        for name in ("carrier_hz", "speed_m_s"):
            is_given = getattr(self, name) is not None
            if fading.is_over_time and is_given:
                raise ValueError(f"channel.csi.{name} is that of channel.fading.time: leave it out")
            if not fading.is_over_time and not is_given:
                raise ValueError(
                    f"channel.csi.{name} is missing: it is needed unless channel.fading.time is "
                    "jakes"
                )

    def prepare(self, run: RunContext) -> CsiError:
        """Return the error of the delay.

        Without a Doppler shift of its own it is that of the fading, which goes back in time.
        """
        doppler_hz = (self.speed_m_s or 0.0) * (self.carrier_hz or 0.0) / LIGHT_M_S
        phase = 2.0 * math.pi * doppler_hz * self.delay_s
        return CsiError(run.streams.csi, bessel_j0(phase), self.delay_s)


class Quantised(Csi):
    """Gains are reported in steps of equal decibels, rounded down."""

    kind: Literal["quantised"] = "quantised"
    bits: int = Field(ge=1, le=12, description="bits of a report: 2^bits levels")
    lowest_db: Decibels = Field(
        description="lowest level that is not zero, in dB over the UE's mean gain"
    )
    highest_db: Decibels = Field(description="highest level, in dB over the UE's mean gain")

    def check(self, fading: Fading) -> None:
        """Raise ``ValueError`` if the levels do not rise."""
        if not self.lowest_db < self.highest_db:
            raise ValueError(
                f"channel.csi.highest_db = {self.highest_db:g} must be above lowest_db = "
                f"{self.lowest_db:g}"
            )

    def prepare(self, run: RunContext) -> _Gains:
        """Return the levels above 0 in units of the mean gain."""
        steps, lowest = max(1, 2**self.bits - 2), self.lowest_db
        span = self.highest_db - lowest
        levels_db = (lowest + span * i / steps for i in range(2**self.bits - 1))
        return np.array([db_to_linear(level) for level in levels_db])

    def observe(self, state: State, t: int, true: _Gains, large: LargeScale) -> _Gains:
        """Return the highest level that each gain reaches, so that no upload is lost by it."""
        means = large.mean_gains[:, np.newaxis]
        reached = np.searchsorted(state, true / means, side="right")
        return np.minimum(np.append(0.0, state)[reached] * means, true)


class Statistics(Csi):
    """Only the mean gains are known."""

    kind: Literal["statistics"] = "statistics"

    def observe(self, state: State, t: int, true: _Gains, large: LargeScale) -> _Gains:
        """Return the mean gains, the same on all subchannels."""
        return np.repeat(large.mean_gains[:, np.newaxis], true.shape[1], axis=1)
