"""A live federation decides as the simulator does."""

import numpy as np
import pytest

from agewise import Scenario, policies, simulate
from agewise.flower import Modelled
from agewise.learn import WeightedAverage
from tests.scenarios import tiny
from tests_extra.flower.federations import Problem

ROUNDS, DEADLINE = 8, 3.5
#: What the access point sees is old, so that uploads are lost, though it schedules with a margin.
LOSSY = tiny(
    **{
        "channel.csi": {
            "kind": "delayed",
            "delay_s": 0.02,
            "carrier_hz": 3e9,
            "speed_m_s": 1.0,
        },
        "threshold.margin": 0.2,
        "retry": "back-off-by-turns",
        "devices.samples_sigma": 0.5,
    }
)
#: Some UEs are always late and the others never: these are the clients that fail.
TIMED = tiny(
    **{
        "devices.computing": {"kind": "slots", "median_slots": 1.0, "sigma": 1.0},
        "timing": {
            "kind": "slots",
            "deadline_slots": DEADLINE,
            "eligible": "everyone",
        },
        "retry": "back-off-by-turns",
        "devices.samples_sigma": 0.5,
    }
)


def presence(t):
    """Clients 9 to 11 join before round 2, client 3 is away in rounds 3 to 5."""
    there = range(12) if t >= 2 else range(9)
    return [k for k in there if not (k == 3 and 3 <= t <= 5)]


@pytest.mark.parametrize("policy", policies.names())
def test_ages_and_accuracies_are_those_of_simulate(policy, tmp_path):
    """Clients join, leave and fail; the recorded links, simulated, give the same run."""
    links = Modelled(TIMED, seed=3)
    computing = links.compute_slots(12)
    failing = frozenset(np.flatnonzero(computing + 1.0 > DEADLINE).tolist())
    assert 0 < len(failing) < 12
    assert not ((computing + 1.0 > DEADLINE) & (computing < DEADLINE)).any()
    problem = Problem(TIMED, seed=3, fails=failing)
    strategy = problem.scheduled(policy, links, aggregation=WeightedAverage(), folder=tmp_path)
    result = problem.start(strategy, ROUNDS, presence)
    live = strategy.history()
    simulated = simulate(Scenario.read(live.info.scenario), policy, seed=3)
    assert [x.tolist() for x in live.scheduled] == [x.tolist() for x in simulated.scheduled]
    assert [x.tolist() for x in live.received] == [x.tolist() for x in simulated.received]
    assert live.ages.tolist() == simulated.ages.tolist()
    assert strategy.ages.tolist() == simulated.ages[-1].tolist()
    assert live.accuracy.tolist() == simulated.accuracy.tolist()
    assert live.owner.tolist() == simulated.owner.tolist()
    assert live.eligible.need.tolist() == simulated.eligible.need.tolist()
    measured = [result.evaluate_metrics_serverapp[r]["accuracy"] for r in range(1, ROUNDS + 1)]
    assert measured == simulated.accuracy.tolist()


@pytest.mark.parametrize("policy", policies.names())
def test_uploads_that_the_true_channel_loses_are_lost(policy):
    """Every client replies in time, and a reply that the simulator loses counts for nothing."""
    problem = Problem(LOSSY, seed=1)
    strategy = problem.scheduled(policy, Modelled(LOSSY, seed=1), aggregation=WeightedAverage())
    result = problem.start(strategy, ROUNDS)
    live, simulated = strategy.history(), simulate(LOSSY, policy, seed=1)
    assert live.outcome_counts == simulated.outcome_counts
    assert live.outcome_counts["outage"] > 0
    assert [x.tolist() for x in live.outcome] == [x.tolist() for x in simulated.outcome]
    assert live.ages.tolist() == simulated.ages.tolist()
    assert live.accuracy.tolist() == simulated.accuracy.tolist()
    assert [x.tolist() for x in live.rate] == [x.tolist() for x in simulated.rate]
    for r, outcomes in enumerate(simulated.outcome, start=1):
        lost = simulated.scheduled[r - 1][outcomes == "outage"].tolist()
        assert result.train_metrics_clientapp[r]["agewise-lost"] == lost


