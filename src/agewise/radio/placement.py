"""Where the UEs stand."""

import numpy as np
from numpy.typing import NDArray


def uniform_in_disc(count: int, radius_m: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Positions ``[ue, (x, y)]`` in metres, uniform by area around the access point at (0, 0)."""
    distance = radius_m * np.sqrt(rng.random(count))
    angle = 2.0 * np.pi * rng.random(count)
    return np.stack((distance * np.cos(angle), distance * np.sin(angle)), axis=1)
