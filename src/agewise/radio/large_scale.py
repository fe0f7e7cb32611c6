"""What of a channel outlasts a block: where the UEs are, in whose sight, and their mean gains."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LargeScale:
    """The large scale of a channel in one round, around which fading varies the gains.

    ``positions_m[ue, (x, y)]`` with the access point at (0, 0), ``mean_gains[ue]`` as SNR per unit
    of power, ``line_of_sight[ue]``, and ``speed_m_s[ue]``, 0 where nothing moves.
    """

    positions_m: NDArray[np.float64]
    mean_gains: NDArray[np.float64]
    line_of_sight: NDArray[np.bool_]
    speed_m_s: NDArray[np.float64]

    @classmethod
    def still(
        cls, positions_m: NDArray[np.float64], mean_gains: NDArray[np.float64]
    ) -> "LargeScale":
        """UEs that stay where they are, and of whose line of sight nothing is known."""
        ues = mean_gains.size
        return cls(positions_m, mean_gains, np.zeros(ues, np.bool_), np.zeros(ues))

    def at(self, t: int) -> Self:  # noqa: ARG002
        """The same in every round: a large scale that never changes is its own `Places`."""
        return self


class Places(Protocol):
    """The large scale of any round in any order, reproducibly."""

    def at(self, t: int) -> LargeScale:
        """Round ``t``, whatever was asked before."""
        ...
