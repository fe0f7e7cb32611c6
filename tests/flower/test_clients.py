"""Clients that are not there for long are forgotten, and found again."""

import pytest

from agewise.flower import Clients, LiveRound, RoundPlanner, Slots

FORGET = 4


def rounds(planner, there, count):
    """Plan and receive; who was chosen in the last round, and what it left."""
    for _ in range(count):
        planned = planner.plan(planner.rows(there))
        kept = planner.receive(planned, planned.chosen)
    return [planner.ids[row] for row in planned.chosen], kept


def test_who_is_away_for_long_is_in_no_number_of_ages_and_comes_back_with_its_age():
    planner = RoundPlanner(["age-based"], Slots(1), forget_after=FORGET)
    rounds(planner, ["a", "b"], 2)
    _, kept = rounds(planner, ["a"], FORGET)
    assert kept["forgotten"].tolist() == []
    _, kept = rounds(planner, ["a"], 1)
    assert kept["forgotten"].tolist() == [1]
    known = dict.fromkeys(("seconds", "accuracy", "loss"), 1.0)
    none = dict.fromkeys(("late", "failed", "lost"), kept["forgotten"][:0])
    done = LiveRound.of(planner.t, kept | known | none, {}, planner.ids)
    assert (done.ids, done.ages.tolist()) == (["a"], [0])
    assert planner.ages.tolist() == [0, FORGET + 1]
    chosen, kept = rounds(planner, ["a", "b"], 1)
    assert chosen == ["b"]
    assert kept["forgotten"].tolist() == []


def test_forgetting_outlives_a_snapshot():
    first, again = (RoundPlanner(["random"], Slots(1), forget_after=FORGET) for _ in range(2))
    rounds(first, ["a", "b"], 2)
    rounds(first, ["b"], FORGET + 1)
    again.restore(first.snapshot())
    assert again.forgotten.tolist() == first.forgotten.tolist() == [0]


def test_the_default_is_generous():
    assert Clients().forget_after >= 1_000


def test_rounds_are_planned_by_some_policy():
    with pytest.raises(ValueError, match="give at least one policy"):
        RoundPlanner([], Slots(1))
