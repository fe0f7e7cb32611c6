"""Where the UEs are and how strong their channels: placement, path loss, fading, traces."""

from agewise.radio.channel import CellChannel, Channel
from agewise.radio.pathloss import mean_gains, power_budget, power_law
from agewise.radio.placement import uniform_in_disc
from agewise.radio.traces import read_ages, read_gains

__all__ = [
    "CellChannel",
    "Channel",
    "mean_gains",
    "power_budget",
    "power_law",
    "read_ages",
    "read_gains",
    "uniform_in_disc",
]
