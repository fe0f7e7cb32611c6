"""Age-based scheduling with a better packing."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.age import Form, check_alpha, f_alpha
from agewise.policies._parameters import Ties, check_ties, tie_rank
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, auction


@dataclass(frozen=True)
class AgeBasedPlus(Policy):
    """Age-based scheduling that leaves contested subchannels to those who need them.

    Maximises the same sum of ``f_alpha(age)`` as `AgeBased` (problem 3 of Yang, Arafa, Quek, Poor
    2020), but by `agewise.spectrum.auction`, in place of Algorithm 2: prices on the subchannels
    keep a UE from taking one that another needs more. Where there is a deadline, a UE that
    computes for long must reach a higher rate, so that no upload is late; one that cannot would
    grow old and hold subchannels for nothing.
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
        rank = tie_rank(self.ties, view.ue_count, rng)
        return auction(view.uplink, weights, rank, rates=rates_in_time(view))


def rates_in_time(view: RoundView) -> NDArray[np.float64] | None:
    """What each UE must reach to be in time: more than the threshold if it computes for long.

    An upload at the threshold takes one slot, so one that has only half a slot left after
    computing needs twice that rate. ``None`` where there is no deadline.
    """
    if view.deadline_slots == math.inf:
        return None
    threshold, left = view.uplink.rate_threshold, view.deadline_slots - view.compute_slots
    faster = np.divide(1.0, left, out=np.full(left.size, np.inf), where=left > 0)
    # A last bit must not make an upload late.
    rates = np.where(faster > 1.0, threshold * faster * (1.0 + 1e-9), threshold)
    return np.asarray(np.where(left > 0, rates, np.inf))
