"""From gains to a feasible allocation: water-filling (Algorithm 1), packing (Algorithm 2).

`solve` gives the optimum of problem (3) that Algorithm 2 approximates.
"""

from agewise.spectrum.allocation import Allocation, InfeasibleAllocation
from agewise.spectrum.exact import Optimum, solve
from agewise.spectrum.pack import auction, fill, pack
from agewise.spectrum.uplink import Uplink
from agewise.spectrum.waterfill import WaterFilling, fewest_subchannels, waterfill

__all__ = [
    "Allocation",
    "InfeasibleAllocation",
    "Optimum",
    "Uplink",
    "WaterFilling",
    "auction",
    "fewest_subchannels",
    "fill",
    "pack",
    "solve",
    "waterfill",
]
