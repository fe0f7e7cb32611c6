"""Longest update first, among those with a good channel."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.checks import number_within
from agewise.policies.best_norm import BestNorm
from agewise.scheduling import RoundView
from agewise.spectrum import Allocation


@dataclass(frozen=True, kw_only=True)
class BestChannelNorm(BestNorm):
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
    candidate_share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        number_within("candidate_share", self.candidate_share, 0.0, 1.0, above=True)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack the candidates by their norms."""
        rank = self.tie_rank(view, rng)
        count = max(1, round(self.candidate_share * view.ue_count))
        others = np.lexsort((rank, -view.uplink.mean_gains()))[count:]
        norms = self.utility(view, rng)
        norms[others] = -np.inf
        return self.pack(view, norms, rank)
