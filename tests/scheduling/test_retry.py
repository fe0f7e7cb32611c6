"""Retry: a UE that fails sits out longer and longer, and is asked again in the end."""

import numpy as np
import pytest

from agewise import policies
from agewise.random import Streams
from agewise.scheduling import AccessPoint, BackOff, BackOffByTurns, NoPause
from agewise.spectrum import Uplink


def attempts_of(policy, retry, broken, rounds, ues=100, places=10):
    """``[round]``: who is scheduled, where these UEs never answer."""
    point = AccessPoint(policy, ues, Streams(3), retry=retry)
    uplink, scheduled = Uplink(np.ones((ues, places)), 1.0, 0.1), []
    for _ in range(rounds):
        chosen = np.flatnonzero(point.plan(uplink).scheduled)
        scheduled.append(chosen)
        point.receive(np.setdiff1d(chosen, broken))
    return scheduled, point


def test_a_ue_that_never_answers_is_asked_after_1_3_7_and_then_limit_rounds():
    scheduled, point = attempts_of(
        policies.AgeBased(ties="lowest-index"), BackOff(limit=10), [0], 60, ues=3, places=3
    )
    asked = [t for t, ues in enumerate(scheduled) if 0 in ues]
    assert asked == [0, 2, 6, 14, 25, 36, 47, 58]
    assert point.participation.tolist() == [0, 60, 60]


def test_a_success_ends_the_pause():
    point = AccessPoint(policies.MaxPack(), 1, Streams(0), retry=BackOff(limit=16))
    uplink, asked = Uplink(np.ones((1, 1)), 1.0, 0.1), []
    for t in range(12):
        scheduled = np.flatnonzero(point.plan(uplink).scheduled)
        asked += [t] * scheduled.size
        point.receive(scheduled if t in (6, 7) else scheduled[:0])
    assert asked == [0, 2, 6, 7, 8, 10]


@pytest.mark.parametrize("name", ["age-based", "max-pack", "round-robin", "random", "whittle"])
def test_broken_ues_get_no_more_than_a_little_over_their_share(name):
    """10 broken of 100 take all of age-based's places without back-off; with it, about 10%."""
    broken = np.arange(10)
    policy = policies.make_policy(name)
    scheduled, point = attempts_of(policy, BackOff(limit=16), broken, 60)
    assert np.isin(np.concatenate(scheduled), broken).mean() < 0.13
    assert point.participation[10:].min() > 0


@pytest.mark.parametrize(("ues", "places", "broken"), [(1000, 10, 200), (100, 1, 50), (6, 6, 2)])
def test_by_turns_they_get_little_however_many_ues_there_are(ues, places, broken):
    """Where a turn takes a hundred rounds, those who return after 16 take nearly all places."""
    shares = {}
    for retry in (BackOff(), BackOffByTurns()):
        scheduled, _ = attempts_of(policies.AgeBased(), retry, np.arange(broken), 300, ues, places)
        heard = [(each >= broken).any() for each in scheduled[150:]]
        shares[retry.kind] = np.mean(np.concatenate(scheduled[150:]) < broken), np.mean(heard)
    taken, heard = shares["back-off-by-turns"]
    assert taken < 0.2
    assert heard > 0.8
    if ues > places:
        assert shares["back-off"][0] > 0.9


def test_a_turn_is_that_of_the_ues_with_a_channel():
    """Of 40 UEs ten are there, and two are scheduled in a round: a turn takes five rounds."""
    point = AccessPoint(policies.AgeBased(), 40, Streams(0), retry=BackOffByTurns())
    gains = np.ones((40, 2))
    gains[10:] = 0.0
    uplink = Uplink(gains, 1.0, 0.1)
    failed = np.flatnonzero(point.plan(uplink).scheduled)
    point.receive(failed[:0])
    out = []
    for _ in range(6):
        out.append(bool(point.sitting_out[failed].all()))
        point.receive(np.flatnonzero(point.plan(uplink.only(np.arange(40) != failed[0])).scheduled))
    assert out == [True] * 5 + [False]


def test_without_back_off_they_capture_age_based():
    scheduled, _ = attempts_of(policies.AgeBased(), NoPause(), np.arange(10), 60)
    assert np.isin(np.concatenate(scheduled[30:]), np.arange(10)).all()


def test_a_policy_sees_attempts_and_successes():
    _, point = attempts_of(policies.AgeBased(), BackOff(limit=4), [1], 9, ues=3, places=3)
    view = point.view(Uplink(np.ones((3, 3)), 1.0, 0.1))
    assert view.attempts.tolist() == [9, 3, 9]
    assert view.successes.tolist() == [9, 0, 9]


def test_pauses_outlive_a_snapshot():
    whole, first = (
        attempts_of(policies.AgeBased(), BackOff(limit=16), [0], rounds, ues=4, places=2)[1]
        for rounds in (5, 5)
    )
    again = AccessPoint(policies.AgeBased(), 4, Streams(3), retry=BackOff(limit=16))
    again.restore(first.snapshot())
    uplink = Uplink(np.ones((4, 2)), 1.0, 0.1)
    for _ in range(6):
        plans = [np.flatnonzero(point.plan(uplink).scheduled) for point in (whole, again)]
        assert plans[0].tolist() == plans[1].tolist()
        for point in (whole, again):
            point.receive(np.setdiff1d(plans[0], [0]))


def test_an_attempt_that_is_pending_ends_when_it_is_not():
    """UE 0 succeeds and UE 1 fails, both in the third round after they were asked."""
    point = AccessPoint(policies.MaxPack(), 2, Streams(0), retry=BackOff(limit=16))
    both, free = Uplink(np.ones((2, 2)), 1.0, 0.1), Uplink(np.zeros((2, 2)), 1.0, 0.1)
    nobody, everyone = np.array([], int), np.array([0, 1])
    for uplink in (both, free):
        point.plan(uplink)
        point.receive(nobody, pending=everyone)
        assert point.sitting_out is None
        assert point.view(both).attempts.tolist() == [0, 0]
    point.plan(free)
    point.receive(everyone[:1])
    assert point.view(both).attempts.tolist() == [1, 1]
    assert point.ages.tolist() == [0, 3]
    assert point.sitting_out.tolist() == [False, True]
