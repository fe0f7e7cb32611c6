"""Every strategy that Flower exports, scheduled: right ages, or one clear sentence."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp import strategy as flower
from flwr.supercore.privacy_accounting import SamplingMethod

from agewise.flower import FederationError, Slots
from tests.scenarios import tiny
from tests_extra.flower.federations import FAST, IMPATIENT, InProcessGrid, Problem

TINY = tiny()
FAILING = 5
#: What strategies need besides no evaluation by clients.
OPTIONS = {
    "FedProx": {"proximal_mu": 0.1},
    "FedAvgM": {"server_momentum": 0.9},
    "MultiKrum": {"num_nodes_to_select": 2},
    "QFedAvg": {"client_learning_rate": 0.05, "train_loss_key": "start-loss"},
}
#: Wrappers, with what they are given and what clients need beside them; they add no noise here.
PRIVATE = {
    "DifferentialPrivacyServerSideFixedClipping": ((0.0, 10.0, 4), ()),
    "DifferentialPrivacyClientSideFixedClipping": ((0.0, 10.0, 4), (fixedclipping_mod,)),
    "DifferentialPrivacyServerSideAdaptiveClipping": ((0.0, 4), ()),
    "DifferentialPrivacyClientSideAdaptiveClipping": ((0.0, 4), (adaptiveclipping_mod,)),
}
TREES = ("FedXgbBagging", "FedXgbCyclic")
PLAIN = sorted(set(flower.__all__) - {"Result", "Strategy", *PRIVATE, *TREES})
ROUND_ROBIN = [2] * 4 + [1] * 4 + [0] * 4


def plain(name):
    return getattr(flower, name)(fraction_evaluate=0.0, **OPTIONS.get(name, {}))


def private(name, inner):
    return getattr(flower, name)(inner, *PRIVATE[name][0])


def started(name, fails=()):
    """Three rounds of four clients each with this strategy inside."""
    inner = private(name, plain("FedAvg")) if name in PRIVATE else plain(name)
    mods = PRIVATE[name][1] if name in PRIVATE else ()
    problem = Problem(TINY, fails=frozenset(fails), mods=mods)
    strategy = problem.scheduled("round-robin", Slots(4), inner=inner)
    return problem, strategy, problem.start(strategy, 3)


@pytest.mark.parametrize("name", [*PLAIN, *PRIVATE])
def test_it_trains_whom_the_policy_chose(name):
    """Of strategies that go on without it, one client fails and grows older."""
    fails = () if name in PRIVATE else (FAILING,)
    problem, strategy, result = started(name, fails)
    assert [number for _, _, number in problem.grid.asked] == list(range(12))
    ages = np.array(ROUND_ROBIN)
    ages[list(fails)] = 3
    assert strategy.ages.tolist() == ages.tolist()
    model, start = (arrays["model"].numpy() for arrays in (result.arrays, problem.arrays))
    assert model.shape == start.shape
    assert np.isfinite(model).all()
    assert not np.array_equal(model, start)


@pytest.mark.parametrize("name", PRIVATE)
def test_privacy_lets_go_of_a_round_with_a_failure(name):
    """No update of that round is in the model, so nobody is younger for it."""
    _, strategy, result = started(name, {FAILING})
    assert strategy.ages.tolist() == [2] * 4 + [3] * 4 + [0] * 4
    assert result.train_metrics_clientapp[2]["agewise-arrived"] == []
    assert result.train_metrics_clientapp[2]["agewise-failed"] == [FAILING]


@pytest.mark.parametrize("fails", [(), (FAILING,)])
@pytest.mark.parametrize("name", PRIVATE)
def test_privacy_around_it(name, fails):
    problem = Problem(TINY, fails=frozenset(fails), mods=PRIVATE[name][1])
    inner = problem.scheduled("round-robin", Slots(4))
    problem.start(private(name, inner), 3)
    assert inner.ages.tolist() == (ROUND_ROBIN if not fails else [2] * 4 + [3] * 4 + [0] * 4)
    assert len(inner.history().ages) == 3


def test_a_folder_needs_the_outermost_place(tmp_path):
    problem = Problem(TINY)
    inner = problem.scheduled("round-robin", Slots(4), folder=tmp_path)
    with pytest.raises(FederationError, match="let Scheduled be the outermost strategy"):
        problem.start(private("DifferentialPrivacyServerSideFixedClipping", inner), 3)


def test_bulyan_needs_its_number_of_updates(caplog):
    """With one malicious node seven: fewer places are refused, six that fail end the run."""
    problem = Problem(TINY, fails=frozenset(range(0, 12, 2)))

    def scheduled(places):
        inner = flower.Bulyan(fraction_evaluate=0.0, num_malicious_nodes=1)
        return problem.scheduled("round-robin", Slots(places), inner=inner, timeouts=IMPATIENT)

    with pytest.raises(ValueError, match="Bulyan needs 7 updates a round .* 6 places bring fewer"):
        scheduled(6)
    strategy, message = scheduled(7), "no update got into the model in 3 rounds in a row: Bulyan"
    with pytest.raises(FederationError, match=message):
        problem.start(strategy, 20)
    assert strategy.ages.tolist() == [3] * 12
    assert sum(record.levelname == "ERROR" for record in caplog.records) == 1


def tree(number):
    """A model of one tree, in the form of XGBoost."""
    model = {
        "gbtree_model_param": {"num_trees": "1", "num_parallel_tree": "1"},
        "iteration_indptr": [0, 1],
        "tree_info": [0],
        "trees": [{"id": 0, "of": number}],
    }
    text = json.dumps({"learner": {"gradient_booster": {"model": model}}})
    return np.frombuffer(text.encode(), np.uint8)


class Trees:
    """Clients that each send a tree of their own."""

    def __init__(self):
        app = ClientApp()
        app.train()(self.train)
        self.grid = InProcessGrid(app, lambda _: range(12))
        self.problem = Problem(TINY)

    @staticmethod
    def train(message, context):
        number = context.node_config["partition-id"]
        reply = {
            "arrays": ArrayRecord({"0": Array(tree(number))}),
            "metrics": MetricRecord({"num-examples": 1}),
        }
        return Message(RecordDict(reply), reply_to=message)

    def start(self, inner, places, rounds, **options):
        strategy = self.problem.scheduled("round-robin", Slots(places), inner=inner, **options)
        nothing = ArrayRecord({"0": Array(np.empty(0, np.uint8))})
        result = strategy.start(self.grid, nothing, rounds, timeout=5.0)
        model = json.loads(result.arrays["0"].numpy().tobytes())
        trees = model["learner"]["gradient_booster"]["model"]["trees"]
        return strategy, [each["of"] for each in trees]


def test_bagged_trees_grow_and_a_restart_keeps_them(tmp_path):
    def make():
        return flower.FedXgbBagging(fraction_evaluate=0.0)

    strategy, trees = Trees().start(make(), 4, 3)
    assert trees == list(range(12))
    assert strategy.ages.tolist() == ROUND_ROBIN
    Trees().start(make(), 4, 2, folder=tmp_path)
    again, resumed = Trees().start(make(), 4, 3, folder=tmp_path)
    assert resumed == trees
    assert again.ages.tolist() == ROUND_ROBIN


def test_a_cycle_of_trees_has_one_place():
    def make():
        return flower.FedXgbCyclic(fraction_evaluate=0.0)

    with pytest.raises(ValueError, match=r"FedXgbCyclic trains one client a round .* Slots\(1\)"):
        Trees().start(make(), 4, 3)
    strategy, trees = Trees().start(make(), 1, 3)
    assert trees == [2]  # the model goes from client to client
    assert strategy.ages.tolist() == [2, 1, 0] + [3] * 9


class Ledger:
    """Counts releases, as an accountant of privacy does."""

    def __init__(self):
        method = SamplingMethod.NO_AMPLIFICATION
        self.config = SimpleNamespace(sampling_method=method, population_size=12, max_epsilon=None)
        self.releases = 0

    def compose(self, event, count=1):
        self.releases += count

    def get_privacy_spent(self):
        return SimpleNamespace(epsilon=0.5, delta=1e-5, num_releases=self.releases)

    def state_dict(self):
        return {"releases": self.releases}

    def load_state_dict(self, state):
        self.releases = state["releases"]


class Equal(Problem):
    """All clients say that they have one sample, as accounted privacy wants it."""

    def train(self, message, context):
        reply = super().train(message, context)
        reply.content["metrics"]["num-examples"] = 1
        return reply


def test_privacy_that_was_spent_is_not_forgotten_by_a_restart(tmp_path):
    problem = Equal(TINY)

    def start(rounds, ledger):
        inner = flower.DifferentialPrivacyServerSideFixedClipping(
            plain("FedAvg"), 1.0, 10.0, 4, accountant=ledger
        )
        strategy = problem.scheduled("round-robin", Slots(4), inner=inner, folder=tmp_path)
        problem.start(strategy, rounds)
        return ledger and ledger.releases

    assert start(2, Ledger()) == 2
    assert start(3, Ledger()) == 3
    with pytest.raises(FederationError, match="accountants is 1 there and 0 here"):
        start(4, None)


def test_it_is_not_wrapped_twice():
    problem = Problem(TINY)
    inner = problem.scheduled("random", Slots(4), timeouts=FAST)
    with pytest.raises(ValueError, match="inner must be a strategy of flwr.serverapp"):
        problem.scheduled("random", Slots(4), inner=inner)
