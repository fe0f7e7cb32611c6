"""Updates that come after the deadline count in the round in which they come, less the older."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from agewise import simulate
from agewise.flower import Modelled, Slots
from agewise.flower.grid import DeadlineGrid, Reply
from agewise.flower.links import UploadTiming
from agewise.learn import (
    ConstantStaleness,
    ExponentialStaleness,
    PolynomialStaleness,
    WeightedAverage,
)
from agewise.policies import AgeBased
from tests.scenarios import tiny
from tests_extra.flower.federations import FAST, Problem, id_of

UES, PERIOD, ROUNDS = 12, 1.5, 8
#: Every UE has a subchannel in every period, so that each is heard as soon as it is ready.
PERIODIC = tiny(
    **{
        "cell.subchannels": UES,
        "threshold.rate": 1e-3,
        "timing": "slots",
        "devices.computing": {"kind": "slots", "median_slots": 1.0, "sigma": 0.8},
        "devices.samples_sigma": 0.5,
        "pace": {"kind": "periodic", "period_slots": PERIOD, "waiting": "hold"},
        "learn.staleness": {"kind": "polynomial", "exponent": 0.5},
    }
)


class PromptGrid(DeadlineGrid):
    """A grid whose deadlines pass at once: a reply is there after its round, or it is late."""

    def __init__(self, grid, poll_s):
        super().__init__(grid, poll_s)
        self.nodes = {}

    busy = property(lambda self: frozenset(self.nodes.values()))

    def exchange(self, messages, timeout_s):
        ids = self.inside.push_messages(messages)
        self.nodes |= dict(zip(ids, (m.metadata.dst_node_id for m in messages), strict=True))
        return self.arrived(ids)

    def late(self, wait_s=0.0):
        return self.arrived(list(self.nodes))

    def arrived(self, ids):
        found = {id_: self.inside.pull_messages([id_]) for id_ in ids}
        timing = UploadTiming(1.0, 1.0, 1.0)
        return [Reply(self.nodes.pop(id_), got[0], timing) for id_, got in found.items() if got]


@pytest.fixture(autouse=True)
def prompt(monkeypatch):
    monkeypatch.setattr("agewise.flower.strategy.DeadlineGrid", PromptGrid)


@pytest.fixture
def models(monkeypatch):
    """All models that are evaluated from here on."""
    learner, found = type(Problem(PERIODIC).learner), []
    evaluate = learner.evaluate

    def note(self, model):
        found.append(model.copy())
        return evaluate(self, model)

    monkeypatch.setattr(learner, "evaluate", note)
    return found


def periods_of(scenario, seed=0):
    """Periods after that in which it starts, until the update of each UE is there."""
    compute = Modelled(scenario.with_(pace="rounds"), seed).compute_slots(UES)
    return np.ceil((compute + 1.0) / scenario.pace.period_slots - 1e-9).astype(int) - 1


@dataclass(frozen=True)
class Weighing(AgeBased):
    """Sets the factors of all updates."""

    def schedule(self, view, rng):
        return super().schedule(view, rng).weighing(0.05 * (1.0 + np.arange(view.ue_count)))


def followed(staleness, scenario, rounds=ROUNDS, late="weigh", policy="age-based", **options):
    """The federation whose clients take as long as the UEs of the scenario."""
    problem, after, links = (
        Problem(scenario),
        periods_of(scenario),
        Slots(scenario.cell.subchannels),
    )
    options = {"retry": scenario.retry, "timeouts": FAST} | options
    strategy = problem.scheduled(policy, links, late=late, staleness=staleness, **options)
    result = problem.start(strategy, rounds, held=lambda k, sent, t: t < sent + after[k])
    return strategy, result


@pytest.mark.parametrize("normalised_by", ["data", "weights"])
@pytest.mark.parametrize(
    ("policy", "aggregation"),
    [("age-based", WeightedAverage()), ("age-based", None), (Weighing(), None)],
    ids=["ours", "flower", "factors"],
)
def test_the_model_is_that_of_the_simulator_in_periods(policy, aggregation, normalised_by, models):
    """The same updates arrive, as old as there."""
    staleness = PolynomialStaleness(exponent=0.5, normalised_by=normalised_by)
    scenario = PERIODIC.with_(**{"learn.staleness": staleness})
    assert len(set(periods_of(scenario).tolist())) > 2
    strategy, _ = followed(staleness, scenario, policy=policy, aggregation=aggregation)
    require_same(strategy.history(), simulate(scenario, policy), models)


@pytest.mark.parametrize("policy", ["age-based", "random"])
def test_who_is_chosen_is_the_same_where_everybody_is_ready_in_every_period(policy, models):
    """With fewer places than UEs, longer periods: who trains is decided here before the training.

    In the simulator it is decided when the updates are there, so that with UEs that need several
    periods others are chosen.
    """
    scenario = PERIODIC.with_(
        **{"cell.subchannels": 4, "pace.waiting": "restart", "pace.period_slots": 50.0}
    )
    assert not periods_of(scenario).any()
    strategy, _ = followed(scenario.learn.staleness, scenario, policy=policy)
    simulated = simulate(scenario, policy)
    require_same(strategy.history(), simulated, models)
    assert {len(x) for x in simulated.received} == {4}


def require_same(live, simulated, models):
    """The same decisions; models up to the rounding of float32, to 1e-5 of their largest weight."""
    assert [x.tolist() for x in live.received] == [x.tolist() for x in simulated.received]
    assert [x.tolist() for x in live.staleness] == [x.tolist() for x in simulated.staleness]
    assert live.ages.tolist() == simulated.ages.tolist()
    assert len(models) == 2 * ROUNDS + 1
    for ours, theirs in zip(models[1 : ROUNDS + 1], models[ROUNDS + 1 :], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * abs(theirs).max())


def test_weights_matter_and_dropping_is_something_else():
    ends = {
        str(staleness) + late: followed(staleness, PERIODIC, late=late)[1].arrays["model"].data
        for staleness in (ConstantStaleness(), ExponentialStaleness(base=0.5))
        for late in ("weigh", "drop")
    }
    assert len(set(ends.values())) == 3  # dropped updates have no weight


def test_a_late_error_is_a_failure_and_a_late_update_is_none():
    """Client 0 sends errors and client 1 updates, both two rounds late."""
    problem = Problem(tiny(), fails=frozenset({0}))
    told = []
    strategy = problem.scheduled("round-robin", Slots(12), late="weigh", on_round=told.append)
    held = lambda k, sent, t: k < 2 and t < sent + 2  # noqa: E731
    result = problem.start(strategy, 9, held=held)
    rounds = [result.train_metrics_clientapp[r] for r in range(1, 10)]
    assert rounds[0]["agewise-late"] == [0, 1]
    assert [t for t in range(9) if 1 in rounds[t]["agewise-arrived"]] == [2, 5, 8]
    assert [t for t in range(9) if 0 in rounds[t]["agewise-failed"]] == [2, 6]
    asked = [[k for k in each["agewise-chosen"] if k < 2] for each in rounds]
    history = strategy.history()
    assert [x.tolist() for x in history.staleness][2] == [2] + [0] * 10
    assert history.version[2].tolist() == [0] + [2] * 10
    assert told[2].staleness == {id_of(k): 2 if k == 1 else 0 for k in range(1, 12)}
    assert json.loads(told[2].to_json())["staleness"] == {"2": 1, "0": 10}
    assert all(told[t].staleness.keys() == received(told[t]) for t in range(9))
    assert asked[0] == [0, 1]
    assert asked[4] == [0]  # asked again after one round
    assert rounds[3]["agewise-eligible"] == 11


def received(done):
    return {id_ for id_, outcome in done.outcomes.items() if outcome == "received"}


def test_a_policy_that_sets_factors_has_late_updates_too():
    """They keep the factors of the rounds in which they were asked for."""
    problem = Problem(tiny(), seed=0)
    strategy = problem.scheduled("importance-channel", Slots(12), late="weigh")
    problem.start(strategy, 4, held=lambda _, sent, t: t <= sent)
    assert max(x.max(initial=0) for x in strategy.history().staleness) == 1
