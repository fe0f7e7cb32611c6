"""Where the UEs are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import scenario


@dataclass(frozen=True)
class UniformDisc:
    """Uniform by area in a disc around the access point at (0, 0)."""

    radius_m: float

    def draw(self, ues: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Positions ``[ue, (x, y)]`` in metres."""
        distance = self.radius_m * np.sqrt(rng.random(ues))
        angle = 2.0 * np.pi * rng.random(ues)
        return np.stack((distance * np.cos(angle), distance * np.sin(angle)), axis=1)


def make_placement(settings: scenario.Disc) -> UniformDisc:
    """The placement that a scenario describes."""
    return UniformDisc(settings.radius_m)
