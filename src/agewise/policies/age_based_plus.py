"""Age-based scheduling with a better packing."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.age import Form, check_alpha, f_alpha
from agewise.policies.base import Policy, RoundView, Ties, check_ties, tie_rank
from agewise.spectrum import Allocation, Uplink
from agewise.spectrum.auction import auction
from agewise.spectrum.reach import needs
from agewise.timing import upload_slots


@dataclass(frozen=True)
class AgeBasedPlus(Policy):
    """Age-based scheduling that leaves contested subchannels to those who need them.

    Maximises the same sum of ``f_alpha(age)`` as `AgeBased` (problem 3 of Yang, Arafa, Quek, Poor
    2020), but by `agewise.spectrum.auction`, in place of Algorithm 2: prices on the subchannels
    keep a UE from taking one that another needs more. Where there is a deadline, UEs that would
    miss it on their best subchannels are left out, for they would grow old and hold subchannels
    for nothing.
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
        return auction(in_time(view), weights, tie_rank(self.ties, view.ue_count, rng))


def in_time(view: RoundView) -> Uplink:
    """The uplink without the UEs that would miss the deadline on their fewest best subchannels."""
    uplink = view.uplink
    if view.deadline_slots == math.inf:
        return uplink
    need, rate = needs(uplink, np.arange(uplink.subchannel_count))
    reached = need > 0
    late = np.zeros(view.ue_count, np.bool_)
    uploading = upload_slots(rate[reached], uplink.rate_threshold)
    late[reached] = view.compute_slots[reached] + uploading > view.deadline_slots
    gains = np.where(late[:, None], 0.0, uplink.gains)
    return Uplink(gains, uplink.power_budget, uplink.rate_threshold)
