"""How gains vary around their means."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.fading import fade
from agewise.radio.large_scale import LargeScale
from agewise.random import Streams


@dataclass(frozen=True)
class RayleighFading:
    """Rayleigh block fading: exponential gains, independent over rounds, UEs and subchannels."""

    key: np.uint64

    def gains(self, t: int, large: LargeScale, subchannels: int) -> NDArray[np.float64]:
        """``float64[ue, subchannel]`` of round ``t``, whatever was drawn before."""
        gains = np.empty((large.mean_gains.size, subchannels))
        fade(self.key, t, large.mean_gains, gains)
        return gains


@dataclass(frozen=True)
class Unfaded:
    """Gains stay at their means."""

    def gains(
        self,
        t: int,  # noqa: ARG002
        large: LargeScale,
        subchannels: int,
    ) -> NDArray[np.float64]:
        """``float64[ue, subchannel]``, the same wherever the mean gains are."""
        return np.repeat(large.mean_gains[:, np.newaxis], subchannels, axis=1)


Fading = RayleighFading | Unfaded


def make_fading(settings: scenario.Rayleigh | scenario.NoFading, streams: Streams) -> Fading:
    """The fading that a scenario describes."""
    if isinstance(settings, scenario.NoFading):
        return Unfaded()
    return RayleighFading(streams.channel)
