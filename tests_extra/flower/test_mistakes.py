"""Mistakes end in one sentence, in the log and in the error, and never in an endless wait."""

import logging

import pytest
from flwr.serverapp.strategy import FedAvg, Krum

from agewise.flower import FederationError, Pace, Scheduled, Slots
from agewise.learn import Memory
from tests.scenarios import tiny
from tests_extra.flower.federations import FAST, Problem


@pytest.fixture(scope="module")
def problem():
    return Problem(tiny())


@pytest.mark.parametrize(
    ("inner", "policy", "options", "message"),
    [
        (FedAvg(), "oort", {}, "the policy oort needs losses: say under which metric"),
        (FedAvg(), "random", {"shadow": ["oort"]}, "the policy oort needs losses"),
        (FedAvg(fraction_train=0.5), "random", {}, "would sample on its own"),
        (Krum(), "random", {"aggregation": Memory(0.0)}, "Krum sees them, which looks at single"),
        ("FedAvg", "random", {}, "the inner strategy must be one of Flower's"),
        (FedAvg(), "age-bsaed", {}, "did you mean age-based"),
    ],
)
def test_what_cannot_work_is_said_at_once(inner, policy, options, message):
    with pytest.raises(ValueError, match=message):
        Scheduled(inner, policy, links=Slots(3), **options)


def stops(problem, strategy, caplog, message, rounds=4, **options):
    with caplog.at_level(logging.ERROR), pytest.raises(FederationError, match=message):
        problem.start(strategy, rounds, **options)
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "\n" not in errors[0]


def test_fewer_nodes_than_the_strategy_insists_on(problem, caplog):
    inner = FedAvg(fraction_evaluate=0.0, min_available_nodes=13)
    pace = Pace(wait_s=0.05, poll_s=0.01)
    strategy = problem.scheduled("random", Slots(3), inner=inner, pace=pace)
    stops(problem, strategy, caplog, "12 nodes are connected after 0.05 s, .* insists on 13")
    assert inner.min_available_nodes == 13


def test_a_deadline_nobody_meets(problem, caplog):
    pace = Pace(deadline_s=0.02, least_round_s=0.0, patience=3, poll_s=0.01)
    strategy = problem.scheduled("random", Slots(3), pace=pace)
    message = "no update arrived in 3 rounds in a row: nobody meets the deadline of 0.02 s"
    stops(problem, strategy, caplog, message, rounds=50, delay_s=lambda *_: 30.0)


def test_a_metric_that_clients_do_not_report(problem, caplog):
    strategy = problem.scheduled("oort", Slots(3), losses="lost")
    stops(problem, strategy, caplog, "no metric 'lost'; it reports num-examples, start-loss")


def test_a_state_of_another_federation(problem, caplog, tmp_path):
    problem.start(problem.scheduled("age-based", Slots(3), folder=tmp_path), 2)
    other = problem.scheduled("random", Slots(3), folder=tmp_path)
    stops(problem, other, caplog, r"the state of another federation \(policies is \['age-based")


def test_a_state_that_is_none(problem, caplog, tmp_path):
    (tmp_path / "state.npz").write_bytes(b"not a state")
    strategy = problem.scheduled("age-based", Slots(3), folder=tmp_path)
    stops(problem, strategy, caplog, "not a readable state of a federation")


def test_a_folder_with_other_results_is_left_alone(problem, caplog, tmp_path):
    (tmp_path / "experiment.json").write_text("{}")
    (tmp_path / "runs").mkdir()
    strategy = problem.scheduled("age-based", Slots(3), folder=tmp_path)
    stops(problem, strategy, caplog, "holds other results: give another folder")
    assert (tmp_path / "experiment.json").read_text() == "{}"


class Sampling(FedAvg):
    """Takes the first node alone, whatever it is offered."""

    def configure_train(self, server_round, arrays, config, grid):
        return list(super().configure_train(server_round, arrays, config, grid))[:1]


class Waiting(FedAvg):
    """Waits for more nodes than there are."""

    def configure_train(self, server_round, arrays, config, grid):
        while len(list(grid.get_node_ids())) < 100:
            pass


def test_strategies_that_do_not_keep_to_the_choice(problem, caplog):
    sampling = problem.scheduled("random", Slots(3), inner=Sampling(), pace=FAST)
    stops(problem, sampling, caplog, "Sampling addresses 1 nodes where the policy chose 3")
    caplog.clear()
    waiting = problem.scheduled("random", Slots(3), inner=Waiting(), pace=FAST)
    stops(problem, waiting, caplog, "waits for more than the 3 nodes that it is offered")
