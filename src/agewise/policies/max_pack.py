"""MaxPack: the paper's baseline, its special case of a constant f."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.policies._parameters import Ties, check_ties, tie_rank
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, pack


@dataclass(frozen=True)
class MaxPack(Policy):
    """As many UEs as fit: fewest subchannels needed first (Yang, Jiang, Shi, Ding 2018).

    All weights are equal, so ties are the rule: with ``ties="lowest-index"`` the UEs of low
    index are served again and again where many need one subchannel.
    """

    name: ClassVar[str] = "max-pack"
    ties: Ties = "random"

    def __post_init__(self) -> None:
        check_ties(self.ties)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack by equal weights."""
        weights = np.ones(view.ue_count)
        return pack(view.uplink, weights, tie_rank(self.ties, view.ue_count, rng))
