"""Uniformly random scheduling."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, fill


@dataclass(frozen=True)
class Random(Policy):
    """UEs in an order drawn afresh each round, as many as the spectrum serves."""

    name: ClassVar[str] = "random"

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Fill the spectrum in a random order."""
        return fill(view.uplink, rng.random(view.ue_count).argsort())
