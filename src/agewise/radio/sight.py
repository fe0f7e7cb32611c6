"""Where the access point is in line of sight (3GPP TR 38.901, tables 7.4.2-1 and 7.6.3.1-2)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise.core.elementary import exp_each, log1p_each
from agewise.core.propagation import normal_cdf_each
from agewise.radio.fields import GaussianField
from agewise.scenario import IndoorFactory

_Floats = NDArray[np.float64]
Chance = Callable[[_Floats], _Floats]


@dataclass(frozen=True, eq=False)
class Sight:
    """Line of sight by a correlated field: neighbours, and a UE on its way, share their sight."""

    chance: Chance
    field: GaussianField

    def seen(self, positions_m: _Floats, distance_m: _Floats) -> NDArray[np.bool_]:
        """``bool[place]``: who is in line of sight, each with the chance of its distance."""
        uniform = normal_cdf_each(self.field.at(positions_m))
        return np.asarray(uniform < self.chance(distance_m))


def urban(fall_m: float) -> Chance:
    """Streets: certain to 18 m, then falling with this distance."""

    def chance(distance_m: _Floats) -> _Floats:
        near = 18.0 / np.maximum(distance_m, 18.0)
        return np.asarray(near + exp_each(-distance_m / fall_m) * (1.0 - near))

    return chance


def open_office(distance_m: _Floats) -> _Floats:
    """An office of one large room."""
    middle = exp_each(-np.maximum(distance_m - 5.0, 0.0) / 70.8)
    far = 0.54 * exp_each(-np.maximum(distance_m - 49.0, 0.0) / 211.7)
    return np.asarray(np.where(distance_m <= 49.0, middle, far))


def mixed_office(distance_m: _Floats) -> _Floats:
    """An office of rooms, corridors and open places."""
    middle = exp_each(-np.maximum(distance_m - 1.2, 0.0) / 4.7)
    far = 0.32 * exp_each(-np.maximum(distance_m - 6.5, 0.0) / 32.6)
    return np.asarray(np.where(distance_m < 6.5, middle, far))


def factory(clear_m: float) -> Chance:
    """A hall, in which sight falls with this distance."""

    def chance(distance_m: _Floats) -> _Floats:
        return np.asarray(exp_each(-distance_m / clear_m))

    return chance


def clear_distance_m(settings: IndoorFactory) -> float:
    """The distance in a hall at which the chance of line of sight falls to 1/e."""
    clear_m = -settings.clutter_size_m / float(log1p_each(np.array([-settings.clutter_density]))[0])
    if settings.hall in ("sl", "dl"):
        return clear_m
    over = settings.access_point_height_m - settings.ue_height_m
    return clear_m * over / (settings.clutter_height_m - settings.ue_height_m)
