"""Delay profiles: the taps through which waves arrive one after the other.

EPA, EVA and ETU are those of 3GPP TS 36.104 Annex B.2; TDL-A to TDL-E of TR 38.901 tables 7.7.2-1
to 7.7.2-5, whose delays are in units of the rms delay spread.
"""

from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agewise.part import Part
from agewise.units import db_to_linear


class DelayProfile(NamedTuple):
    """Taps at ``delays_s[tap]`` with ``powers[tap]``, which add up to 1 over the scattered taps.

    ``direct_share`` of all power comes on a direct path at delay 0; 0 without line of sight.
    """

    delays_s: NDArray[np.float64]
    powers: NDArray[np.float64]
    direct_share: float = 0.0


#: Delays in ns and powers in dB.
_FIXED: dict[str, tuple[list[float], list[float]]] = {
    "epa": ([0, 30, 70, 90, 110, 190, 410], [0, -1, -2, -3, -8, -17.2, -20.8]),
    "eva": (
        [0, 30, 150, 310, 370, 710, 1090, 1730, 2510],
        [0, -1.5, -1.4, -3.6, -0.6, -9.1, -7, -12, -16.9],
    ),
    "etu": ([0, 50, 120, 200, 230, 500, 1600, 2300, 5000], [-1, -1, -1, 0, 0, 0, -3, -5, -7]),
}
#: Delays over the delay spread and powers in dB.
_SCALED: dict[str, tuple[list[float], list[float]]] = {
    "tdl-a": (
        [0, 0.3819, 0.4025, 0.5868, 0.4610, 0.5375, 0.6708, 0.5750, 0.7618, 1.5375, 1.8978,
         2.2242, 2.1718, 2.4942, 2.5119, 3.0582, 4.0810, 4.4579, 4.5695, 4.7966, 5.0066, 5.3043,
         9.6586],
        [-13.4, 0, -2.2, -4, -6, -8.2, -9.9, -10.5, -7.5, -15.9, -6.6, -16.7, -12.4, -15.2,
         -10.8, -11.3, -12.7, -16.2, -18.3, -18.9, -16.6, -19.9, -29.7],
    ),
    "tdl-b": (
        [0, 0.1072, 0.2155, 0.2095, 0.2870, 0.2986, 0.3752, 0.5055, 0.3681, 0.3697, 0.5700,
         0.5283, 1.1021, 1.2756, 1.5474, 1.7842, 2.0169, 2.8294, 3.0219, 3.6187, 4.1067, 4.2790,
         4.7834],
        [0, -2.2, -4, -3.2, -9.8, -1.2, -3.4, -5.2, -7.6, -3, -8.9, -9, -4.8, -5.7, -7.5, -1.9,
         -7.6, -12.2, -9.8, -11.4, -14.9, -9.2, -11.3],
    ),
    "tdl-c": (
        [0, 0.2099, 0.2219, 0.2329, 0.2176, 0.6366, 0.6448, 0.6560, 0.6584, 0.7935, 0.8213,
         0.9336, 1.2285, 1.3083, 2.1704, 2.7105, 4.2589, 4.6003, 5.4902, 5.6077, 6.3065, 6.6374,
         7.0427, 8.6523],
        [-4.4, -1.2, -3.5, -5.2, -2.5, 0, -2.2, -3.9, -7.4, -7.1, -10.7, -11.1, -5.1, -6.8, -8.7,
         -13.2, -13.9, -13.9, -15.8, -17.1, -16, -15.7, -21.6, -22.8],
    ),
    "tdl-d": (
        [0, 0.035, 0.612, 1.363, 1.405, 1.804, 2.596, 1.775, 4.042, 7.937, 9.424, 9.708, 12.525],
        [-13.5, -18.8, -21, -22.8, -17.9, -20.1, -21.9, -22.9, -27.8, -23.6, -24.8, -30, -27.7],
    ),
    "tdl-e": (
        [0, 0.5133, 0.5440, 0.5630, 0.5440, 0.7112, 1.9092, 1.9293, 1.9589, 2.6426, 3.7136,
         5.4524, 12.0034, 20.6519],
        [-22.03, -15.8, -18.1, -19.8, -22.9, -22.4, -18.6, -20.8, -22.6, -22.3, -25.6, -20.2,
         -29.8, -29.2],
    ),
}  # fmt: skip
#: Powers in dB of the direct paths.
_DIRECT_DB = {"tdl-d": -0.2, "tdl-e": -0.03}


class Frequency(Part):
    """Correlation of fading between subchannels.

    A kind of your own has `delay_profile`.
    """

    kind: str = ""

    def check(self, bandwidth_hz: float | None) -> None:
        """Raise ``ValueError`` if subchannels need a bandwidth and have none."""
        if bandwidth_hz is None:
            raise ValueError(
                f"channel.fading.frequency = {self.kind} needs cell.subchannel_bandwidth_hz"
            )

    def delay_profile(self) -> DelayProfile | None:
        """Return the taps; ``None`` if every subchannel fades on its own."""
        raise self.lacks("delay_profile")


class IndependentSubchannels(Frequency):
    """Every subchannel fades on its own, as in the paper."""

    kind: Literal["independent"] = "independent"

    def check(self, bandwidth_hz: float | None) -> None:
        """Accept every bandwidth."""

    def delay_profile(self) -> None:
        """Return no taps."""


class Taps(Frequency):
    """Taps of a delay profile, through which waves arrive one after the other.

    EPA, EVA and ETU are those of 3GPP TS 36.104 Annex B.2, of 7, 9 and 9 taps with rms delay
    spreads of 43, 357 and 991 ns. TDL-A to TDL-E are those of TR 38.901 tables 7.7.2-1 to 7.7.2-5
    with the delay spread that is given; TDL-D and TDL-E have a direct path (K = 13.3 and 22 dB).
    """

    kind: Literal["taps"] = "taps"
    profile: Literal["epa", "eva", "etu", "tdl-a", "tdl-b", "tdl-c", "tdl-d", "tdl-e"] = Field(
        description="which one: pedestrian, vehicular or typical urban, or a tapped delay line"
    )
    delay_spread_s: float | None = Field(
        default=None,
        ge=0,
        le=1e-4,
        description="rms delay spread in seconds of a tdl; TR 38.901 calls 30e-9 short, 100e-9 "
        "nominal and 300e-9 long",
    )

    @model_validator(mode="after")
    def _has_one_spread(self) -> Self:
        if (self.profile in _SCALED) != (self.delay_spread_s is not None):
            name = self.profile
            raise ValueError(
                f"delay_spread_s is missing: the delays of {name} are in units of it"
                if name in _SCALED
                else f"delay_spread_s = {self.delay_spread_s:g}: {name} has delays of its own; "
                "leave it out"
            )
        return self

    def delay_profile(self) -> DelayProfile:
        """Return the taps of the table."""
        name, spread_s = self.profile, self.delay_spread_s
        delays, powers_db = _FIXED[name] if spread_s is None else _SCALED[name]
        powers = np.array([db_to_linear(power) for power in powers_db])
        scattered = float(sum(powers))
        direct = db_to_linear(_DIRECT_DB[name]) if name in _DIRECT_DB else 0.0
        scaled = np.array(delays) * (1e-9 if spread_s is None else spread_s)
        return DelayProfile(scaled, powers / scattered, direct / (direct + scattered))
