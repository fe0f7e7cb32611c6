"""How long a round takes the UEs, and what becomes of those that are late."""

import math

import numpy as np
import pytest

from agewise import Allocation, Streams, Uplink
from agewise.accounting import compute_slots, upload_slots
from agewise.radio import make_channel
from agewise.scenario import ScenarioError
from agewise.simulation import rounds, simulate
from tests.scenarios import tiny

HURRIED = {
    "kind": "slots", "compute_slots": 0.6, "compute_sigma": 1.0, "deadline_slots": 1.5,
    "offer": "everyone",
}  # fmt: skip


def slots(median, sigma):
    return {"kind": "slots", "compute_slots": median, "compute_sigma": sigma, "deadline_slots": 3.0}


def test_computing_times_follow_the_seed():
    scenario = tiny(timing=slots(2.0, 0.5), **{"cell.ues": 50})
    first, again, other = (compute_slots(scenario, Streams(seed)) for seed in (4, 4, 5))
    assert first.tolist() == again.tolist()
    assert not np.isin(first, other).any()
    assert np.unique(first).size == 50


def test_computing_times_are_log_normal():
    """The sample median of n normal draws has the standard error 1.2533 sigma / sqrt(n)."""
    count, sigma = 20_000, 0.7
    scenario = tiny(timing=slots(2.0, sigma), **{"cell.ues": count})
    logs = np.log(compute_slots(scenario, Streams(1)))
    assert abs(np.median(logs) - math.log(2.0)) < 4.5 * 1.2533 * sigma / math.sqrt(count)
    assert abs(logs.std() - sigma) < 4.5 * sigma / math.sqrt(2 * count)


def test_without_timing_and_without_spread():
    assert compute_slots(tiny(**{"cell.ues": 3}), Streams(0)).tolist() == [0.0, 0.0, 0.0]
    alike = tiny(timing=slots(2.0, 0.0), **{"cell.ues": 3})
    assert compute_slots(alike, Streams(0)).tolist() == [2.0, 2.0, 2.0]


def test_an_upload_at_the_threshold_takes_one_slot():
    assert upload_slots(np.array([2.0, 4.0, 1.0]), 2.0).tolist() == [1.0, 0.5, 2.0]
    assert upload_slots(np.array([3.0]), 0.0).tolist() == [0.0]


@pytest.mark.parametrize("threshold", [0.0, 4.0])
def test_who_is_late_is_scheduled_but_not_received_and_goes_on_ageing(threshold):
    scenario, seed = tiny(timing=HURRIED, **{"run.rounds": 20, "threshold.rate": threshold}), 2
    streams = Streams(seed)
    channel = make_channel(scenario, streams)
    computing = compute_slots(scenario, streams)
    ages, counts, late = np.zeros(12, int), np.zeros(12, int), 0
    for t, record in enumerate(rounds(scenario, "max-pack", seed)):
        uplink = Uplink(channel.block(t).true, channel.power_budget, threshold)
        rate = Allocation.of(uplink, record.owner, record.power).rate
        in_time = [ue for ue in record.scheduled if computing[ue] + threshold / rate[ue] <= 1.5]
        assert record.received.tolist() == in_time
        late += record.scheduled.size - len(in_time)
        counts[in_time] += 1
        ages += 1
        ages[in_time] = 0
        assert record.ages.tolist() == ages.tolist()
        assert record.participation.tolist() == counts.tolist()
    assert late > 0
    assert counts.sum() > 0


@pytest.mark.parametrize("policy", ["age-based", "max-pack", "random", "optimal"])
def test_policies_are_only_offered_ues_that_can_be_in_time(policy):
    """An upload at the threshold takes a slot: who computes longer than until then is left out."""
    timing = HURRIED | {"offer": "in-time", "deadline_slots": 1.6}
    scenario = tiny(timing=timing, **{"run.rounds": 12})
    computing = compute_slots(scenario, Streams(2))
    in_time = set(np.flatnonzero(computing <= 0.6).tolist())
    assert 0 < len(in_time) < 12
    heard: set[int] = set()
    for record in rounds(scenario, policy, 2):
        assert record.received.tolist() == record.scheduled.tolist()
        heard |= set(record.scheduled.tolist())
    assert heard
    assert heard <= in_time


def test_the_optimum_is_that_of_those_who_were_offered():
    sampled = {"kind": "sampled", "every": 1, "work_limit": 100_000}
    scenario = tiny(timing=HURRIED | {"offer": "in-time"}, **{"run.optimum": sampled})
    everyone = scenario.with_(**{"timing.offer": "everyone"})
    offered = simulate(scenario, "optimal", 2)
    np.testing.assert_allclose(offered.numbers("weight"), offered.numbers("optimum"))
    # Ages of those left out grow for ever, and would be the larger part of any optimum.
    assert (
        simulate(everyone, "age-based", 2).numbers("optimum")[-1] > offered.numbers("optimum")[-1]
    )


def test_a_deadline_that_nobody_meets_leaves_the_model_as_it_was():
    hopeless = HURRIED | {"compute_slots": 100.0, "compute_sigma": 0.0}
    records = list(rounds(tiny(timing=hopeless), "round-robin"))
    assert all(record.received.size == 0 < record.scheduled.size for record in records)
    assert len({(record.accuracy, record.test_loss) for record in records}) == 1
    assert records[-1].ages.tolist() == [8] * 12


def test_a_generous_deadline_changes_nothing():
    generous = HURRIED | {"deadline_slots": 1e9}
    for timed, plain in zip(
        rounds(tiny(timing=generous), "age-based", 1), rounds(tiny(), "age-based", 1),
        strict=True,
    ):  # fmt: skip
        assert timed.received.tolist() == plain.received.tolist()
        assert timed.test_loss == plain.test_loss


@pytest.mark.parametrize("change", [{"deadline_slots": 0.0}, {"compute_sigma": -1.0}])
def test_times_that_cannot_be(change):
    with pytest.raises(ScenarioError, match=f"timing.{next(iter(change))}"):
        tiny(timing=HURRIED | change)
