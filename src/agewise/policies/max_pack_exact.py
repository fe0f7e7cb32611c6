"""MaxPack without the approximation: the largest number of UEs that fit."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.policies._parameters import MOST_STEPS, Ties, check_ties, tie_rank, whole_parameter
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, solve


@dataclass(frozen=True)
class MaxPackExact(Policy):
    """As many UEs as fit, exactly: what the greedy `MaxPack` is an approximation of.

    Many sets of UEs are equally large. Where the greedy one is largest it is kept; otherwise the
    order of ``ties`` decides which one the search comes upon. With ``ties="random"`` that order
    is drawn anew in each round, so that not always the same UEs are served. ``work_limit`` is as
    in `Optimal`: at the limit the largest number found until then is served.
    """

    name: ClassVar[str] = "max-pack-exact"
    ties: Ties = "random"
    work_limit: int = 1_000_000

    def __post_init__(self) -> None:
        check_ties(self.ties)
        steps = whole_parameter("work_limit", self.work_limit, least=0, most=MOST_STEPS)
        object.__setattr__(self, "work_limit", steps)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Solve problem (3) with equal weights."""
        rank = tie_rank(self.ties, view.ue_count, rng)
        weights = np.ones(view.ue_count)
        return solve(view.uplink, weights, rank, work_limit=self.work_limit).allocation
