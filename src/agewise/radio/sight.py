"""Where the access point is in line of sight (3GPP TR 38.901, tables 7.4.2-1 and 7.6.3.1-2)."""

from typing import Final

import numpy as np

from agewise.core.elementary import log1p_each
from agewise.core.large_scale import Chance
from agewise.scenario import IndoorFactory

#: An office of one large room.
OPEN_OFFICE: Final = Chance(5.0, 70.8, turn_m=49.0, far_share=0.54, far_fall_m=211.7)
#: An office of rooms, corridors and open places.
MIXED_OFFICE: Final = Chance(1.2, 4.7, turn_m=6.5, far_share=0.32, far_fall_m=32.6)


def urban(fall_m: float) -> Chance:
    """Streets: certain to 18 m, then falling with this distance."""
    return Chance(0.0, fall_m, street_m=18.0)


def factory(clear_m: float) -> Chance:
    """A hall, in which sight falls with this distance."""
    return Chance(0.0, clear_m)


def clear_distance_m(settings: IndoorFactory) -> float:
    """The distance in a hall at which the chance of line of sight falls to 1/e."""
    clear_m = -settings.clutter_size_m / float(log1p_each(np.array([-settings.clutter_density]))[0])
    if settings.hall in ("sl", "dl"):
        return clear_m
    over = settings.access_point_height_m - settings.ue_height_m
    return clear_m * over / (settings.clutter_height_m - settings.ue_height_m)
