"""The radio side of a scenario: the cell, its channel, and the rate that an upload needs."""

from typing import Annotated, Literal

from pydantic import Field

from agewise.scenario.geometry import Mobility, NoMobility, Placement
from agewise.scenario.propagation import (
    Interference,
    NoInterference,
    NoShadowing,
    PathLoss,
    Shadowing,
)
from agewise.scenario.section import LARGE, MOST, MOST_DB, ByName, Section

#: The highest rate threshold in bits: beyond it no SNR that is a number would do.
MOST_RATE = 1000.0


class Cell(Section):
    """The access point's surroundings."""

    ues: int = Field(ge=1, le=MOST, description="K, the number of UEs")
    subchannels: int = Field(ge=1, le=MOST, description="N, the number of subchannels")
    subchannel_bandwidth_hz: float | None = Field(
        default=None,
        ge=1e-3,
        le=1e15,
        description="bandwidth of one subchannel in Hz; needed by a link budget and by a payload",
    )


class Rayleigh(Section):
    """Rayleigh block fading, independent over rounds, UEs and subchannels."""

    kind: Literal["rayleigh"] = "rayleigh"


class NoFading(Section):
    """Gains stay at their means."""

    kind: Literal["none"] = "none"


class EdgeSnr(Section):
    """Gains are scaled to give a mean SNR at the edge of the cell; power is in units of P_TX."""

    kind: Literal["edge-snr"] = "edge-snr"
    edge_snr_db: float = Field(
        ge=-MOST_DB,
        le=MOST_DB,
        description="mean SNR in dB at the cell edge with all power on one subchannel",
    )


class LinkBudget(Section):
    """Gains follow from path loss, transmit power and noise, in physical units."""

    kind: Literal["budget"] = "budget"
    transmit_power_dbm: float = Field(
        ge=-MOST_DB, le=MOST_DB, description="P_TX in dBm, each UE's power over all subchannels"
    )
    noise_density_dbm_hz: float = Field(
        ge=-MOST_DB, le=MOST_DB, description="noise power density in dBm/Hz, -174 at 290 K"
    )
    noise_figure_db: float = Field(
        ge=0, le=MOST_DB, description="noise figure of the access point in dB"
    )


class ModelledChannel(Section):
    """A channel made of parts: places, path loss, fading, the scale of the gains, and more."""

    kind: Literal["model"] = "model"
    placement: Placement = Field(description="where the UEs are")
    path_loss: PathLoss = Field(description="how the mean gain falls with the distance")
    fading: Annotated[Rayleigh | NoFading, Field(discriminator="kind"), ByName] = Field(
        description="how gains vary around their means"
    )
    link: Annotated[EdgeSnr | LinkBudget, Field(discriminator="kind"), ByName] = Field(
        description="what turns path loss into SNR"
    )
    mobility: Mobility = Field(default=NoMobility(), description="how the UEs move")
    shadowing: Shadowing = Field(
        default=NoShadowing(), description="how mean gains vary between places"
    )
    interference: Interference = Field(
        default=NoInterference(), description="what neighbouring cells add to the noise"
    )
    round_s: float | None = Field(
        default=None,
        ge=1e-6,
        le=LARGE,
        description="seconds from one round to the next; needed where UEs move or fading is "
        "correlated over time",
    )


class RateThreshold(Section):
    """The rate that a scheduled UE must reach, as a number."""

    kind: Literal["rate"] = "rate"
    rate: float = Field(ge=0, le=MOST_RATE, description="R_s in bits per real channel use")


class PayloadThreshold(Section):
    """The rate that carries a payload by its deadline: payload / (2 bandwidth seconds)."""

    kind: Literal["payload"] = "payload"
    payload_bits: float = Field(gt=0, le=1e18, description="size of one update in bits")
    deadline_s: float = Field(ge=1e-12, le=LARGE, description="time for its upload in seconds")


class NoTiming(Section):
    """Local learning takes no time, and every upload of a scheduled UE arrives."""

    kind: Literal["none"] = "none"


class SlotTiming(Section):
    """An update counts if it was computed and uploaded by a deadline; times are in slots.

    An upload at exactly the rate threshold takes one slot.
    """

    kind: Literal["slots"] = "slots"
    compute_slots: float = Field(
        ge=0, le=LARGE, description="median time of local learning, in slots"
    )
    compute_sigma: float = Field(
        ge=0,
        le=20,
        description="deviation of that time's logarithm across UEs; 0 makes them equally fast",
    )
    deadline_slots: float = Field(gt=0, le=1e12, description="an update that takes longer is lost")
    offer: Literal["in-time", "everyone"] = Field(
        default="in-time",
        description="whom the access point offers to the policy: UEs whose upload at the rate "
        "threshold would be in time, or everyone",
    )


Threshold = Annotated[RateThreshold | PayloadThreshold, Field(discriminator="kind"), ByName]
Timing = Annotated[NoTiming | SlotTiming, Field(discriminator="kind"), ByName]
