"""The access point: ages by Eq. 2, state that is declared, members that come and go."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from agewise import AccessPoint, Allocation, InfeasibleAllocation, Policy, Streams, Uplink
from agewise.policies import AgeBased, MaxPack
from agewise.scheduling import BackOff, NoPause
from agewise.spectrum import fill

EASY = Uplink(np.full((4, 2), 10.0), 1.0, 1.0)


@dataclass(frozen=True)
class Counting(Policy):
    """Serves whoever it has seen least, and counts how often it saw each UE."""

    name: ClassVar[str] = "counting"
    state_per_ue: ClassVar[dict[str, float]] = {"seen": 10.0}
    state_scalars: ClassVar[dict[str, float]] = {"rounds": 0.0}

    def schedule(self, view, rng):
        view.state.per_ue["seen"] += 1
        view.state.scalars["rounds"] += 1
        return fill(view.uplink, np.argsort(view.state.per_ue["seen"], kind="stable"))


def test_received_not_scheduled_resets_an_age():
    point = AccessPoint(AgeBased(ties="lowest-index"), 4, Streams(0))
    assert np.flatnonzero(point.plan(EASY).scheduled).tolist() == [0, 1]
    point.receive(np.array([0]))
    assert (point.t, point.ages.tolist()) == (1, [0, 1, 1, 1])
    assert np.flatnonzero(point.plan(EASY).scheduled).tolist() == [1, 2]
    point.receive(np.array([1, 2]), update_ages=np.array([0, 3]))
    assert point.ages.tolist() == [1, 0, 3, 2]
    assert point.participation.tolist() == [1, 1, 1, 0]


def test_state_follows_the_id_and_members_of_the_same_number_are_told_apart():
    point = AccessPoint(Counting(), "abcd", Streams(0))
    seen = []
    for members in ("abcd", "abce", "ecba", "dcba"):
        point.set_present(members)
        point.plan(EASY)
        point.receive(np.array([0]))
        seen.append(dict(zip(point.ids, point._roster.present("state.seen"), strict=True)))
    assert seen[1] == {"a": 12, "b": 12, "c": 12, "e": 11}
    assert seen[2] == {"a": 13, "b": 13, "c": 13, "e": 12}
    assert seen[3] == {"a": 14, "b": 14, "c": 14, "d": 12}  # not seen while it was away
    ages = dict(zip(point.ids, point.ages.tolist(), strict=True))
    assert ages == {"a": 2, "b": 4, "c": 4, "d": 0}  # a was away from nothing, d for two rounds


def test_an_absent_ue_goes_on_ageing():
    point = AccessPoint(MaxPack(), ["x", "y"], Streams(0))
    for _ in range(3):
        point.set_present(["x"])
        point.plan(Uplink(np.ones((1, 1)), 1.0, 0.1))
        point.receive(np.array([0]))
    point.set_present(["y", "x"])
    assert point.ages.tolist() == [3, 0]


def test_a_number_of_ues_is_short_for_their_numbers():
    seen = []
    for ues in (3, [0, 1, 2]):
        point = AccessPoint(MaxPack(), ues, Streams(0))
        assert list(point.ids) == [0, 1, 2]
        for members, heard in ((None, 1), ([2, 0, 7], 0), ([7, 1], 1)):
            if members is not None:
                point.set_present(members)
            point.plan(Uplink(np.ones((len(point.ids), 1)), 1.0, 0.1))
            point.receive(np.array([heard]))
        point.set_present([0, 1, 2, 7])
        seen.append(point.ages.tolist())
    assert seen == [[3, 0, 1, 2]] * 2
    with pytest.raises(ValueError, match="must differ"):
        point.set_present([0, 0])
    assert list(point.ids) == [0, 1, 2, 7]


def test_a_plan_that_fails_leaves_the_state_as_it_was():
    @dataclass(frozen=True)
    class Cheat(Counting):
        def schedule(self, view, rng):
            honest = super().schedule(view, rng)
            return Allocation.of(view.uplink, honest.owner, honest.power * 2)

    point = AccessPoint(Cheat(), 4, Streams(0))
    with pytest.raises(InfeasibleAllocation, match=r"counting in round 0: power constraint \(3c\)"):
        point.plan(EASY)
    assert point._roster.present("state.seen").tolist() == [10.0] * 4


def test_a_plan_has_the_gains_of_the_round_whatever_the_policy_says():
    @dataclass(frozen=True)
    class Boastful(Counting):
        def schedule(self, view, rng):
            made = super().schedule(view, rng)
            return Allocation(made.owner, made.power, made.gain * 100, np.full(4, 5.0), np.zeros(4))

    made = AccessPoint(Boastful(), 4, Streams(0)).plan(EASY)
    assert made.power_budget.tolist() == made.rate_threshold.tolist() == [1.0] * 4
    assert made.gain[made.owner >= 0].tolist() == [10.0, 10.0]


def test_a_plan_is_proven_on_the_gains_that_the_access_point_holds():
    """A policy that makes its copy writable and its gains large does not reach the threshold."""

    @dataclass(frozen=True)
    class Spoiler(Counting):
        def schedule(self, view, rng):
            gains = view.uplink.gains
            while gains.base is not None:
                gains = gains.base
            gains.flags.writeable = True
            gains *= 1e4
            object.__setattr__(view, "uplink", Uplink(gains, 1.0, 2.0))
            return super().schedule(view, rng)

    held = Uplink(np.full((4, 2), 0.1), 1.0, 2.0)
    with pytest.raises(InfeasibleAllocation, match=r"counting in round 0: rate constraint \(3b\)"):
        AccessPoint(Spoiler(), 4, Streams(0)).plan(held)
    assert (held.gains == 0.1).all()


def test_feedback_is_that_of_the_last_update():
    point = AccessPoint(MaxPack(), 3, Streams(0))
    point.receive(np.array([2, 0]), {"losses": np.array([0.5, 0.25])})
    point.receive(np.array([2]), {"losses": np.array([0.125])})
    np.testing.assert_array_equal(point.feedback.losses, [0.25, np.nan, 0.125])
    assert np.isnan(point.feedback.update_norms).all()


def test_nothing_that_is_shown_can_be_changed():
    point = AccessPoint(MaxPack(), 3, Streams(0))
    for array in (point.ages, point.participation, point.feedback.losses):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@dataclass(frozen=True)
class Undeclared(Counting):
    def schedule(self, view, rng):
        view.state.per_ue["more"] = view.ages
        return super().schedule(view, rng)


@dataclass(frozen=True)
class Misshapen(Counting):
    def schedule(self, view, rng):
        allocation = super().schedule(view, rng)
        view.state.per_ue["seen"] = np.zeros(2)
        return allocation


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Undeclared(), "declares the state seen, which does not agree with what it left of 'more'"),
        (Misshapen(), "its state 'seen' must have one number for each of the 4 UEs, not shape"),
    ],
)
def test_state_that_is_not_as_declared(policy, message):
    with pytest.raises(ValueError, match=message):
        AccessPoint(policy, 4, Streams(0)).plan(EASY)


def test_mistakes():
    point = AccessPoint(MaxPack(), 3, Streams(0))
    with pytest.raises(ValueError, match="gains of 4 UEs, but 3 are present"):
        point.plan(EASY)
    with pytest.raises(ValueError, match="ids of the UEs must differ"):
        point.set_present(["a", "b", "a"])
    with pytest.raises(ValueError, match="data_sizes must have one entry for each of the 3 UEs"):
        point.describe(data_sizes=np.ones(2, np.int64))


@pytest.mark.parametrize("policy", [AgeBased(), MaxPack(), Counting()])
def test_a_snapshot_is_all_that_decides(policy):
    """Four rounds at once, and two then two from a snapshot: the same plans and ages."""

    def played(point, rounds):
        owners = []
        for _ in range(rounds):
            allocation = point.plan(EASY)
            owners.append(allocation.owner.tolist())
            point.receive(np.flatnonzero(allocation.scheduled)[:1])
        return owners

    whole, first, again = (AccessPoint(policy, list("abcd"), Streams(5)) for _ in range(3))
    owners = played(whole, 4)
    assert played(first, 2) == owners[:2]
    again.restore(first.snapshot())
    assert again.t == 2
    assert played(again, 2) == owners[2:]
    assert {name: x.tobytes() for name, x in again.snapshot().items()} == {
        name: x.tobytes() for name, x in whole.snapshot().items()
    }


def test_without_pauses_failures_of_a_snapshot_keep_nobody_away():
    paused, at_once = (
        AccessPoint(MaxPack(), 4, Streams(0), retry=retry) for retry in (BackOff(), NoPause())
    )
    paused.plan(EASY)
    paused.receive(np.empty(0, np.int64))
    assert paused.sitting_out.any()
    at_once.restore(paused.snapshot())
    assert at_once.sitting_out is None


def test_a_snapshot_of_something_else_is_refused():
    snapshot = AccessPoint(Counting(), 4, Streams(0)).snapshot()
    with pytest.raises(ValueError, match="not a snapshot of the policy max-pack"):
        AccessPoint(MaxPack(), 4, Streams(0)).restore(snapshot)
    with pytest.raises(ValueError, match="it is of other UEs"):
        AccessPoint(Counting(), 5, Streams(0)).restore(snapshot)
