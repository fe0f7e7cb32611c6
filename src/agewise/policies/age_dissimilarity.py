"""Age-based scheduling that also favours updates unlike the others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.age import Form, check_alpha, f_alpha
from agewise.policies._estimates import unknown_as_largest
from agewise.policies._parameters import Ties, check_ties, check_within, tie_rank
from agewise.scheduling import Policy, Report, RoundView
from agewise.spectrum import Allocation, pack


@dataclass(frozen=True)
class AgeDissimilarity(Policy):
    """Stale and unlike the others: age times dissimilarity per subchannel needed.

    The weight is ``f_alpha(age) (1 + beta d)``, where d is one minus the cosine between the UE's
    last update and the sum of those that arrived with it: 0 alike, 2 opposed. Who was never heard
    has the largest d known. ``beta = 0`` is age-based scheduling.

    The weight is this package's own. That age-based scheduling gains by the diversity of gradients
    is the view of Yang, Arafa, Quek and Poor (2020); that age and the cosine dissimilarity of
    gradients can be combined is in CosAge of Asgari et al., where clients send a summary of their
    gradient before each round. Here nobody sends anything extra: d is as old as the last update.
    """

    name: ClassVar[str] = "age-dissimilarity"
    reads: ClassVar[frozenset[Report]] = frozenset({"dissimilarities"})
    alpha: float = 0.5
    beta: float = 1.0
    ties: Ties = "random"
    form: Form = "paper"

    def __post_init__(self) -> None:
        check_alpha(self.alpha, self.form)
        check_within("beta", self.beta)
        check_ties(self.ties)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack by age and dissimilarity."""
        unlike = unknown_as_largest(view.feedback.dissimilarities)
        weights = f_alpha(view.ages, self.alpha, self.form) * (1.0 + self.beta * unlike)
        return pack(view.uplink, weights, tie_rank(self.ties, view.ue_count, rng))
