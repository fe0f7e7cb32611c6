"""Age-based scheduling at prices: the same aim, more of it, and no places for the late."""

import numpy as np
import pytest

from agewise import Streams, Uplink
from agewise.age import f_alpha, next_ages
from agewise.policies import AgeBased, AgeBasedPlus
from agewise.spectrum import auction
from tests.cells import draw_gains
from tests.views import view_of


def test_it_weighs_ages_as_age_based_does():
    gains, ages = draw_gains(np.random.default_rng(2), 30, 10, 0.0), np.arange(30) % 7
    uplink = Uplink(gains, 1.0, 2.0)
    own = AgeBasedPlus(alpha=0.25, ties="lowest-index").schedule(
        view_of(uplink, ages), Streams(0).policy(0)
    )
    assert own.owner.tolist() == auction(uplink, f_alpha(ages, 0.25)).owner.tolist()


def test_over_a_run_it_keeps_the_ages_lower():
    costs = {}
    for policy in (AgeBased(), AgeBasedPlus()):
        ages, cost = np.zeros(60, np.int64), 0.0
        for t in range(60):
            gains = draw_gains(np.random.default_rng([4, t]), 60, 12, -5.0)
            view = view_of(Uplink(gains, 1.0, 3.0), ages)
            ages = next_ages(ages, policy.schedule(view, Streams(0).policy(t)).scheduled)
            cost += f_alpha(ages, 0.5).sum()
        costs[policy.name] = cost
    assert costs["age-based-plus"] < costs["age-based"]


def test_parameters_out_of_range():
    with pytest.raises(ValueError, match="at most 1, not 2"):
        AgeBasedPlus(alpha=2.0)
    with pytest.raises(ValueError, match="ties must be one of"):
        AgeBasedPlus(ties="first")
