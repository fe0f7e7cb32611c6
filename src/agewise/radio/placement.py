"""Where the UEs are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.elementary import circle_each


@dataclass(frozen=True)
class UniformDisc:
    """Uniform by area in a disc around the access point at (0, 0)."""

    radius_m: float

    def draw(self, ues: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Positions ``[ue, (x, y)]`` in metres."""
        distance = self.radius_m * np.sqrt(rng.random(ues))
        return np.asarray(distance[:, np.newaxis] * circle_each(rng.random(ues)))


def make_placement(settings: scenario.Disc) -> UniformDisc:
    """The placement that a scenario describes."""
    return UniformDisc(settings.radius_m)
