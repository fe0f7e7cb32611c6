"""MaxPack: the paper's baseline, its special case of a constant f."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.scheduling import Policy, RoundView


@dataclass(frozen=True, kw_only=True)
class MaxPack(Policy):
    """As many UEs as fit: fewest subchannels needed first (after Yang, Jiang, Shi, Ding 2018).

    "Federated learning via over-the-air computation" selects the most UEs whose updates, added up
    in the air, arrive with an error below a bound, by sparse and low-rank optimisation over the
    beam of several antennas. Adapted, as in the paper of age-based scheduling, which calls this
    MaxPack: only the aim is kept, the largest number of UEs. Updates go over subchannels of their
    own at a rate threshold, and UEs are packed greedily by Algorithm 2 with equal utilities;
    ``packing="exact"`` reaches the largest number.

    All utilities are equal, so ties are the rule: with ``ties="lowest-index"`` the UEs of low
    index are served again and again where many need one subchannel.
    """

    name: ClassVar[str] = "max-pack"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Value all UEs alike: the paper's special case of a constant f."""
        return np.ones(view.ue_count)
