"""A policy of your own in a few lines, compared with the paper's on the same random numbers.

It serves the UEs by the product of age and best gain, as a weight for the packing.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import agewise
from agewise import Allocation, Policy, RoundView
from agewise.spectrum import pack


@dataclass(frozen=True)
class AgeTimesGain(Policy):
    """High age and high gain first."""

    name: ClassVar[str] = "age-times-gain"
    power: float = 0.5

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack by age times a power of the best gain; ties by chance."""
        weights = view.ages * view.uplink.best_gains**self.power
        return pack(view.uplink, weights, rng.permutation(view.ue_count))


scenario = agewise.Scenario.preset("paper").with_(
    **{"data.dataset": "synthetic", "run.rounds": 30, "cell.ues": 40, "cell.subchannels": 10}
)
result = agewise.compare(scenario, ["age-based", "max-pack", AgeTimesGain()], seeds=4)
print(result.table())
