"""Uploads that are lost because the channel is not what it looked like."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from agewise import Scenario, Streams, compare, schedule_traffic, simulate
from agewise.age import next_ages
from agewise.cli import app
from agewise.engines import Inline
from agewise.policies import AgeBased, MaxWeight, Whittle, make_policy
from agewise.policies._estimates import chances_of_success
from agewise.radio import Block
from agewise.records import OUTCOMES, History
from agewise.scheduling import AccessPoint, State
from agewise.spectrum import Uplink, solve
from tests.scenarios import tiny
from tests.views import view_of

DELAYED = {"kind": "delayed", "delay_s": 0.005, "carrier_hz": 3e9, "speed_m_s": 1.0}
LOSSY = tiny(**{"channel.csi": DELAYED, "run.rounds": 30, "learn.local_steps": 1})


@pytest.fixture(scope="module")
def history():
    return simulate(LOSSY, "age-based", 1)


def test_lost_uploads_by_hand(history):
    """Each upload is judged by the powers as planned on the true gains, and ages go on."""
    channel = LOSSY.make_channel(Streams(1))
    ages, lost = np.zeros(12, np.int64), 0
    for t in range(30):
        true = channel.block(t).true
        owner, power = history.owner[t], history.power[t]
        for i, ue in enumerate(history.scheduled[t]):
            mine = owner == ue
            rate = 0.5 * np.log2(1 + true[ue, mine] * power[mine]).sum()
            assert history.rate[t][i] == pytest.approx(rate)
            assert history.outcome[t][i] == ("received" if rate >= 4.0 else "outage")
            lost += rate < 4.0
        np.testing.assert_allclose(history.gain[t][owner >= 0], true[owner, range(5)][owner >= 0])
        ages = next_ages(ages, history.received[t])
        np.testing.assert_array_equal(history.ages[t], ages)
    counts = history.outcome_counts
    assert tuple(counts) == OUTCOMES
    assert counts["outage"] == lost > 5
    assert counts["received"] == sum(map(len, history.received)) > 5


def test_tables_say_how_many_uploads_were_lost(tmp_path):
    """The share of scheduled uploads, averaged over seeds; a column only where any was lost."""
    shown, shares = {}, {}
    for name, scenario in (
        ("lossy", LOSSY),
        ("known", LOSSY.with_(**{"channel.csi": "perfect"})),
    ):
        out = tmp_path / name
        scenario = scenario.with_(**{"run.rounds": 10})
        result = compare(scenario, ["age-based", "max-pack"], 2, out, engine=Inline(), quiet=True)
        shares[name] = {row["policy"]: row["outage"] for row in result.table().to_dicts()}
        for policy in result.policies:
            runs = [run.outcome_counts for run in result.histories(policy).values()]
            expected = np.mean([counts["outage"] / sum(counts.values()) for counts in runs])
            assert shares[name][str(policy)] == pytest.approx(expected)
        shown[name] = CliRunner().invoke(app, ["show", str(out)]).output
        rows = json.loads(CliRunner().invoke(app, ["show", str(out), "--json"]).output)["rows"]
        assert [row["outage"] for row in rows] == pytest.approx(list(shares[name].values()))
    assert min(shares["lossy"].values()) > 0.0 == max(shares["known"].values())
    assert f"{100 * max(shares['lossy'].values()):.1f}" in shown["lossy"]
    assert " lost" in shown["lossy"]
    assert "lost" not in shown["known"]


def test_outcomes_are_kept(history, tmp_path):
    history.save(tmp_path / "run.parquet")
    again = History.load(tmp_path / "run.parquet")
    assert again.frame.equals(history.frame)
    assert again.outcome_counts == history.outcome_counts


def test_nothing_is_lost_on_a_known_channel():
    for knowledge in ("perfect", {"kind": "quantised", "bits": 5, "lowest_db": -20.0,
                                  "highest_db": 10.0}):  # fmt: skip
        known = LOSSY.with_(**{"channel.csi": knowledge})
        counts = simulate(known, "max-pack", 1).outcome_counts
        assert counts.pop("received") > 0
        assert not any(counts.values())


def test_an_upload_can_be_late_or_lost():
    timing = {"kind": "slots", "deadline_slots": 2.0, "eligible": "everyone"}
    computing = {"kind": "slots", "median_slots": 1.0, "sigma": 1.0}
    late = LOSSY.with_(timing=timing, **{"devices.computing": computing})
    counts = simulate(late, "age-based", 1).outcome_counts
    assert min(counts["received"], counts["late"], counts["outage"]) > 0


def test_a_lost_upload_takes_its_whole_slot():
    """And its energy: all power of the UE for one slot of 0.1 s at 0.2 W."""
    computing = {"kind": "log-normal", "median_s": 0.0, "sigma": 0.0, "power_w": 0.0}
    timing = {
        "kind": "seconds",
        "slot_s": 0.1,
        "transmit_power_w": 0.2,
        "downlink": {"kind": "constant", "seconds": 0.0},
    }
    timed = LOSSY.with_(timing=timing, **{"devices.computing": computing})
    history = simulate(timed, "age-based", 1)
    for t, outcome in enumerate(history.outcome):
        energy = np.array(history.frame["energy_j"][t])
        np.testing.assert_allclose(energy[outcome == "outage"], 0.02)
        assert (energy[outcome == "received"] <= 0.02 * (1 + 1e-9)).all()
    assert history.outcome_counts["outage"] > 0


def received_with(margin, rounds=200):
    """Uploads received by age-based scheduling without learning, and the share that was lost."""
    knowledge = DELAYED | {"delay_s": 0.01}
    cell = {"cell.ues": 30, "cell.subchannels": 10, "channel.csi": knowledge}
    scenario = Scenario.preset("paper").with_(**cell)
    channel = scenario.make_channel(Streams(4))
    access_point = AccessPoint(make_policy("age-based"), 30, Streams(4), margin=margin)
    received = sent = 0
    for t in range(rounds):
        block = channel.block(t)
        plan = access_point.plan(Uplink(block.seen, channel.power_budget, scenario.rate_threshold))
        arrived = plan.scheduled & plan.on_true_channel(block.true).reaches(scenario.rate_threshold)
        access_point.receive(np.flatnonzero(arrived))
        sent, received = sent + int(plan.scheduled.sum()), received + int(arrived.sum())
    return received, (sent - received) / sent


def test_there_is_a_best_margin():
    """Too little back-off loses uploads, too much schedules few: the best is in between.

    About 1000 uploads each on the same channels; the best differs from the ends by 90 and more.
    """
    margins = (0.0, 0.4, 3.0)
    received, outage = zip(*(received_with(margin) for margin in margins), strict=True)
    assert outage[0] > 0.2 > outage[1] > 0.05 > outage[2]
    assert received[1] > max(received[0], received[2]) + 40


def test_the_margin_is_added_to_the_threshold_of_each_ue():
    access_point = AccessPoint(make_policy("max-pack"), 3, Streams(0), margin=0.5)
    shown = access_point.mask_ineligible(Uplink(np.ones((3, 2)), 1.0, [1.0, 2.0, np.inf]))
    assert shown.rate_threshold.tolist() == [1.5, 2.5, np.inf]
    assert shown.gains.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


def test_policies_and_the_optimum_see_the_margin():
    uplink = Uplink(np.array([[200.0, 150.0], [300.0, 10.0]]), 1.0, 3.0)
    assert solve(uplink, np.ones(2)).value == 2.0
    access_point = AccessPoint(make_policy("max-pack"), 2, Streams(0), margin=1.0)
    shown = access_point.mask_ineligible(uplink)
    assert shown.rate_threshold.tolist() == [4.0, 4.0]
    plan = access_point.plan(uplink)
    assert plan.rate_threshold.tolist() == [4.0, 4.0]
    assert (plan.rate[plan.scheduled] >= 4.0 * (1 - 1e-9)).all()
    assert solve(shown, np.ones(2)).value == 1.0  # 150 carries 3.62 bits, and not 4
    # A run works out the optimum for the raised threshold: never less than what was scheduled.
    sampled = {"kind": "sampled", "every": 1, "work_limit": 100_000}
    frame = simulate(
        LOSSY.with_(**{"threshold.margin": 1.0, "run.optimum": sampled, "run.rounds": 6}),
        "age-based:packing=exact", 1,
    ).frame  # fmt: skip
    np.testing.assert_allclose(frame["weight"], frame["optimum"])


class Fickle:
    """UE 0 looks as good as UE 1, but only one in so many of its uploads arrives."""

    ue_count, subchannel_count, power_budget = 2, 1, 1.0

    def __init__(self, one_in=10**9):
        self.one_in = one_in

    def block(self, t):
        lucky = np.random.default_rng(t).random() < 1 / self.one_in
        return Block(np.full((2, 1), 100.0), np.array([[100.0 * lucky], [100.0]]), None)


def test_traffic_loses_uploads_too():
    oldest = AgeBased(ties="lowest-index")
    traffic = schedule_traffic(Fickle(), oldest, 100, rate_threshold=3.0)
    assert traffic.deliveries.tolist() == [0, 0]  # UE 0 is never younger
    assert traffic.subchannels_used == 1.0
    fair = schedule_traffic(Fickle(), "round-robin", 100, rate_threshold=3.0)
    assert fair.deliveries.tolist() == [0, 50]
    assert fair.subchannels_used == 1.0


def test_chances_of_success_fall_with_outages():
    """After n uploads of which none arrived, (0 + 1) / (n + 1) of what is in reach."""
    state = State({name: np.full(2, fill) for name, fill in Whittle.state_per_ue.items()}, {})
    uplink = Uplink(Fickle().block(0).seen, 1.0, 3.0)
    for t in range(4):
        known = {"attempts": np.full(2, t), "successes": np.array([0, t])}
        chances = chances_of_success(view_of(uplink, np.zeros(2, np.int64), state, **known))
        in_reach = (t + 2.0) / (t + 3.0)
        np.testing.assert_allclose(chances, in_reach * np.array([1 / (t + 1), 1.0]))


@pytest.mark.parametrize("policy", [MaxWeight, Whittle])
def test_policies_learn_from_outages(policy):
    """One in ten uploads of UE 0 arrives: they serve UE 1 more often than by ages alone.

    The forms for a channel that is seen before the choice take success for granted (max-weight)
    or prefer UEs that seldom succeed (whittle).
    """
    learned, trusting = (
        schedule_traffic(Fickle(10), policy(channel=channel), 1000, rate_threshold=3.0).deliveries
        for channel in ("unseen", "seen")
    )
    assert learned[0] > 20
    assert learned[1] > trusting[1] + 100
