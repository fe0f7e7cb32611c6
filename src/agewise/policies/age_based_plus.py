"""Age-based scheduling with a better packing."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.age import Form, check_alpha, f_alpha
from agewise.policies._parameters import Ties, check_ties, tie_rank
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, auction


@dataclass(frozen=True)
class AgeBasedPlus(Policy):
    """Age-based scheduling that leaves contested subchannels to those who need them.

    Maximises the same sum of ``f_alpha(age)`` as `AgeBased` (problem 3 of Yang, Arafa, Quek, Poor
    2020), but by `agewise.spectrum.auction`, in place of Algorithm 2: prices on the subchannels
    keep a UE from taking one that another needs more.
    """

    name: ClassVar[str] = "age-based-plus"
    alpha: float = 0.5
    ties: Ties = "random"
    form: Form = "paper"

    def __post_init__(self) -> None:
        check_alpha(self.alpha, self.form)
        check_ties(self.ties)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Pack by ``f_alpha`` of the ages at prices."""
        weights = f_alpha(view.ages, self.alpha, self.form)
        return auction(view.uplink, weights, tie_rank(self.ties, view.ue_count, rng))
