"""How gains vary around their means, and what the access point knows of them."""

from typing import Annotated, Literal

from pydantic import Field

from agewise.part import MOST_DB, ByName, Part

#: The speed of light in m/s.
LIGHT_M_S = 299_792_458.0
_CARRIER = "carrier frequency in Hz"
_SPEED = "how fast a UE or what surrounds it moves, in m/s"


# ------------------------------------------------------------------------------- over subchannels
class IndependentSubchannels(Part):
    """Every subchannel fades on its own, as in the paper."""

    kind: Literal["independent"] = "independent"


class Epa(Part):
    """Extended Pedestrian A of 3GPP TS 36.104 Annex B.2: 7 taps, rms delay spread 43 ns."""

    kind: Literal["epa"] = "epa"


class Eva(Part):
    """Extended Vehicular A of 3GPP TS 36.104 Annex B.2: 9 taps, rms delay spread 357 ns."""

    kind: Literal["eva"] = "eva"


class Etu(Part):
    """Extended Typical Urban of 3GPP TS 36.104 Annex B.2: 9 taps, rms delay spread 991 ns."""

    kind: Literal["etu"] = "etu"


DelaySpread = Annotated[
    float,
    Field(
        ge=0,
        le=1e-4,
        description="rms delay spread in seconds; TR 38.901 calls 30e-9 short, 100e-9 nominal and "
        "300e-9 long",
    ),
]


class TdlA(Part):
    """TDL-A of 3GPP TR 38.901 table 7.7.2-1: 23 taps without line of sight."""

    kind: Literal["tdl-a"] = "tdl-a"
    delay_spread_s: DelaySpread


class TdlB(Part):
    """TDL-B of 3GPP TR 38.901 table 7.7.2-2: 23 taps without line of sight."""

    kind: Literal["tdl-b"] = "tdl-b"
    delay_spread_s: DelaySpread


class TdlC(Part):
    """TDL-C of 3GPP TR 38.901 table 7.7.2-3: 24 taps without line of sight."""

    kind: Literal["tdl-c"] = "tdl-c"
    delay_spread_s: DelaySpread


class TdlD(Part):
    """TDL-D of 3GPP TR 38.901 table 7.7.2-4: 13 taps, the first Rician with K = 13.3 dB."""

    kind: Literal["tdl-d"] = "tdl-d"
    delay_spread_s: DelaySpread


class TdlE(Part):
    """TDL-E of 3GPP TR 38.901 table 7.7.2-5: 14 taps, the first Rician with K = 22 dB."""

    kind: Literal["tdl-e"] = "tdl-e"
    delay_spread_s: DelaySpread


# -------------------------------------------------------------------------------------- over time
class IndependentRounds(Part):
    """Fading is drawn anew in every round, as in the paper."""

    kind: Literal["independent"] = "independent"


class Jakes(Part):
    """Correlated from round to round by the Doppler spread of waves from all sides (J0)."""

    kind: Literal["jakes"] = "jakes"
    carrier_hz: float = Field(ge=1e6, le=1e12, description=_CARRIER)
    speed_m_s: float | None = Field(
        default=None, ge=0, le=1e4, description=f"{_SPEED}; left out, it follows from the mobility"
    )


Frequency = Annotated[
    IndependentSubchannels | Epa | Eva | Etu | TdlA | TdlB | TdlC | TdlD | TdlE,
    Field(discriminator="kind"),
    ByName,
]
Time = Annotated[IndependentRounds | Jakes, Field(discriminator="kind"), ByName]


class _Scattered(Part):
    frequency: Frequency = Field(
        default=IndependentSubchannels(),
        description="how fading differs between subchannels: independent, or by the taps of a "
        "delay profile",
    )
    time: Time = Field(
        default=IndependentRounds(), description="how fading goes on from round to round"
    )


# ----------------------------------------------------------------------------------------- fading
class Rayleigh(_Scattered):
    """Rayleigh block fading: waves from all sides, none of which stands out."""

    kind: Literal["rayleigh"] = "rayleigh"


