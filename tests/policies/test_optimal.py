"""What defines the exact policies: nothing feasible is better, and the greedy ones never are."""

import numpy as np
import pytest

from agewise import Streams, Uplink
from agewise.age import f_alpha, next_ages
from agewise.policies.age_based import AgeBased
from agewise.policies.max_pack import MaxPack
from agewise.policies.max_pack_exact import MaxPackExact
from agewise.policies.optimal import Optimal
from tests import reference
from tests.cells import draw_gains
from tests.views import view_of


def views(policy, rounds, ues=60, subchannels=12, edge_snr_db=0.0, threshold=3.0):
    """The views of the rounds that ``policy`` goes through."""
    ages = np.zeros(ues, np.int64)
    for t in range(rounds):
        gains = draw_gains(np.random.default_rng([11, t]), ues, subchannels, edge_snr_db)
        view = view_of(Uplink(gains, 1.0, threshold), ages)
        yield view
        ages = next_ages(ages, policy.schedule(view, Streams(0).policy(t)).scheduled)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_optimal_is_never_below_age_based_and_above_it_at_times(alpha):
    better = 0
    for t, view in enumerate(views(AgeBased(alpha=alpha), 15)):
        weights = f_alpha(view.ages, alpha)
        greedy = AgeBased(alpha=alpha).schedule(view, Streams(0).policy(t))
        optimal = Optimal(alpha=alpha).schedule(view, Streams(0).policy(t))
        optimal.validate(view.uplink.gains)
        gain = weights[optimal.scheduled].sum() - weights[greedy.scheduled].sum()
        assert gain > -1e-9
        better += gain > 1e-6
    assert better >= 5


def test_in_the_first_round_optimal_packs_as_age_based_does():
    view = next(views(AgeBased(), 1))
    first = Optimal().schedule(view, Streams(3).policy(0))
    assert first.scheduled.any()
    assert first.owner.tolist() == AgeBased().schedule(view, Streams(3).policy(0)).owner.tolist()


def test_max_pack_exact_never_serves_fewer_than_max_pack():
    more = 0
    for t, view in enumerate(views(AgeBased(), 15, edge_snr_db=-10.0, threshold=2.0)):
        greedy = MaxPack().schedule(view, Streams(0).policy(t)).scheduled.sum()
        exact = MaxPackExact().schedule(view, Streams(0).policy(t))
        exact.validate(view.uplink.gains)
        assert exact.scheduled.sum() >= greedy
        more += exact.scheduled.sum() > greedy
    assert more > 0


def test_both_are_exhaustive_on_tiny_cells():
    rng = np.random.default_rng(12)
    for trial in range(40):
        gains = draw_gains(rng, 5, 4, 0.0)
        threshold = [0.5, 1.0, 2.0, 3.0][trial % 4]
        ages = rng.integers(0, 9, 5)
        view = view_of(Uplink(gains, 1.0, threshold), ages)
        count = MaxPackExact().schedule(view, rng).scheduled.sum()
        assert count == reference.best_value(gains.tolist(), [1.0] * 5, 1.0, threshold)
        weights = f_alpha(ages, 0.5)
        value = weights[Optimal().schedule(view, rng).scheduled].sum()
        assert value == pytest.approx(
            reference.best_value(gains.tolist(), weights.tolist(), 1.0, threshold)
        )


@pytest.mark.parametrize("policy", [Optimal(), MaxPackExact(), Optimal(work_limit=500)])
def test_same_draw_same_schedule(policy):
    for t, view in enumerate(views(AgeBased(), 6)):
        first, again = (policy.schedule(view, Streams(0).policy(t)) for _ in range(2))
        assert first.owner.tolist() == again.owner.tolist()


def test_ties_of_max_pack_exact():
    """By chance others are served each time, by index always the same."""
    view = view_of(Uplink(np.full((40, 10), 10.0), 1.0, 1.0), np.zeros(40, int))
    rngs = [Streams(seed).policy(0) for seed in range(5)]
    by_chance = {tuple(MaxPackExact().schedule(view, rng).owner) for rng in rngs}
    by_index = {tuple(MaxPackExact("lowest-index").schedule(view, rng).owner) for rng in rngs}
    assert len(by_chance) == 5
    assert by_index == {tuple(range(10))}


def test_a_limit_of_zero_still_serves_as_well_as_the_greedy_packing():
    for t, view in enumerate(views(AgeBased(), 6)):
        weights = f_alpha(view.ages, 0.5)
        greedy = AgeBased().schedule(view, Streams(0).policy(t))
        stopped = Optimal(work_limit=0).schedule(view, Streams(0).policy(t))
        stopped.validate(view.uplink.gains)
        assert weights[stopped.scheduled].sum() >= weights[greedy.scheduled].sum() - 1e-9


def test_they_are_values():
    assert str(Optimal()) == ("optimal(alpha=0.5, ties=random, form=paper, work_limit=1000000)")
    assert str(MaxPackExact()) == "max-pack-exact(ties=random, work_limit=1000000)"
    with pytest.raises(ValueError, match="alpha must be at most 1"):
        Optimal(alpha=2.0)
    with pytest.raises(ValueError, match="work_limit must be a whole number of at least 0"):
        Optimal(work_limit=-1)
    with pytest.raises(ValueError, match="work_limit must be a whole number of at least 0"):
        MaxPackExact(work_limit=0.5)
    with pytest.raises(ValueError, match="random, lowest-index"):
        MaxPackExact(ties="first")
