"""The bound on the mean age: against all schedules, all policies, and closed forms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agewise import Scenario, Streams, Uplink, policies, schedule_traffic
from agewise.policies import make_policy
from agewise.spectrum import count_needs, least_mean_age, needs_to_deliver
from tests.scenarios import tiny

IN_TRAFFIC = [name for name in policies.names() if not make_policy(name).reads]
PACKED = ["age-based:packing=auction", "age-based:packing=exact", "age-based:alpha=-1"]


def freshest_of_all_schedules(needs, subchannels):
    """The least mean age over all choices of UEs whose needs fit, block by block."""
    blocks, ues = needs.shape
    sums = {(0,) * ues: 0}
    for need in needs.tolist():
        after = {}
        for ages, total in sums.items():
            for chosen in itertools.product([False, True], repeat=ues):
                served = [n for n, one in zip(need, chosen, strict=True) if one]
                if 0 in served or sum(served) > subchannels:
                    continue
                new = tuple(0 if one else a + 1 for a, one in zip(ages, chosen, strict=True))
                after[new] = min(after.get(new, math.inf), total + sum(new))
        sums = after
    return min(sums.values()) / (blocks * ues)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.randoms(use_true_random=False))
def test_no_schedule_at_all_is_below_it(ues, subchannels, blocks, random):
    needs = np.array([[random.randint(0, subchannels) for _ in range(ues)] for _ in range(blocks)])
    bound = least_mean_age(count_needs(needs, subchannels))
    freshest = freshest_of_all_schedules(needs, subchannels)
    assert bound <= freshest
    if subchannels >= needs.sum(axis=1).max() and needs.all():
        assert freshest == bound == 0


@pytest.mark.parametrize("policy", [*IN_TRAFFIC, *PACKED])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"threshold.rate": 1.0, "channel.link.edge_snr_db": 0.0},
        {"threshold.rate": 6.0, "cell.subchannels": 3},
        {"threshold.rate": 0.0},
        {"channel.csi": {"kind": "estimated", "pilot_snr_db": 5.0}},
        {"channel.csi": "statistics", "threshold.rate": 1.0},
    ],
    ids=str,
)
def test_no_policy_is_below_it(policy, changes):
    for seed, rounds in ((0, 60), (1, 7)):
        traffic = schedule_traffic(tiny(**changes), policy, rounds, seed=seed)
        assert traffic.mean_age.mean() >= traffic.age_bound
        assert traffic.above_bound >= 0 or traffic.age_bound == 0


@pytest.mark.parametrize("policy", [*IN_TRAFFIC, *PACKED])
def test_no_policy_is_below_it_with_a_threshold_per_ue(policy):
    channel, thresholds = tiny().make_channel(Streams(2)), np.linspace(0.5, 6.0, 12)
    for arrivals in (None, 0.4):
        traffic = schedule_traffic(
            channel, policy, 60, rate_threshold=thresholds, arrivals=arrivals, seed=2
        )
        assert traffic.mean_age.mean() >= traffic.age_bound > 0.5


def test_ideal_links_are_served_in_turn():
    """N divides K: round-robin is at the bound, but for the ages of 0 before the first slots."""
    traffic = schedule_traffic(
        tiny(**{"threshold.rate": 0.0, "cell.subchannels": 4}), "round-robin", 750
    )
    deliveries = 750 * 4 / 12
    finite = 751 / 750 * (751 / (deliveries + 1) - 1) / 2
    assert traffic.age_bound == pytest.approx(finite, rel=1e-9)
    assert 0 <= traffic.above_bound < 1 / 250  # at most a delivery of each UE less
    counts = np.zeros((12, 5), int)
    counts[:, 1] = 750
    assert least_mean_age(counts, long_run=True) == pytest.approx((12 / 4 - 1) / 2)


def test_unequal_needs_share_by_their_roots():
    """Needs m_k in all blocks: q_k goes as 1 / sqrt(m_k), by Lagrange."""
    counts = np.zeros((6, 5), int)
    counts[:3, 1] = counts[3:, 4] = 1000
    least = (3 * 1 + 3 * 2) ** 2 / 4 / 12 - 0.5
    assert least_mean_age(counts, long_run=True) == pytest.approx(least)
    assert least_mean_age(1000 * counts) == pytest.approx(least, rel=1e-5)


def test_cheap_blocks_come_first():
    """A need of 1 in a quarter of the blocks and of 3 in the others, one UE on one subchannel."""
    counts = np.array([[0, 250, 0, 750]] * 12)
    # q = 1/4 each is just affordable from the cheap blocks alone: 12 / 4 = 3 subchannels.
    assert least_mean_age(counts, long_run=True) == pytest.approx((4 - 1) / 2)


def test_edges():
    assert math.isnan(least_mean_age(np.zeros((0, 4), int)))
    never = count_needs(np.zeros((10, 2), int), 3)
    assert least_mean_age(never) == pytest.approx(11 / 2)
    assert least_mean_age(never, long_run=True) == math.inf
    assert least_mean_age(count_needs(np.zeros((10, 2), int), 0)) == pytest.approx(11 / 2)
    assert least_mean_age(count_needs(np.ones((10, 2), int), 3)) == 0


def test_needs_count_on_both_channels():
    seen = Uplink([[3.0, 3.0], [3.0, 0.0], [1.0, 1.0]], 1.0, [1.0, 1.0, 1.0])
    assert needs_to_deliver(seen).tolist() == [1, 1, 0]
    true = np.array([[2.0, 2.0], [0.0, 0.0], [3.0, 3.0]])
    assert needs_to_deliver(seen, true).tolist() == [2, 0, 0]


def test_the_cell_of_the_paper():
    """The figure of the documents: no policy of the paper's cell has a mean age below 3.2."""
    scenario = Scenario.preset("paper")
    traffic = schedule_traffic(scenario, "whittle", 300)
    assert 3.0 < traffic.age_bound < 3.3
    assert 0 < traffic.above_bound < 0.15
