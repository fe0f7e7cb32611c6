"""Age-based scheduling (ABS): the policy of the paper, Algorithm 2."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.age import Form, check_alpha, f_alpha
from agewise.policies._parameters import Ties, check_ties, tie_rank
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, pack


@dataclass(frozen=True)
class AgeBased(Policy):
    """Stalest update per subchannel needed first (Yang, Arafa, Quek, Poor 2020).

    The weight of a UE is ``f_alpha(age)``: the lower ``alpha``, the more a high age counts.
    ``form`` is the paper's f_alpha or its continuous variant.
    """

    name: ClassVar[str] = "age-based"
    alpha: float = 0.5
    ties: Ties = "random"
    form: Form = "paper"

    def __post_init__(self) -> None:
        check_alpha(self.alpha, self.form)
        check_ties(self.ties)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack by ``f_alpha`` of the ages."""
        weights = f_alpha(view.ages, self.alpha, self.form)
        return pack(view.uplink, weights, tie_rank(self.ties, view.ue_count, rng))
