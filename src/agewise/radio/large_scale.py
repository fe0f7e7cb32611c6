"""What of a channel outlasts a block: where the UEs are, in whose sight, and their mean gains."""

import functools
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from agewise.core.large_scale import Terrain, mean_gains
from agewise.core.propagation import ratios_each
from agewise.radio.fields import GaussianField
from agewise.radio.mobility import Mobility
from agewise.radio.path_loss import EdgeScale, NoiseScale, PathLoss, PowerLawLoss, StandardLoss
from agewise.radio.shadowing import Shadowing

_Floats = NDArray[np.float64]
#: What the walls of a building take, and each metre inside (TR 38.901, table 7.4.3-3).
_WALL_DB, _INSIDE_DB_M, _DEEPEST_M = 20.0, 0.5, 25.0
_OUTDOORS = np.empty(0)


class LargeScale(NamedTuple):
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

    def at(self, t: int) -> Self:
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
    """What a place means: its sight, path loss and shadowing, and the SNR that comes of them.

    A path loss of TR 38.901 needs a field of ``sight``: neighbours, and a UE on its way, share
    whether they are in sight.
    """

    loss: PathLoss
    scale: EdgeScale | NoiseScale
    sight: GaussianField | None = None
    shadowing: Shadowing | None = None

    def mean_gains(
        self, positions_m: _Floats, indoor_loss_db: _Floats | None = None
    ) -> tuple[_Floats, NDArray[np.bool_]]:
        """SNR per unit of power and line of sight at ``positions_m[place, (x, y)]``.

        ``indoor_loss_db[place]`` is what walls take, 0 outdoors; nobody indoors is in sight.
        """
        if isinstance(self.loss, PowerLawLoss):
            x, y = positions_m[:, 0], positions_m[:, 1]
            gains = self.scale.snr_per_power(self.loss.gain(np.sqrt(x * x + y * y)))
            if self.shadowing is not None:
                gains = gains * ratios_each(-self.shadowing.hidden_db(positions_m))
            return gains, np.zeros(gains.size, np.bool_)
        walls_db = _OUTDOORS if indoor_loss_db is None else indoor_loss_db
        found: tuple[_Floats, NDArray[np.bool_]] = mean_gains(*self._terrain, positions_m, walls_db)
        return found

    @functools.cached_property
    def _terrain(self) -> tuple[_Floats, _Floats]:
        """Numbers and fields by which the kernel works for a path loss of TR 38.901."""
        if not isinstance(self.loss, StandardLoss):
            raise TypeError("only a path loss of TR 38.901 has a terrain")
        if self.sight is None or not isinstance(self.scale, NoiseScale):
            raise TypeError("a path loss of TR 38.901 needs a field of sight and a link budget")
        fields, sigma_db = [self.sight], (0.0, 0.0, 0.0)
        if self.shadowing is not None:
            fields += self.shadowing.fields
            sigma_db = self.shadowing.sigma_db
        waves = np.stack([field.waves for field in fields])
        loss, chance = self.loss.loss, self.loss.chance
        return Terrain(loss, chance, waves, sigma_db, self.scale.noise_w).numbers(), waves

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