class FixedK(Part):
    """The same K-factor for every UE."""

    kind: Literal["fixed"] = "fixed"
    k_db: float = Field(
        ge=-MOST_DB, le=MOST_DB, description="power of the direct path over the scattered ones, dB"
    )


class DrawnK(Part):
    """A K-factor for each UE in line of sight, log-normal by 3GPP TR 38.901 table 7.5-6.

    UEs that are not in line of sight have Rayleigh fading.
    """

    kind: Literal["drawn"] = "drawn"
    environment: Literal["uma", "umi", "inh", "inf"] = Field(
        description="whose mean and deviation in dB: 9 and 3.5 (uma), 9 and 5 (umi), 7 and 4 "
        "(inh), 7 and 8 (inf)"
    )


class Rician(_Scattered):
    """Rician block fading: a direct path beside the scattered ones."""

    kind: Literal["rician"] = "rician"
    k_factor: Annotated[FixedK | DrawnK, Field(discriminator="kind"), ByName] = Field(
        description="how strong the direct path is"
    )


class Nakagami(Part):
    """Nakagami block fading, independent over rounds, UEs and subchannels; gains are gamma."""

    kind: Literal["nakagami"] = "nakagami"
    m: float = Field(
        ge=0.5, le=1e6, description="shape: 1 is Rayleigh, less is worse, more is steadier"
    )


class NoFading(Part):
    """Gains stay at their means."""

    kind: Literal["none"] = "none"


Fading = Annotated[Rayleigh | Rician | Nakagami | NoFading, Field(discriminator="kind"), ByName]


# -------------------------------------------------------------------------------------- knowledge
class PerfectKnowledge(Part):
    """The access point sees the gains that the uploads will meet."""

    kind: Literal["perfect"] = "perfect"


class Estimated(Part):
    """Gains are estimated from pilots in noise."""

    kind: Literal["estimated"] = "estimated"
    pilot_snr_db: float = Field(
        ge=-MOST_DB,
        le=MOST_DB,
        description="SNR in dB of an estimate at a mean gain; estimate and truth have the "
        "correlation sqrt(snr / (1 + snr))",
    )


class Delayed(Part):
    """Gains were measured a while before the upload, and the channel has moved on."""

    kind: Literal["delayed"] = "delayed"
    delay_s: float = Field(ge=0, le=1e3, description="seconds from the measurement to the upload")
    carrier_hz: float | None = Field(
        default=None,
        ge=1e6,
        le=1e12,
        description=f"{_CARRIER}; left out, that of fading.time",
    )
    speed_m_s: float | None = Field(
        default=None, ge=0, le=1e4, description=f"{_SPEED}; left out, that of fading.time"
    )


class Quantised(Part):
    """Gains are reported in steps of equal decibels, rounded down."""

    kind: Literal["quantised"] = "quantised"
    bits: int = Field(ge=1, le=12, description="bits of a report: 2^bits levels")
    lowest_db: float = Field(
        ge=-MOST_DB,
        le=MOST_DB,
        description="lowest level that is not zero, in dB over the UE's mean gain",
    )
    highest_db: float = Field(
        ge=-MOST_DB, le=MOST_DB, description="highest level, in dB over the UE's mean gain"
    )


class Statistics(Part):
    """Only the mean gains are known."""

    kind: Literal["statistics"] = "statistics"


Knowledge = Annotated[
    PerfectKnowledge | Estimated | Delayed | Quantised | Statistics,
    Field(discriminator="kind"),
    ByName,
]


def doppler_hz(time: Jakes | Delayed) -> float:
    """The largest Doppler shift; 0 where the speed is not given."""
    return (time.speed_m_s or 0.0) * (time.carrier_hz or 0.0) / LIGHT_M_S


