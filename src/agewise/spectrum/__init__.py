"""From gains to a feasible allocation: water-filling (Algorithm 1), packing (Algorithm 2).

`solve` gives the optimum of problem (3) that Algorithm 2 approximates, and `least_mean_age` what
no schedule of many blocks is below.
"""

from agewise.spectrum.age_bound import count_needs, least_mean_age, needs_to_deliver
from agewise.spectrum.allocation import Allocation, InfeasibleAllocation
from agewise.spectrum.exact import Exact, Optimum, solve
from agewise.spectrum.packing import Auction, Greedy, InOrder, Packing, fill
from agewise.spectrum.uplink import Uplink
from agewise.spectrum.waterfill import WaterFilling, fewest_subchannels, waterfill

__all__ = [
    "Allocation",
    "Auction",
    "Exact",
    "Greedy",
    "InOrder",
    "InfeasibleAllocation",
    "Optimum",
    "Packing",
    "Uplink",
    "WaterFilling",
    "count_needs",
    "fewest_subchannels",
    "fill",
    "least_mean_age",
    "needs_to_deliver",
    "solve",
    "waterfill",
]
