"""The channel of a cell, block by block."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise.core.fading import fade
from agewise.radio.pathloss import mean_gains
from agewise.radio.placement import uniform_in_disc
from agewise.random import Streams

if TYPE_CHECKING:  # pydantic takes a while to import, and not every user needs scenarios
    from agewise import scenario as settings
    from agewise.scenario import Cell


class Channel(Protocol):
    """Gains of every UE on every subchannel, for any round in any order."""

    def gains(self, t: int) -> NDArray[np.float64]:
        """``float64[ue, subchannel]`` of round ``t``: SNR per unit of power."""
        ...


@dataclass(frozen=True, eq=False)
class CellChannel:
    """UEs at fixed places in a disc, power-law path loss, Rayleigh block fading.

    ``positions_m[ue, (x, y)]`` and ``mean_gains[ue]`` stay for the whole run; the fading is
    drawn anew, independently, for each round, UE and subchannel.
    """

    positions_m: NDArray[np.float64]
    mean_gains: NDArray[np.float64]
    subchannels: int
    streams: Streams

    @classmethod
    def of(cls, cell: "Cell", channel: "settings.Channel", streams: Streams) -> "CellChannel":
        """The channel of one run: the places of the UEs follow from the seed."""
        positions = uniform_in_disc(cell.ues, cell.radius_m, streams.placement())
        distance = np.hypot(positions[:, 0], positions[:, 1])
        means = mean_gains(distance, channel, cell.radius_m)
        return cls(positions, means, cell.subchannels, streams)

    def gains(self, t: int) -> NDArray[np.float64]:
        """``float64[ue, subchannel]`` of round ``t``, whatever was drawn before."""
        gains = np.empty((self.mean_gains.size, self.subchannels))
        fade(self.streams.channel, t, self.mean_gains, gains)
        return gains
