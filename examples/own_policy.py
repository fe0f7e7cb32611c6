"""A policy of your own in a few lines, compared with the paper's on the same random numbers.

It values a UE by the product of its age and a power of its best gain.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import agewise
from agewise import Policy, RoundView


@dataclass(frozen=True)
class AgeTimesGain(Policy):
    """High age and high gain first."""

    name: ClassVar[str] = "age-times-gain"
    power: float = 0.5

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Multiply the age by a power of the best gain."""
        return view.ages * view.uplink.best_gains**self.power


scenario = agewise.Scenario.preset("paper").with_(
    **{"data.dataset": "synthetic", "run.rounds": 30, "cell.ues": 40, "cell.subchannels": 10}
)
result = agewise.compare(scenario, ["age-based", "max-pack", AgeTimesGain()], seeds=4)
print(result.table())
