"""Clients that never answer as they should: what they cost, and what the shadow knows of them."""

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from agewise import policies
from agewise.flower import Clients, Slots
from agewise.scheduling import NoPause
from tests.scenarios import tiny
from tests_extra.flower.federations import InProcessGrid, Problem, id_of

CLIENTS, PLACES, ROUNDS = 100, 10, 60
SIZES = {id_of(k): 5 for k in range(CLIENTS)}


class Federation:
    """A hundred clients with a model of two weights; ``broken`` ones raise."""

    def __init__(self, broken):
        self.broken, self.problem = frozenset(broken), Problem(tiny())
        app = ClientApp()
        app.train()(self.train)
        self.grid = InProcessGrid(app, lambda _: range(CLIENTS))

    def train(self, message, context):
        if context.node_config["partition-id"] in self.broken:
            raise RuntimeError("out of memory")
        model = message.content["arrays"]["model"].numpy() + 1.0
        reply = {
            "arrays": ArrayRecord({"model": Array(model)}),
            "metrics": MetricRecord({"num-examples": 5, "start-loss": 0.5}),
        }
        return Message(RecordDict(reply), reply_to=message)

    def start(self, policy, rounds=ROUNDS, **options):
        options = {"clients": Clients(SIZES)} | options
        strategy = self.problem.scheduled(policy, Slots(PLACES), **options)
        start = ArrayRecord({"model": Array(np.zeros(2, np.float32))})
        self.result = strategy.start(self.grid, start, rounds, timeout=5.0)
        return strategy


def asked_of(history):
    return np.concatenate(history.scheduled)


@pytest.mark.parametrize("policy", policies.names())
def test_broken_clients_cost_little(policy):
    """10 broken of 100 get at most 12% of the messages of 60 rounds."""
    history = Federation(range(10)).start(policy).history()
    asked = asked_of(history)
    assert len(history.scheduled) == ROUNDS
    assert np.isin(asked, range(10)).mean() <= 0.12


def test_without_retry_they_capture_age_based():
    history = Federation(range(10)).start("age-based", 30, retry=NoPause()).history()
    assert np.isin(asked_of(history)[-100:], range(10)).all()


def test_the_run_goes_on_while_a_few_answer():
    """90 of 100 are broken: nobody waits for ever, and the ten are heard."""
    strategy = Federation(range(90)).start("age-based")
    assert strategy.history().participation[90:].min() > 0


@pytest.mark.parametrize("broken", [0, 5, 10])
def test_the_shadow_tells_what_the_policy_gets_live(broken):
    """They differ by what the shadow could not know: clients that had never been asked."""
    federation, rounds = Federation(range(broken)), 30
    strategy = federation.start("random", rounds, shadow=["age-based"])
    (shadow,) = strategy.shadow_histories()
    live = Federation(range(broken)).start("age-based", rounds).history()
    metrics = federation.result.train_metrics_clientapp.values()
    unknown = sum(sum(each["agewise-shadow-unknown"]) for each in metrics)
    received = [sum(map(len, history.received)) for history in (shadow, live)]
    assert 0 < unknown < 0.3 * received[0]
    assert 0 <= received[0] - received[1] <= min(unknown, broken)
    assert received[1] >= 26 * PLACES
    assert shadow.ages.mean() == pytest.approx(live.ages.mean(), rel=0.02)


def test_the_same_policy_in_the_shadow_is_the_live_one():
    strategy = Federation(range(10)).start("age-based", 30, shadow=["age-based:alpha=0.9"])
    live, (shadow,) = strategy.history(), strategy.shadow_histories()
    assert shadow.ages.tolist() == live.ages.tolist()
