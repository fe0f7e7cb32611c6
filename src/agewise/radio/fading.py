"""How the gains vary around their means."""

import numpy as np
from numpy.typing import NDArray


def rayleigh(ues: int, subchannels: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Power gains ``[ue, subchannel]`` of i.i.d. Rayleigh fading: exponential, of mean 1."""
    return rng.standard_exponential((ues, subchannels))
