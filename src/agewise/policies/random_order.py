"""Uniformly random scheduling."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.scheduling import Policy, RoundView
from agewise.spectrum import InOrder, Packing


@dataclass(frozen=True, kw_only=True)
class Random(Policy):
    """UEs in an order drawn afresh each round, as many as the spectrum serves."""

    name: ClassVar[str] = "random"
    equation: ClassVar[str] = "U_k ~ uniform(0, 1]"
    packing: Packing = InOrder()

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw uniformly from (0, 1]."""
        return 1.0 - rng.random(view.ue_count)
