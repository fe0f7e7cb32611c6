"""The cell, what one run asks of its channel, and the link budget that turns gains into SNR."""

from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from agewise.part import MOST, Decibels, Part
from agewise.radio.path_loss import PathLoss
from agewise.random import Streams
from agewise.units import db_to_linear, dbm_to_watt


class Cell(Part):
    """The access point's UEs and subchannels."""

    ues: int = Field(ge=1, le=MOST, description="K, the number of UEs")
    subchannels: int = Field(ge=1, le=MOST, description="N, the number of subchannels")
    subchannel_bandwidth_hz: float | None = Field(
        default=None,
        ge=1e-3,
        le=1e15,
        description="bandwidth of one subchannel in Hz; needed by a link budget, by a payload and "
        "by the taps of a delay profile",
    )


class RunContext(NamedTuple):
    """Run of a channel: its cell, its rounds and its streams.

    Parts make their state of it (``prepare``); a part of the user's own that has no ``prepare``
    is handed the context itself. ``streams.own(name, t)`` is where such a part draws from.
    """

    cell: Cell
    rounds: int
    round_s: float | None
    streams: Streams


class Link(Part):
    """Scale of the gains: what turns path loss into SNR per unit of power."""

    kind: str = ""

    @property
    def power_budget(self) -> float:
        """P_TX, each UE's power over all subchannels, in the unit that the gains are per."""
        return 1.0

    def scale(self, path_loss: PathLoss, edge_m: float, bandwidth_hz: float) -> float:
        """Return the SNR per unit of power of a UE without path loss."""
        raise self.lacks("scale")


class EdgeSnr(Link):
    """Gains are scaled to give a mean SNR at the edge of the cell; power is in units of P_TX."""

    kind: Literal["edge-snr"] = "edge-snr"
    edge_snr_db: Decibels = Field(
        description="mean SNR in dB at the cell edge with all power on one subchannel"
    )

    def scale(self, path_loss: PathLoss, edge_m: float, bandwidth_hz: float) -> float:
        """Return the SNR of a UE without path loss, if that of one at the edge is as given."""
        edge_gain = path_loss.gain(np.array([edge_m]), np.zeros(1, np.bool_))
        return db_to_linear(self.edge_snr_db) / float(edge_gain[0])


class LinkBudget(Link):
    """Gains follow from path loss, transmit power and noise, in physical units."""

    kind: Literal["budget"] = "budget"
    transmit_power_dbm: Decibels = Field(
        description="P_TX in dBm, each UE's power over all subchannels"
    )
    noise_density_dbm_hz: Decibels = Field(
        description="noise power density in dBm/Hz, -174 at 290 K"
    )
    noise_figure_db: Decibels = Field(ge=0, description="noise figure of the access point in dB")

    @property
    def power_budget(self) -> float:
        """P_TX in watts."""
        return dbm_to_watt(self.transmit_power_dbm)

    def noise_w(self, bandwidth_hz: float) -> float:
        """Return the noise power of one subchannel in watts."""
        return bandwidth_hz * dbm_to_watt(self.noise_density_dbm_hz + self.noise_figure_db)

    def scale(self, path_loss: PathLoss, edge_m: float, bandwidth_hz: float) -> float:
        """Return one over the noise power of one subchannel in watts."""
        return 1.0 / self.noise_w(bandwidth_hz)
