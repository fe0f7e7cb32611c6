"""A live federation decides as the simulator does."""

import numpy as np
import pytest

from agewise import Scenario, policies, simulate
from agewise.flower import Modelled
from agewise.learn import Average
from tests.scenarios import tiny
from tests_extra.flower.federations import Problem

ROUNDS, DEADLINE = 8, 3.5
#: Some UEs are always late and the others never: these are the clients that fail.
TIMED = tiny(
    **{
        "timing": {
            "kind": "slots",
            "compute_slots": 1.0,
            "compute_sigma": 1.0,
            "deadline_slots": DEADLINE,
            "offer": "everyone",
        },
        "data.sizes": {"kind": "log-normal", "sigma": 0.5},
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
    strategy = problem.scheduled(policy, links, aggregation=Average(), folder=tmp_path)
    result = problem.start(strategy, ROUNDS, presence)
    live = strategy.history()
    simulated = simulate(Scenario.read(live.info.scenario), policy, seed=3)
    assert [x.tolist() for x in live.scheduled] == [x.tolist() for x in simulated.scheduled]
    assert [x.tolist() for x in live.received] == [x.tolist() for x in simulated.received]
    assert live.ages.tolist() == simulated.ages.tolist()
    assert strategy.ages.tolist() == simulated.ages[-1].tolist()
    assert live.accuracy.tolist() == simulated.accuracy.tolist()
    assert live.owner.tolist() == simulated.owner.tolist()
    measured = [result.evaluate_metrics_serverapp[r]["accuracy"] for r in range(1, ROUNDS + 1)]
    assert measured == simulated.accuracy.tolist()
