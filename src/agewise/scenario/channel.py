"""The radio side of a scenario: the cell and its channel."""

from typing import Annotated, Literal

from pydantic import Field

from agewise.part import LARGE, MOST, MOST_DB, ByName, Part
from agewise.scenario.fading import Fading, Knowledge, PerfectKnowledge
from agewise.scenario.geometry import Mobility, NoMobility, Placement
from agewise.scenario.propagation import (
    Interference,
    NoInterference,
    NoShadowing,
    PathLoss,
    Shadowing,
)


class Cell(Part):
    """The access point's surroundings."""

    ues: int = Field(ge=1, le=MOST, description="K, the number of UEs")
    subchannels: int = Field(ge=1, le=MOST, description="N, the number of subchannels")
    subchannel_bandwidth_hz: float | None = Field(
        default=None,
        ge=1e-3,
        le=1e15,
        description="bandwidth of one subchannel in Hz; needed by a link budget, by a payload and "
        "by the taps of a delay profile",
    )


class EdgeSnr(Part):
    """Gains are scaled to give a mean SNR at the edge of the cell; power is in units of P_TX."""

    kind: Literal["edge-snr"] = "edge-snr"
    edge_snr_db: float = Field(
        ge=-MOST_DB,
        le=MOST_DB,
        description="mean SNR in dB at the cell edge with all power on one subchannel",
    )


class LinkBudget(Part):
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


class ModelledChannel(Part):
    """A channel made of parts: places, path loss, fading, the scale of the gains, and more."""

    kind: Literal["model"] = "model"
    placement: Placement = Field(description="where the UEs are")
    path_loss: PathLoss = Field(description="how the mean gain falls with the distance")
    fading: Fading = Field(description="how gains vary around their means")
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
    knowledge: Knowledge = Field(
        default=PerfectKnowledge(), description="what the access point knows of the gains"
    )
