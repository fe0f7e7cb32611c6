"""What every registered policy must do, whatever it prefers."""

import numpy as np
import pytest

from agewise import RoundView, Streams, Uplink, policies
from agewise.age import next_ages
from tests.cells import draw_gains

NAMES = policies.names()


def run(policy, gains_of, ages, power=1.0, threshold=2.0, rounds=6, seed=0):
    """Owners of each round, and the ages after it, proving every allocation on the way."""
    memory: dict[str, np.ndarray] = {}
    owners = []
    for t in range(rounds):
        gains = gains_of(t)
        view = RoundView(Uplink(gains, power, threshold), ages, memory)
        allocation = policy.schedule(view, Streams(seed).policy(t))
        allocation.validate(gains)
        assert allocation.scheduled.size == gains.shape[0]
        owners.append(allocation.owner.tolist())
        ages = next_ages(ages, allocation.scheduled)
    return owners, ages


def cell(ues, subchannels, edge_snr_db=0.0):
    return lambda t: draw_gains(np.random.default_rng([7, t]), ues, subchannels, edge_snr_db)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("ues", "subchannels"), [(30, 10), (3, 10), (10, 10), (1, 10), (1, 1), (10, 1)]
)
@pytest.mark.parametrize("threshold", [0.0, 1.0, 4.0])
def test_allocations_are_feasible_and_not_empty(name, ues, subchannels, threshold):
    owners, _ = run(
        policies.make_policy(name), cell(ues, subchannels, 20.0), np.zeros(ues, int),
        threshold=threshold,
    )  # fmt: skip
    assert any(owner >= 0 for round_ in owners for owner in round_)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_schedule(name):
    first = run(policies.make_policy(name), cell(30, 10), np.zeros(30, int))
    again = run(policies.make_policy(name), cell(30, 10), np.zeros(30, int))
    assert first[0] == again[0]


@pytest.mark.parametrize("name", NAMES)
def test_one_object_serves_two_runs_at_once(name):
    """Whatever evolves is in the memory: runs that take turns do not disturb each other."""
    policy = policies.make_policy(name)
    alone = run(policy, cell(30, 10), np.zeros(30, int))
    run(policy, cell(30, 10, 20.0), np.arange(30), seed=5)
    assert run(policy, cell(30, 10), np.zeros(30, int))[0] == alone[0]


@pytest.mark.parametrize("name", NAMES)
def test_nobody_reaches_the_threshold(name):
    owners, ages = run(policies.make_policy(name), cell(5, 4), np.arange(5), threshold=1e3)
    assert all(owner == -1 for round_ in owners for owner in round_)
    assert ages.tolist() == [6, 7, 8, 9, 10]


@pytest.mark.parametrize("name", NAMES)
def test_zero_gains_are_never_used(name):
    def half_dead(t):
        gains = cell(12, 6, 20.0)(t)
        gains[:, ::2] = 0.0
        gains[3] = 0.0
        return gains

    owners, _ = run(policies.make_policy(name), half_dead, np.zeros(12, int), threshold=0.0)
    for round_ in owners:
        assert all(owner == -1 for owner in round_[::2])
        assert all(owner >= 0 for owner in round_[1::2])
        assert 3 not in round_


@pytest.mark.parametrize("name", NAMES)
def test_huge_ages(name):
    run(policies.make_policy(name), cell(10, 4), np.full(10, 10**15))


@pytest.mark.parametrize("name", NAMES)
def test_the_view_is_left_as_it_was(name):
    gains, ages = cell(10, 4)(0), np.arange(10)
    before = gains.copy(), ages.copy()
    view = RoundView(Uplink(gains, 1.0, 2.0), ages)
    policies.make_policy(name).schedule(view, Streams(0).policy(0))
    np.testing.assert_array_equal(gains, before[0])
    np.testing.assert_array_equal(ages, before[1])


@pytest.mark.parametrize("name", NAMES)
def test_it_is_described(name):
    assert len(policies.summary(name)) > 20
    policy = policies.make_policy(name)
    assert str(policy).startswith(name)
    assert policies.make_policy(name, **policy.parameters) == policy
