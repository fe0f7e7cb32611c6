"""The large scale of a channel, which outlasts a block: places, line of sight, mean gains."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.core.propagation import normal_cdf_each, ratios_each
from agewise.part import State, given
from agewise.radio.cell import Link, RunContext
from agewise.radio.path_loss import PathLoss
from agewise.radio.shadowing import LOS, NLOS, O2I, GaussianField, Shadowing

_Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]
#: What the walls of a building take, each metre inside, and most metres (TR 38.901, table 7.4.3-3).
_WALL_DB, _INSIDE_DB_M, _DEEPEST_M = 20.0, 0.5, 25.0


class LargeScale(NamedTuple):
    """Large-scale parameters of the UEs in one round, around which fading varies the gains.

    ``positions_m[ue, (x, y)]`` with the access point at (0, 0), ``mean_gains[ue]`` as SNR per unit
    of power, and ``line_of_sight[ue]``. ``positions_before(seconds)`` follows the UEs back along
    their ways.
    """

    positions_m: _Floats
    mean_gains: _Floats
    line_of_sight: _Flags
    positions_before: Callable[[float], _Floats]


class Environment(NamedTuple):
    """Propagation environment of one run: path loss, line of sight, shadowing, and the link.

    Neighbours, and a UE on its way, share whether they are in line of sight: ``los_field``.
    """

    path_loss: PathLoss
    los_field: GaussianField | None
    shadowing: Shadowing
    shadowing_state: State
    link: Link
    scale: float

    @classmethod
    def draw(
        cls, run: RunContext, path_loss: PathLoss, shadowing: Shadowing, link: Link, edge_m: float
    ) -> "Environment":
        """Draw the environment of one run; ``edge_m`` is the distance of the cell's edge."""
        length_m, field = path_loss.los_decorrelation_m, None
        if length_m is not None:
            field = GaussianField.draw(run.streams.los, 0, length_m)
        return cls(
            path_loss,
            field,
            shadowing,
            shadowing.prepare(run, path_loss),
            link,
            link.scale(path_loss, edge_m, run.cell.subchannel_bandwidth_hz or 0.0),
        )

    def mean_gains(
        self, positions_m: _Floats, depth_m: _Floats | None = None
    ) -> tuple[_Floats, _Flags]:
        """Return SNR per unit of power and line of sight at ``positions_m[place, (x, y)]``.

        ``depth_m[place]`` is how much of the way is inside a building, 0 outdoors. Nobody indoors
        is in line of sight, but the path loss is that of line of sight where the building is, by
        the way outside (d2D-out of TR 38.901), and of the whole way; walls add to it.
        """
        x, y = positions_m[:, 0], positions_m[:, 1]
        distance_m = np.sqrt(x * x + y * y)
        shape = distance_m.shape
        los, loss = np.zeros(shape, np.bool_), self.path_loss
        if self.los_field is not None:
            level = normal_cdf_each(self.los_field.at(positions_m))
            outside_m = distance_m if depth_m is None else np.maximum(distance_m - depth_m, 0.0)
            probability = loss.los_probability(outside_m)
            los = level < given(loss, "los_probability", probability, shape)
        gains = given(loss, "gain", loss.gain(distance_m, los), shape)
        condition = np.where(los, LOS, NLOS).astype(np.int8)
        if depth_m is not None:
            condition[depth_m > 0.0] = O2I
        lost_db = self.shadowing.loss_db(self.shadowing_state, positions_m, condition)
        lost_db = given(self.shadowing, "loss_db", lost_db, shape)
        if depth_m is not None:
            lost_db = lost_db + (_WALL_DB * (condition == O2I) + _INSIDE_DB_M * depth_m)
        return self.scale * gains * ratios_each(-lost_db), condition == LOS


def draw_depth_m(run: RunContext, o2i_share: float) -> _Floats | None:
    """Draw how deep in buildings UEs are, ``[ue]``, 0 outdoors; ``None`` if all are outdoors."""
    if o2i_share == 0.0:
        return None
    rng, ues = run.streams.indoor(), run.cell.ues
    return np.where(rng.random(ues) < o2i_share, _DEEPEST_M * rng.random(ues), 0.0)
