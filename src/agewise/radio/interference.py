"""What neighbouring cells add to the noise."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.interference import draw_interferers
from agewise.core.mobility import Area
from agewise.radio.large_scale import Surroundings
from agewise.units import db_to_linear


@dataclass(frozen=True)
class LevelRise:
    """The same rise of the noise on all subchannels in all rounds."""

    rise: float

    def over_noise(self, t: int, subchannels: int) -> NDArray[np.float64]:
        """``[subchannel]``: interference and noise over noise alone."""
        return np.full(subchannels, self.rise)


@dataclass(frozen=True, eq=False)
class CellsRise:
    """In each round and on each subchannel, at most one UE of each neighbouring cell.

    It is uniform in its cell, meets the same surroundings as the own UEs, and Rayleigh fading.
    """

    key: np.uint64
    sites_m: NDArray[np.float64]
    cell: Area
    load: float
    power: float
    surroundings: Surroundings

    def over_noise(self, t: int, subchannels: int) -> NDArray[np.float64]:
        """``[subchannel]``: interference and noise over noise alone."""
        links = draw_interferers(self.key, t, subchannels, self.sites_m, self.cell, self.load)
        positions, fading, subchannel = links
        rise = np.ones(subchannels)
        if subchannel.size:
            gains, _ = self.surroundings.mean_gains(positions)
            rise += np.bincount(subchannel, self.power * gains * fading, subchannels)
        return rise


Interference = LevelRise | CellsRise


def make_interference(
    settings: scenario.InterferenceKind, surroundings: Surroundings, key: np.uint64
) -> Interference | None:
    """The interference that a scenario describes; ``None`` for none."""
    if isinstance(settings, scenario.NoInterference):
        return None
    if isinstance(settings, scenario.LevelInterference):
        return LevelRise(db_to_linear(settings.rise_db))
    distance_m = settings.inter_site_distance_m
    return CellsRise(
        key=key,
        sites_m=neighbour_sites(distance_m, settings.tiers),
        cell=Area(0.0, distance_m / math.sqrt(3.0), distance_m / 2.0),
        load=settings.load,
        power=settings.power_share * surroundings.scale.power_budget,
        surroundings=surroundings,
    )


def neighbour_sites(distance_m: float, tiers: int) -> NDArray[np.float64]:
    """``[site, (x, y)]``: the rings of a hexagonal grid around (0, 0)."""
    steps = range(-tiers, tiers + 1)
    sites = [
        (distance_m * (a + 0.5 * b), distance_m * math.sqrt(3.0) / 2.0 * b)
        for a in steps
        for b in steps
        if (a, b) != (0, 0) and abs(a + b) <= tiers
    ]
    return np.array(sites)
