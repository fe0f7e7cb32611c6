"""Mistakes end in one sentence, in the log and in the error, and never in an endless wait."""

import logging
from dataclasses import replace

import pytest
from flwr.serverapp.strategy import FedAvg, FedXgbCyclic, Krum

from agewise.experiment import Result
from agewise.flower import (
    Airtime,
    Clients,
    FederationError,
    Modelled,
    Scheduled,
    Slots,
    Timeouts,
)
from agewise.learn import UpdateMemory
from tests.scenarios import tiny
from tests_extra.flower.federations import FAST, IMPATIENT, InProcessGrid, Problem


class Starting(FedAvg):
    """Saves what it trained, in a start of its own."""

    def start(self, *arguments, **options):
        return super().start(*arguments, **options)


@pytest.fixture(scope="module")
def problem():
    return Problem(tiny())


@pytest.mark.parametrize(
    ("inner", "policy", "options", "message"),
    [
        (FedAvg(), "oort", {}, "the policy oort needs losses: say under which metric"),
        (FedAvg(), "random", {"shadow": ["oort"]}, "the policy oort needs losses"),
        (FedAvg(fraction_train=0.5), "random", {}, "would sample on its own"),
        (
            Krum(),
            "random",
            {"aggregation": UpdateMemory(discount="none")},
            "Krum sees them, which looks at single",
        ),
        ("FedAvg", "random", {}, "inner must be a strategy of flwr.serverapp"),
        (FedAvg(), "age-bsaed", {}, "did you mean age-based"),
        (
            Starting(),
            "random",
            {},
            "Starting has a start of its own, which Scheduled would not call",
        ),
        (FedXgbCyclic(), "random", {}, "trains one client a round and would sample it on its own"),
        (FedAvg(), "random", {"shadow": "oort"}, r"must be a list of policies: shadow=\['oort'\]"),
        (
            FedAvg(),
            "random",
            {"clients": {"a": 5}},
            r"clients must be Clients\(...\), not {'a': 5}",
        ),
        (FedAvg(), "random", {"timeouts": 5}, r"timeouts must be Timeouts\(...\), not 5"),
        (
            FedAvg(),
            "random",
            {"aggregation": "memory"},
            r"such as agewise.learn.VarianceReduced\(\)",
        ),
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
    timeouts = Timeouts(wait_s=0.05, poll_s=0.01)
    strategy = problem.scheduled("random", Slots(3), inner=inner, timeouts=timeouts)
    stops(problem, strategy, caplog, "12 nodes are connected after 0.05 s, and 13 are needed")
    assert inner.min_available_nodes == 13


@pytest.mark.parametrize(
    ("links", "deadline_s"), [(Slots(3), 0.02), (Airtime(shares=12, deadline_s=0.02), None)]
)
def test_a_deadline_nobody_meets(links, deadline_s, problem, caplog):
    """No client is asked twice, for all of them owe a reply."""
    timeouts = replace(IMPATIENT, deadline_s=deadline_s)
    strategy = problem.scheduled("age-based", links, timeouts=timeouts)
    message = "no update got .* in 3 rounds in a row: nobody meets the deadline of 0.02 s"
    stops(problem, strategy, caplog, message, rounds=50, held=lambda *_: True)
    asked = [number for _, _, number in problem.grid.asked]
    assert len(asked) == len(set(asked)) == min(3 * links.subchannels, 12)


@pytest.mark.parametrize("eligible", ["in-time", "everyone"])
def test_a_modelled_deadline_nobody_meets(eligible, caplog):
    timing = {"kind": "slots", "deadline_slots": 0.5}
    computing = {"kind": "slots", "median_slots": 1.0, "sigma": 0.0}
    hopeless = tiny(timing=timing | {"eligible": eligible}, **{"devices.computing": computing})
    problem = Problem(hopeless)
    strategy = problem.scheduled("age-based", Modelled(problem.scenario), timeouts=IMPATIENT)
    lost = "the modelled channel loses" if eligible == "everyone" else "nobody can be reached over"
    stops(problem, strategy, caplog, f"in 3 rounds in a row: .*{lost}", rounds=50)
    assert strategy.ages.tolist() == [3] * 12


def test_clients_that_all_fail_say_why(caplog):
    problem = Problem(tiny(), fails=frozenset(range(12)))
    strategy = problem.scheduled("age-based", Slots(3), timeouts=IMPATIENT)
    message = "in 3 rounds in a row: the clients .* failed, the last with .*out of memory"
    stops(problem, strategy, caplog, message, rounds=50)


def test_nobody_is_there(problem, caplog):
    """At the start, and after all have gone."""
    timeouts = Timeouts(least_round_s=0.0, wait_s=0.05, poll_s=0.01)
    inner = FedAvg(fraction_evaluate=0.0, min_available_nodes=1)
    strategy = problem.scheduled("random", Slots(3), inner=inner, timeouts=timeouts)
    stops(problem, strategy, caplog, "no nodes are connected", present=lambda _: [])
    caplog.clear()
    strategy = problem.scheduled("random", Slots(3), timeouts=timeouts)
    message = "no nodes are connected after 0.05 s, and 1 are needed"
    stops(problem, strategy, caplog, message, present=lambda t: range(12 if t < 2 else 0))
    assert len(strategy.history().ages) == 2


def test_a_metric_that_clients_do_not_report(problem, caplog):
    strategy = problem.scheduled("oort", Slots(3), losses="lost", timeouts=IMPATIENT)
    message = (
        "refused, the last because no number as metric 'lost'; it reports 'num-examples', 'start"
    )
    stops(problem, strategy, caplog, message)


def test_clients_known_beforehand_have_samples():
    with pytest.raises(ValueError, match="samples of client a must be a whole number of at least"):
        Clients({"a": 0})


def test_a_folder_has_one_server(problem, caplog, tmp_path):
    """The second is refused while the first is at work, and goes on when it has ended."""
    first = problem.scheduled("age-based", Slots(3), folder=tmp_path)
    second = problem.scheduled("age-based", Slots(3), folder=tmp_path)

    def meanwhile(server_round, _):
        if server_round == 1:
            stops(problem, second, caplog, "another server works in this folder")

    grid = InProcessGrid(problem.app, problem.everyone)
    first.start(grid, problem.arrays, 2, timeout=5.0, evaluate_fn=meanwhile)
    assert second.ages.tolist() == [0] * 12
    problem.start(second, 3)
    assert len(second.history().ages) == 3


def test_rounds_in_a_folder_are_gone_through_once(problem, caplog, tmp_path):
    strategy = problem.scheduled("age-based", Slots(3), folder=tmp_path)
    problem.start(strategy, 2)
    stops(problem, strategy, caplog, "these rounds are over: make a new Scheduled to go on")
    assert len(Result.open(tmp_path).history("age-based").ages) == 2


def test_a_state_of_another_federation(problem, caplog, tmp_path):
    problem.start(problem.scheduled("age-based", Slots(3), folder=tmp_path), 2)
    for change, message in (
        ({"policy": "random"}, r"another federation \(policies is \['age-based"),
        ({"links": Slots(4)}, r"another federation \(links is Slots with 3 subchannels there"),
        ({"inner": Krum(fraction_evaluate=0.0)}, r"another federation \(inner is \['FedAvg'\]"),
        ({"clients": Clients({"somebody": 5})}, "a federation with other clients"),
    ):
        caplog.clear()
        given = {"policy": "age-based", "links": Slots(3), "folder": tmp_path} | change
        stops(problem, problem.scheduled(**given), caplog, message)


def test_a_state_over_the_links_of_another_scenario_or_seed(problem, caplog, tmp_path):
    def federation(links):
        return problem.scheduled("age-based", links, folder=tmp_path)

    problem.start(federation(Modelled(problem.scenario, seed=3)), 1)
    harder = problem.scenario.with_(**{"threshold.rate": 5.0})
    for links in (Modelled(harder, seed=3), Modelled(problem.scenario, seed=4)):
        caplog.clear()
        stops(problem, federation(links), caplog, r"another federation \(links is Modelled with 5 ")
    problem.start(federation(Modelled(problem.scenario, seed=3)), 2)


def test_a_round_that_is_missing_beside_its_state(problem, caplog, tmp_path):
    problem.start(problem.scheduled("age-based", Slots(3), folder=tmp_path), 2)
    (tmp_path / "rounds" / "000001.npz").write_bytes(b"PK")
    again = problem.scheduled("age-based", Slots(3), folder=tmp_path)
    stops(problem, again, caplog, "000001.npz: a round of this federation cannot be read")
    assert len(Result.open(tmp_path).history("age-based").ages) == 2  # as it was before


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
    """Takes the first node alone, whatever it is shown."""

    def configure_train(self, server_round, arrays, config, grid):
        return list(super().configure_train(server_round, arrays, config, grid))[:1]


class Waiting(FedAvg):
    """Waits for more nodes than there are."""

    def configure_train(self, server_round, arrays, config, grid):
        while len(list(grid.get_node_ids())) < 100:
            pass


def test_strategies_that_do_not_keep_to_the_choice(problem, caplog):
    sampling = problem.scheduled("random", Slots(3), inner=Sampling(), timeouts=FAST)
    stops(problem, sampling, caplog, "Sampling addresses 1 nodes where the policy chose 3")
    caplog.clear()
    waiting = problem.scheduled("random", Slots(3), inner=Waiting(), timeouts=FAST)
    stops(problem, waiting, caplog, "waits for more than the 3 nodes that were chosen")
