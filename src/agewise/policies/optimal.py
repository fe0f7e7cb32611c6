"""The optimum of problem (3): what the greedy packing of the paper is an approximation of."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.age import Form, check_alpha, f_alpha
from agewise.policies._parameters import MOST_STEPS, Ties, check_ties, tie_rank, whole_parameter
from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, solve


@dataclass(frozen=True)
class Optimal(Policy):
    """The highest sum of ``f_alpha(age)`` over the scheduled UEs, exactly.

    It says how much the greedy `AgeBased` leaves, at a cost: as a rule less than a tenth of a
    second a round with 100 UEs and 20 subchannels, but seconds in the hardest rounds. Those
    are early ones, in which few different ages occur, and those in which most UEs need one or two
    subchannels. UEs of age 0 count nothing; they get what is left, as `AgeBased` would give it to
    them, and so does everybody in the first round.

    ``work_limit`` bounds the search of a round in steps, not in seconds, so that results do not
    depend on the machine; the default takes a second or two. A round that reaches it gets
    the best allocation found until then, which is never worth less than the greedy one. ``ties``
    orders the UEs, and so decides which of several optima is found.
    """

    name: ClassVar[str] = "optimal"
    alpha: float = 0.5
    ties: Ties = "random"
    form: Form = "paper"
    work_limit: int = 1_000_000

    def __post_init__(self) -> None:
        check_alpha(self.alpha, self.form)
        check_ties(self.ties)
        steps = whole_parameter("work_limit", self.work_limit, least=0, most=MOST_STEPS)
        object.__setattr__(self, "work_limit", steps)

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Solve problem (3) with ``f_alpha`` of the ages."""
        weights = f_alpha(view.ages, self.alpha, self.form)
        rank = tie_rank(self.ties, view.ue_count, rng)
        return solve(view.uplink, weights, rank, work_limit=self.work_limit).allocation