def require_fading(
    fading: Rayleigh | Rician | Nakagami | NoFading,
    bandwidth_hz: float | None,
    round_s: float | None,
    top_speed_m_s: float | None,
    *,
    knows_sight: bool,
) -> None:
    """Raise ``ValueError`` if this fading cannot be, for subchannels so wide and rounds so long.

    ``top_speed_m_s`` is that of the mobility, 0 without one and ``None`` if it is not known;
    ``knows_sight`` says whether the path loss tells who is in line of sight.
    """
    if isinstance(fading, Nakagami | NoFading):
        return
    if isinstance(fading, Rician) and isinstance(fading.k_factor, DrawnK) and not knows_sight:
        raise ValueError(
            "channel.fading.k_factor = drawn needs a path loss that says who is in line of sight: "
            "set channel.path_loss to uma, umi, inh or inf, or channel.fading.k_factor to fixed"
        )
    if not isinstance(fading.frequency, IndependentSubchannels) and bandwidth_hz is None:
        raise ValueError(
            f"channel.fading.frequency = {fading.frequency.kind} needs cell.subchannel_bandwidth_hz"
        )
    if isinstance(fading.time, Jakes):
        require_no_alias(fading.time, round_s, top_speed_m_s)


def require_no_alias(time: Jakes, round_s: float | None, top_speed_m_s: float | None) -> None:
    """Raise ``ValueError`` unless rounds are shorter than half a period of the Doppler shift.

    The speed is that of ``time`` or else the fastest of the mobility, 0 without one and ``None``
    where it is not known yet.
    """
    if round_s is None:
        raise ValueError("channel.fading.time = jakes needs channel.round_s")
    speed_m_s = top_speed_m_s if time.speed_m_s is None else time.speed_m_s
    if time.speed_m_s is None and top_speed_m_s == 0.0:
        raise ValueError(
            "channel.fading.time.speed_m_s is missing: without channel.mobility it must be given"
        )
    shift = (speed_m_s or 0.0) * time.carrier_hz / LIGHT_M_S
    if shift * round_s > 0.5:
        whose = "" if time.speed_m_s is not None else f" of UEs that move at {speed_m_s:.4g} m/s"
        raise ValueError(
            f"channel.round_s = {round_s:g}: must be from 1e-06 to {0.5 / shift:.4g} with "
            f"channel.fading.time = jakes, half a period of the Doppler shift of {shift:.4g} Hz"
            f"{whose}, or fading aliases; the nearest is {0.5 / shift:.4g}, or take "
            'channel.fading.time = "independent", which such rounds are'
        )


def require_knowledge(
    knowledge: PerfectKnowledge | Estimated | Delayed | Quantised | Statistics,
    fading: Rayleigh | Rician | Nakagami | NoFading,
) -> None:
    """Raise ``ValueError`` if this knowledge of such fading cannot be."""
    if isinstance(knowledge, Quantised) and not knowledge.lowest_db < knowledge.highest_db:
        raise ValueError(
            f"channel.knowledge.highest_db = {knowledge.highest_db:g} must be above lowest_db = "
            f"{knowledge.lowest_db:g}"
        )
    if not isinstance(knowledge, Estimated | Delayed):
        return
    if isinstance(fading, Nakagami):
        raise ValueError(
            f"channel.knowledge = {knowledge.kind} needs amplitudes, and nakagami has only powers: "
            "set channel.fading to rayleigh or rician, or channel.knowledge to quantised or "
            "statistics"
        )
    if isinstance(knowledge, Delayed):
        _require_doppler(knowledge, fading)


def _require_doppler(knowledge: Delayed, fading: Rayleigh | Rician | NoFading) -> None:
    """The Doppler shift must come from one place."""
    over_time = not isinstance(fading, NoFading) and isinstance(fading.time, Jakes)
    for name in ("carrier_hz", "speed_m_s"):
        given = getattr(knowledge, name) is not None
        if over_time and given:
            raise ValueError(
                f"channel.knowledge.{name} is that of channel.fading.time: leave it out"
            )
        if not over_time and not given:
            raise ValueError(
                f"channel.knowledge.{name} is missing: it is needed unless channel.fading.time is "
                "jakes"
            )