def test_what_was_seen_and_what_was_met_are_replayed(tmp_path):
    """The trace has both; the policy in the shadow loses its own uploads."""
    problem = Problem(LOSSY, seed=1)
    options = {"aggregation": WeightedAverage(), "shadow": ["max-pack"], "folder": tmp_path}
    strategy = problem.scheduled("age-based", Modelled(LOSSY, seed=1), **options)
    problem.start(strategy, ROUNDS, presence)
    live, (shadow,) = strategy.history(), strategy.shadow_histories()
    scenario = Scenario.read(live.info.scenario)
    for found in (live, shadow):
        simulated = simulate(scenario, found.info.policy.name, seed=1)
        assert found.outcome_counts["outage"] > 0
        assert found.outcome_counts == simulated.outcome_counts
        assert found.ages.tolist() == simulated.ages.tolist()


def test_links_with_a_budget_and_a_payload_are_replayed(tmp_path):
    """The time of a slot and the power in watts are written beside the trace, which has neither."""
    scenario = Scenario.preset("physical-timed").with_(
        **{
            "cell.ues": 12,
            "cell.subchannels": 5,
            "data.dataset": "synthetic",
            "run.rounds": ROUNDS,
            "retry": "back-off-by-turns",
        }
    )
    problem = Problem(scenario, seed=2)
    links = Modelled(scenario, seed=2)
    strategy = problem.scheduled("age-based", links, aggregation=WeightedAverage(), folder=tmp_path)
    problem.start(strategy, ROUNDS)
    simulated = simulate(scenario, "age-based", seed=2)
    replayed = simulate(Scenario.load(tmp_path / "scenario.toml"), "age-based", seed=2)
    assert strategy.history().ages.tolist() == simulated.ages.tolist() == replayed.ages.tolist()
    assert replayed.accuracy.tolist() == simulated.accuracy.tolist()
    assert replayed.numbers("seconds") == pytest.approx(simulated.numbers("seconds"))
    assert replayed.energy_j == pytest.approx(simulated.energy_j)


def test_uploads_after_the_modelled_deadline_are_lost():
    """Nobody fails: those who are late in the simulator's slots are late here."""
    problem = Problem(TIMED, seed=3)
    strategy = problem.scheduled(
        "age-based", Modelled(TIMED, seed=3), aggregation=WeightedAverage()
    )
    problem.start(strategy, ROUNDS)
    simulated = simulate(TIMED, "age-based", seed=3)
    assert strategy.history().outcome_counts == simulated.outcome_counts
    assert simulated.outcome_counts["late"] > 0
    assert strategy.history().ages.tolist() == simulated.ages.tolist()


def test_clients_that_differ_are_scheduled_as_in_the_simulator(tmp_path):
    """Power, payload, thresholds by the time that is left, and who is there when."""
    still = {"kind": "log-normal", "median_s": 0.2, "sigma": 0.3, "power_w": 1.0}
    away = {"kind": "markov", "mean_on_rounds": 3.0, "mean_off_rounds": 2.0}
    classes = {
        "phones": {"share": 0.5, "power_db": 6.0, "computing": still},
        "sensors": {
            "share": 0.5, "payload_share": 0.5, "computing": still, "availability": away,
        },
    }  # fmt: skip
    scenario = tiny(
        threshold={"kind": "time-left", "payload_bits": 6000.0},
        timing={
            "kind": "seconds", "downlink": {"kind": "constant", "seconds": 0.0}, "slot_s": 0.1,
            "transmit_power_w": 0.1,
            "deadline_s": 0.4,
        },
        devices={"kind": "classes", "classes": classes},
        **{"cell.subchannel_bandwidth_hz": 15e3, "run.rounds": ROUNDS},
    )  # fmt: skip
    problem = Problem(scenario, seed=2)
    links = Modelled(scenario, seed=2)
    strategy = problem.scheduled("age-based", links, aggregation=WeightedAverage(), folder=tmp_path)
    problem.start(strategy, ROUNDS)
    simulated = simulate(scenario, "age-based", seed=2)
    replayed = simulate(Scenario.load(tmp_path / "scenario.toml"), "age-based", seed=2)
    live = strategy.history()
    assert live.owner.tolist() == simulated.owner.tolist() == replayed.owner.tolist()
    assert live.ages.tolist() == simulated.ages.tolist() == replayed.ages.tolist()
    assert live.accuracy.tolist() == simulated.accuracy.tolist() == replayed.accuracy.tolist()
