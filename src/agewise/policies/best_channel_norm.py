"""Longest update first, among those with a good channel."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.policies._parameters import Ties, check_share, check_ties, tie_rank
from agewise.policies.best_norm import expected_norms
from agewise.scheduling import Policy, Report, RoundView
from agewise.spectrum import Allocation, fill
from agewise.spectrum.reach import mean_gains


@dataclass(frozen=True)
class BestChannelNorm(Policy):
    """Longest update first among the best channels: BC-BN2 of Amiri, Gündüz, Kulkarni, Poor (2021).

    "Convergence of update aware device scheduling for federated learning at the wireless edge"
    takes the K_c UEs with the best channels, and of these the K <= K_c with the longest updates.
    Adapted: K_c is ``candidate_share`` of all UEs (at least one), and the spectrum decides how
    many of them are served. 1 makes this `best-norm`; with fewer candidates than there is room
    for, everyone served is one of the best channels and the rest of the spectrum stays idle.
    Channels are compared as in `best-channel`, norms as in `best-norm`. ``ties`` decides between
    equal ones.
    """

    name: ClassVar[str] = "best-channel-norm"
    reads: ClassVar[frozenset[Report]] = frozenset({"update_norms"})
    candidate_share: float = 0.5
    ties: Ties = "random"

    def __post_init__(self) -> None:
        check_share("candidate_share", self.candidate_share)
        check_ties(self.ties)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Fill the spectrum with the candidates in falling order of the norms."""
        rank = tie_rank(self.ties, view.ue_count, rng)
        count = max(1, round(self.candidate_share * view.ue_count))
        candidates = np.lexsort((rank, -mean_gains(view.uplink)))[:count]
        norms = expected_norms(view)[candidates]
        return fill(view.uplink, candidates[np.lexsort((rank[candidates], -norms))])
