"""What the access point sees of the gains that the uploads will meet."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.radio.fading import Fading, Staleness, bessel_j0
from agewise.radio.large_scale import LargeScale
from agewise.random import Streams
from agewise.scenario.fading import doppler_hz
from agewise.units import db_to_linear

_Gains = NDArray[np.float64]


class Knowledge(Protocol):
    """What is seen of a channel, whose fading it asks for the truth."""

    def seen_and_true(
        self, fading: Fading, t: int, large: LargeScale, subchannels: int
    ) -> tuple[_Gains, _Gains]:
        """Gains ``float64[ue, subchannel]`` as they are seen, and as the uploads meet them."""
        ...


@dataclass(frozen=True)
class PerfectKnowledge:
    """What is seen is true: one array."""

    def seen_and_true(
        self, fading: Fading, t: int, large: LargeScale, subchannels: int
    ) -> tuple[_Gains, _Gains]:
        """The gains, twice."""
        gains = fading.gains(t, large, subchannels)
        return gains, gains


@dataclass(frozen=True)
class StaleKnowledge:
    """Estimated in noise, or measured before the upload: seen and true are correlated."""

    staleness: Staleness

    def seen_and_true(
        self, fading: Fading, t: int, large: LargeScale, subchannels: int
    ) -> tuple[_Gains, _Gains]:
        """Gains of the same mean, whose amplitudes share what the correlation says."""
        return fading.seen_and_true(t, large, subchannels, self.staleness)


@dataclass(frozen=True, eq=False)
class QuantisedKnowledge:
    """The highest of the ``levels`` that a gain reaches, in units of the mean gain; 0 if none."""

    levels: _Gains

    def seen_and_true(
        self, fading: Fading, t: int, large: LargeScale, subchannels: int
    ) -> tuple[_Gains, _Gains]:
        """The gains rounded down, so that no upload is lost by it."""
        true = fading.gains(t, large, subchannels)
        means = large.mean_gains[:, np.newaxis]
        steps = np.append(0.0, self.levels)
        reached = np.searchsorted(self.levels, true / means, side="right")
        return np.minimum(steps[reached] * means, true), true


@dataclass(frozen=True)
class StatisticalKnowledge:
    """Only the mean gains are seen, the same on all subchannels."""

    def seen_and_true(
        self, fading: Fading, t: int, large: LargeScale, subchannels: int
    ) -> tuple[_Gains, _Gains]:
        """The mean gains and the gains."""
        seen = np.repeat(large.mean_gains[:, np.newaxis], subchannels, axis=1)
        return seen, fading.gains(t, large, subchannels)


def make_knowledge(settings: scenario.fading.Knowledge, streams: Streams) -> Knowledge:
    """The knowledge that a scenario describes."""
    key = streams.knowledge
    if isinstance(settings, scenario.Estimated):
        snr = db_to_linear(settings.pilot_snr_db)
        return StaleKnowledge(Staleness(key, math.sqrt(snr / (1.0 + snr))))
    if isinstance(settings, scenario.Delayed):
        # Without a Doppler shift of its own it is that of the fading, which goes back in time.
        phase = 2.0 * math.pi * doppler_hz(settings) * settings.delay_s
        return StaleKnowledge(Staleness(key, bessel_j0(phase), settings.delay_s))
    if isinstance(settings, scenario.Quantised):
        lowest, highest = settings.lowest_db, settings.highest_db
        steps = max(1, 2**settings.bits - 2)
        levels_db = (lowest + (highest - lowest) * i / steps for i in range(2**settings.bits - 1))
        return QuantisedKnowledge(np.array([db_to_linear(level) for level in levels_db]))
    return (
        StatisticalKnowledge() if isinstance(settings, scenario.Statistics) else PerfectKnowledge()
    )
