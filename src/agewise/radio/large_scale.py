"""What of a channel outlasts a block: where the UEs are, in whose sight, and their mean gains."""

from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from agewise.core.propagation import ratios_each
from agewise.radio.mobility import Mobility
from agewise.radio.path_loss import EdgeScale, NoiseScale, PathLoss, StandardLoss
from agewise.radio.shadowing import HIDDEN, INDOOR, SEEN, Shadowing
from agewise.radio.sight import Sight

_Floats = NDArray[np.float64]
#: What the walls of a building take, and each metre inside (TR 38.901, table 7.4.3-3).
_WALL_DB, _INSIDE_DB_M, _DEEPEST_M = 20.0, 0.5, 25.0


@dataclass(frozen=True, eq=False)
class LargeScale:
    """The large scale of a channel in one round, around which fading varies the gains.

    ``positions_m[ue, (x, y)]`` with the access point at (0, 0), ``mean_gains[ue]`` as SNR per unit
    of power, ``line_of_sight[ue]``, and ``speed_m_s[ue]``, 0 where nothing moves.
    """

    positions_m: _Floats
    mean_gains: _Floats
    line_of_sight: NDArray[np.bool_]
    speed_m_s: _Floats

    @classmethod
    def still(cls, positions_m: _Floats, mean_gains: _Floats) -> "LargeScale":
        """UEs that stay where they are, and of whose line of sight nothing is known."""
        ues = mean_gains.size
        return cls(positions_m, mean_gains, np.zeros(ues, np.bool_), np.zeros(ues))

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.mean_gains.size

    def at(self, t: int) -> Self:  # noqa: ARG002
        """The same in every round: a large scale that never changes is its own `Places`."""
        return self


class Places(Protocol):
    """The large scale of any round in any order, reproducibly."""

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        ...

    def at(self, t: int) -> LargeScale:
        """Round ``t``, whatever was asked before."""
        ...


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a place means: its sight, path loss and shadowing, and the SNR that comes of them."""

    loss: PathLoss
    scale: EdgeScale | NoiseScale
    sight: Sight | None = None
    shadowing: Shadowing | None = None

    def mean_gains(
        self, positions_m: _Floats, indoor_loss_db: _Floats | None = None
    ) -> tuple[_Floats, NDArray[np.bool_]]:
        """SNR per unit of power and line of sight at ``positions_m[place, (x, y)]``.

        ``indoor_loss_db[place]`` is what walls take, 0 outdoors; nobody indoors is in sight.
        """
        x, y = positions_m[:, 0], positions_m[:, 1]
        distance_m = np.sqrt(x * x + y * y)
        if isinstance(self.loss, StandardLoss) and self.sight is not None:
            seen = self.sight.seen(positions_m, distance_m)
            gains = self.loss.gain(distance_m, seen)
        elif isinstance(self.loss, StandardLoss):
            raise TypeError("a path loss of TR 38.901 needs to know who is in sight")
        else:
            seen = np.zeros(distance_m.size, np.bool_)
            gains = self.loss.gain(distance_m)
        gains = self.scale.snr_per_power(gains)
        state = np.where(seen, SEEN, HIDDEN)
        lost_db = None
        if indoor_loss_db is not None:
            state[indoor_loss_db > 0.0] = INDOOR
            lost_db = indoor_loss_db
        if self.shadowing is not None:
            shadow_db = self.shadowing.loss_db(positions_m, state)
            lost_db = shadow_db if lost_db is None else lost_db + shadow_db
        if lost_db is not None:
            gains = gains * ratios_each(-lost_db)
        return gains, state == SEEN

    def large_scale(
        self, positions_m: _Floats, speed_m_s: _Floats, indoor_loss_db: _Floats | None
    ) -> LargeScale:
        """The large scale of UEs at these places."""
        gains, seen = self.mean_gains(positions_m, indoor_loss_db)
        return LargeScale(positions_m, gains, seen, speed_m_s)


@dataclass(eq=False)
class MovingPlaces:
    """UEs on the move through their surroundings; the last round that was asked is kept."""

    mobility: Mobility
    surroundings: Surroundings
    ue_count: int
    indoor_loss_db: _Floats | None = None
    _last: tuple[int, LargeScale] | None = field(default=None, init=False)

    def at(self, t: int) -> LargeScale:
        """Round ``t``, whatever was asked before."""
        last = self._last
        if last is None or last[0] != t:
            motion = self.mobility.at(t)
            last = (t, self.surroundings.large_scale(*motion, self.indoor_loss_db))
            self._last = last
        return last[1]


def draw_indoor_loss_db(ues: int, share: float, rng: np.random.Generator) -> _Floats | None:
    """``[ue]``: what walls take of UEs in buildings, 0 of the others; ``None`` if all are out."""
    if share == 0.0:
        return None
    indoor, depth_m = rng.random(ues) < share, _DEEPEST_M * rng.random(ues)
    return np.where(indoor, _WALL_DB + _INSIDE_DB_M * depth_m, 0.0)
