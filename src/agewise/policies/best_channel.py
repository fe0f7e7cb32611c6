"""Best channel first."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.policies._parameters import Ties, check_ties, tie_rank
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, fill
from agewise.spectrum.reach import mean_gains


@dataclass(frozen=True)
class BestChannel(Policy):
    """Best channel first: BC of Amiri, Gündüz, Kulkarni, Poor (2021).

    "Convergence of update aware device scheduling for federated learning at the wireless edge"
    serves the K UEs with the highest gain ``|h|²``. Adapted: the gain of a UE is its mean over the
    subchannels, and as many are served, in falling order, as the spectrum has room for, each with
    its fewest best free subchannels. ``ties`` decides between equal gains.
    """

    name: ClassVar[str] = "best-channel"
    ties: Ties = "random"

    def __post_init__(self) -> None:
        check_ties(self.ties)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Fill the spectrum in falling order of the mean gain."""
        rank = tie_rank(self.ties, view.ue_count, rng)
        return fill(view.uplink, np.lexsort((rank, -mean_gains(view.uplink))))
