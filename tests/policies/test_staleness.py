"""Policies that know how old updates in hand are, and what they do where all are new."""

import numpy as np
import pytest

from agewise import simulate
from agewise.age import f_alpha
from agewise.policies import AgeBased, AgeReduction, Freshest, VersionAge, make_policy
from agewise.random import Streams
from agewise.scheduling import AccessPoint
from agewise.spectrum import Uplink
from tests.scenarios import tiny
from tests.views import fresh_state, view_of

UPLINK = Uplink(np.ones((4, 2)), 1.0, 0.1)


def utility(policy, ages, state=None, **known):
    known = {name: np.asarray(values) for name, values in known.items()}
    return policy.utility(view_of(UPLINK, ages, state, **known), Streams(0).policy(0)).tolist()


def test_ages_above_the_cap_count_as_the_cap():
    capped = utility(make_policy("age-based:cap=2"), [0, 1, 2, 30])
    assert capped == f_alpha([0, 1, 2, 2], 0.5).tolist()


def test_the_freshest_update_goes_first():
    assert utility(Freshest(), [0] * 4, staleness=[0, 1, 3, 9]) == [1.0, 0.5, 0.25, 0.1]


@pytest.mark.parametrize(
    ("policy", "expected"),
    # UE 0 was heard with an update 3 versions old, and is 2 rounds older now: 5 missed.
    [(VersionAge(), [5.0, 9.0, 1.0, 9.0]), (AgeReduction(), [4.0, 0.0, 1.0, 7.0])],
)
def test_version_ages_follow_from_what_was_received(policy, expected):
    point = AccessPoint(policy, 4, Streams(0))
    offered = [[3, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 9, 0, 2]]
    point.describe(ages=[6, 6, 6, 6])
    for staleness, heard in zip(offered, ([0], [2], [], None), strict=True):
        point.describe(staleness=np.array(staleness))
        if heard is None:
            break
        point.plan(UPLINK)
        point.receive(np.array(heard, int))
    view = point.view(UPLINK)
    assert view.ages.tolist() == [2, 9, 1, 9]
    found = policy.utility(view, Streams(0).policy(0))
    np.testing.assert_allclose(found, f_alpha(expected, 0.5))


@pytest.mark.parametrize(
    ("policy", "same"),
    [("age-reduction", "age-based"), ("version-age", "age-based"), ("freshest", "max-pack")],
)
def test_in_synchronous_rounds_they_are_policies_that_exist(policy, same):
    """Every update starts from the newest model: the same owners and models."""
    one, two = (simulate(tiny(), name, 3) for name in (policy, same))
    np.testing.assert_array_equal(one.owner, two.owner)
    np.testing.assert_array_equal(one.accuracy, two.accuracy)


def test_where_updates_are_held_age_reduction_serves_fresher_ones():
    pace = {"kind": "periodic", "period_slots": 2.0, "waiting": "hold"}
    computing = {"kind": "slots", "median_slots": 1.0, "sigma": 0.5}
    scenario = tiny(pace=pace, timing="slots", **{"devices.computing": computing, "run.rounds": 40})
    stale = {
        name: np.concatenate(simulate(scenario, name, 1).staleness).mean()
        for name in ("age-based", "age-based:cap=2", "age-reduction", "freshest")
    }
    assert stale["freshest"] < stale["age-reduction"] < stale["age-based"]
    assert stale["age-based:cap=2"] < stale["age-based"]


def test_mistakes():
    with pytest.raises(ValueError, match=r"cap must be in \(0, inf\), not 0"):
        AgeBased(cap=0.0)
    with pytest.raises(ValueError, match="alpha must be at most 1"):
        VersionAge(alpha=1.5)
    assert fresh_state(2).per_ue["lag"].tolist() == [0.0, 0.0]
