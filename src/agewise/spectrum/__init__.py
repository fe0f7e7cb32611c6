"""From gains to a feasible allocation: water-filling (Algorithm 1), packing (Algorithm 2)."""

from agewise.spectrum.allocation import Allocation, InfeasibleAllocation
from agewise.spectrum.pack import fill, pack
from agewise.spectrum.uplink import Uplink
from agewise.spectrum.waterfill import WaterFilling, fewest_subchannels, waterfill

__all__ = [
    "Allocation",
    "InfeasibleAllocation",
    "Uplink",
    "WaterFilling",
    "fewest_subchannels",
    "fill",
    "pack",
    "waterfill",
]
