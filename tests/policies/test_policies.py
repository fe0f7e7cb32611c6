"""What defines each policy, and the paper's two special cases."""

from dataclasses import dataclass

import numpy as np
import pytest

from agewise import Streams, Uplink, schedule
from agewise.age import next_ages
from agewise.policies import AgeBased, MaxPack, Random, RoundRobin, make_policy
from agewise.scheduling import AccessPoint
from tests import reference
from tests.cells import draw_gains
from tests.views import fresh_state, view_of


def schedules(policy, ues, subchannels, threshold, rounds, seed=0, edge_snr_db=10.0):
    """The scheduled UEs of each round, on channels that depend on the round alone."""
    access_point = AccessPoint(policy, ues, Streams(seed))
    for t in range(rounds):
        gains = draw_gains(np.random.default_rng([3, t]), ues, subchannels, edge_snr_db)
        scheduled = np.flatnonzero(access_point.plan(Uplink(gains, 1.0, threshold)).scheduled)
        access_point.receive(scheduled)
        yield scheduled.tolist()


@pytest.mark.parametrize(("ues", "subchannels"), [(100, 20), (6, 3), (5, 5), (3, 8), (4, 1)])
def test_without_a_threshold_age_based_is_round_robin(ues, subchannels):
    """Special case ii: R_s = 0 leads to N-round-robin."""
    by_age = schedules(AgeBased(ties="lowest-index"), ues, subchannels, 0.0, 25)
    in_turn = schedules(RoundRobin(), ues, subchannels, 0.0, 25)
    assert list(by_age) == list(in_turn)


@pytest.mark.parametrize("policy", [AgeBased(), AgeBased(ties="lowest-index"), RoundRobin()])
def test_without_a_threshold_nobody_waits_longer_than_a_cycle(policy):
    """Where N does not divide K the order inside a cycle is a tie, but its length is not."""
    last = np.full(7, -1)
    for t, served in enumerate(schedules(policy, 7, 3, 0.0, 40)):
        assert len(served) == 3
        assert (t - last[served]).max() <= 3
        last[served] = t


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5, 1.0])
def test_without_a_threshold_random_ties_still_serve_everyone_in_turn(alpha):
    rounds = list(schedules(AgeBased(alpha=alpha), 100, 20, 0.0, 15))
    for start in (0, 5, 10):
        served = [ue for scheduled in rounds[start : start + 5] for ue in scheduled]
        assert sorted(served) == list(range(100))
    assert rounds[0] != list(range(20))


def test_equal_weights_make_age_based_max_pack():
    """Special case i: with a constant f, ABS packs as MaxPack does."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        gains = draw_gains(rng, 30, 10, 0.0)
        same = {"power": 1.0, "rate_threshold": 2.0, "ties": "lowest-index"}
        by_age = schedule(gains, np.full(30, 4), policy="age-based", **same)
        packed = schedule(gains, np.arange(30), policy="max-pack", **same)
        assert by_age.owner.tolist() == packed.owner.tolist()


def test_age_based_follows_the_papers_score():
    rng = np.random.default_rng(1)
    for alpha in (0.0, 0.5, 1.0):
        gains, ages = draw_gains(rng, 20, 8, 0.0), rng.integers(0, 9, 20)
        made = schedule(
            gains, ages, power=1.0, rate_threshold=2.0, alpha=alpha, ties="lowest-index"
        )
        weights = [reference.f_alpha(int(age), alpha) for age in ages]
        owner, _ = reference.pack(gains.tolist(), weights, range(20), 1.0, 2.0)
        assert made.owner.tolist() == owner


def test_max_pack_ignores_ages_and_its_index_ties_starve():
    """With index ties and a threshold that one subchannel meets, the same UEs are served."""
    flat = np.full((40, 20), 10.0)
    rule = {"power": 1.0, "rate_threshold": 1.0, "policy": "max-pack"}
    by_index = {tuple(schedule(flat, np.arange(40), ties="lowest-index", seed=s, **rule).owner)
                for s in range(5)}  # fmt: skip
    by_chance = {tuple(schedule(flat, np.arange(40), seed=s, **rule).owner) for s in range(5)}
    assert by_index == {tuple(range(20))}
    assert len(by_chance) == 5


def test_round_robin_keeps_the_place_of_those_that_cannot_be_served():
    gains = np.ones((4, 1))
    state = fresh_state(4)
    served = []
    for blocked in (0, 0, 2, None, None):
        now = gains.copy()
        if blocked is not None:
            now[blocked] = 0.0
        view = view_of(Uplink(now, 3.0, 1.0), np.zeros(4, int), state)
        served.append(int(RoundRobin().schedule(view, Streams(0).policy(0)).owner[0]))
    assert served == [1, 2, 0, 3, 1]


def test_round_robin_in_single_calls_goes_round_by_the_ages():
    ages, served = np.zeros(6, dtype=np.int64), []
    for _ in range(4):
        made = schedule(np.ones((6, 2)), ages, power=3.0, rate_threshold=1.0, policy="round-robin")
        ages = next_ages(ages, made.scheduled)
        served.append(np.flatnonzero(made.scheduled).tolist())
    assert served == [[0, 1], [2, 3], [4, 5], [0, 1]]


@pytest.mark.parametrize("age", [1e308, 2.0**53 + 2, 2**63 - 1])
def test_ages_beyond_all_rounds_are_refused(age):
    """Their squares, or one round more, would overflow."""
    gains = np.ones((2, 1))
    schedule(gains, [2**53, 1], power=1.0, rate_threshold=0.1, policy="max-weight")
    with pytest.raises(ValueError, match=r"ages must be at most 2\*\*53 rounds: .* UE 1 is"):
        schedule(gains, [0, age], power=1.0, rate_threshold=0.1, policy="max-weight")


def test_a_load_that_lets_nobody_send_is_refused():
    with pytest.raises(ValueError, match=r"load must be in \[1e-09, inf\), not 9.99989e-321"):
        make_policy("markov:load=1e-320")
    schedule(np.ones((2, 1)), [0, 1], power=1.0, rate_threshold=0.1, policy="markov:load=1e-9")


def test_a_policy_that_returns_nothing_is_named():
    @dataclass(frozen=True)
    class Broken(Random):
        def schedule(self, view, rng):
            return None

    with pytest.raises(ValueError, match=r"random in round 0: returned None instead"):
        schedule(np.ones((2, 2)), [0, 0], power=1.0, rate_threshold=0.0, policy=Broken())


def test_random_serves_everyone_alike():
    counts = np.zeros(10)
    rounds = 2000
    for seed in range(rounds):
        counts += schedule(
            np.ones((10, 4)), np.zeros(10), power=1.0, rate_threshold=0.0, policy="random",
            seed=seed,
        ).scheduled  # fmt: skip
    expected = rounds * 0.4
    spread = np.sqrt(rounds * 0.4 * 0.6)
    assert np.abs(counts - expected).max() < 4 * spread


def test_policies_are_values():
    assert AgeBased(alpha=0.5) == AgeBased()
    assert hash(MaxPack()) == hash(MaxPack(ties="random"))
    assert str(AgeBased(alpha=0.25)) == "age-based:alpha=0.25"
    assert str(Random()) == "random"
    assert str(RoundRobin()) == "round-robin"
    with pytest.raises(AttributeError):
        AgeBased().alpha = 1.0
    with pytest.raises(ValueError, match="alpha must be at most 1"):
        AgeBased(alpha=1.01)
    with pytest.raises(ValueError, match="random, lowest-index"):
        MaxPack(ties="first")
    assert AgeBased(alpha=3.0, form="continuous").alpha == 3.0
