"""Rounds of a live federation: deadlines, late replies, restarts, shadows, the page."""

import itertools
import logging
import time

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import strategy as flower

from agewise import History, Result, Scenario, simulate, write_page
from agewise.flower import Airtime, Clients, Modelled, Slots, Timeouts, identify
from agewise.flower.grid import DeadlineGrid
from agewise.flower.round import InnerStrategy, _flatten, _unflatten
from agewise.learn import UpdateMemory
from tests.scenarios import tiny
from tests_extra.flower.federations import InProcessGrid, Problem, id_of

TINY = tiny()


@pytest.fixture(scope="module")
def problem():
    return Problem(TINY)


def test_late_replies_are_dropped_and_still_teach(problem):
    """The reply of client 2 to round 0 comes in round 4: late, busy, then measured."""
    links = Airtime(shares=12, deadline_s=2.0, payload_bytes=1.0)
    timeouts = Timeouts(least_round_s=0.1, wait_s=9.0, poll_s=0.005)
    strategy = problem.scheduled("round-robin", links, timeouts=timeouts)
    result = problem.start(
        strategy, 8, held=lambda number, sent, t: number == 2 and sent == 0 and t < 4
    )
    rounds = [result.train_metrics_clientapp[r] for r in range(1, 9)]
    assert rounds[0]["agewise-late"] == [2]
    assert rounds[0]["agewise-arrived"] == [k for k in range(12) if k != 2]
    assert rounds[0]["agewise-seconds"] >= 2.0
    # It owes a reply until that comes and is dropped. It says that the client is too slow for this
    # deadline, so that it is tried with all shares, and is heard.
    assert [each["agewise-eligible"] for each in rounds[1:4]] == [11] * 3
    assert rounds[-1]["agewise-eligible"] == 12
    tried = next(r for r in range(4, 8) if 2 in rounds[r]["agewise-chosen"])
    assert rounds[tried]["agewise-arrived"] == [2]
    assert all(2 not in each["agewise-arrived"] for each in rounds[:tried])


def test_rounds_take_a_least_time(problem):
    strategy = problem.scheduled(
        "age-based", Slots(2), timeouts=Timeouts(least_round_s=0.2, wait_s=2.0)
    )
    began = time.monotonic()
    problem.start(strategy, 3)
    assert time.monotonic() - began > 0.4


def test_fedavg_inside_learns_as_the_simulator(problem):
    """Flower's own average differs from the simulator's by rounding alone."""
    strategy = problem.scheduled("age-based", Modelled(TINY))
    result = problem.start(strategy, 8)
    live, simulated = strategy.history(), simulate(TINY, "age-based")
    assert live.ages.tolist() == simulated.ages.tolist()
    # 1,000 test samples: rounding may move a few of them.
    assert live.accuracy == pytest.approx(simulated.accuracy, abs=5e-3)
    assert result.train_metrics_clientapp[1]["agewise-chosen"] == simulated.scheduled[0].tolist()


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("age-based", {}),
        ("oort", {"inner": "adam"}),
        (
            "markov",
            {"aggregation": UpdateMemory(discount="agreement"), "shadow": ["max-pack", "random"]},
        ),
    ],
)
def test_a_restarted_server_goes_on_as_an_undisturbed_one(problem, tmp_path, policy, options):
    """Nine rounds at once, and five then four with new objects: the same files to the byte."""

    def started(folder, rounds):
        given = dict(options)
        if given.get("inner") == "adam":
            given["inner"] = flower.FedAdam(fraction_evaluate=0.0)
        strategy = problem.scheduled(policy, Modelled(TINY), folder=folder, **given)
        return problem.start(strategy, rounds)

    undisturbed = started(tmp_path / "whole", 9)
    started(tmp_path / "parts", 5)
    resumed = started(tmp_path / "parts", 9)
    assert resumed.arrays["model"].data == undisturbed.arrays["model"].data
    for number in range(1, 10):
        one, other = (dict(r.train_metrics_clientapp[number]) for r in (undisturbed, resumed))
        assert one.pop("agewise-seconds") >= 0
        other.pop("agewise-seconds")
        assert one == other
    for name in ("rounds/000008.npz", "state.npz"):
        with np.load(tmp_path / "whole" / name) as one, np.load(tmp_path / "parts" / name) as other:
            assert sorted(one.files) == sorted(other.files)
            for key in set(one.files) - {"seconds", "text", "checksum"}:
                assert one[key].tobytes() == other[key].tobytes(), key


def test_a_restarted_server_waits_for_its_nodes(problem, tmp_path):
    """They come back one by one; the first round again chooses from all of them."""

    def started(folder, rounds, present):
        inner = flower.FedAvg(fraction_evaluate=0.0, min_available_nodes=12)
        strategy = problem.scheduled("age-based", Slots(3), inner=inner, folder=folder)
        return problem.start(strategy, rounds, present)

    back = itertools.count(1)
    undisturbed = started(tmp_path / "whole", 3, problem.everyone)
    started(tmp_path / "parts", 2, problem.everyone)
    resumed = started(tmp_path / "parts", 3, lambda _: range(min(next(back), 12)))
    one, other = (result.train_metrics_clientapp[3] for result in (undisturbed, resumed))
    assert other["agewise-eligible"] == 12
    assert other["agewise-chosen"] == one["agewise-chosen"]


def test_the_folder_is_reported_and_replayed(problem, tmp_path):
    """The live policy and two in its shadow stand on one page; the trace replays the links."""
    strategy = problem.scheduled(
        "age-based", Slots(3), folder=tmp_path / "live", shadow=["max-pack", "random"]
    )
    problem.start(strategy, 6, lambda t: range(12) if t else range(7))
    result = Result.open(tmp_path / "live")
    assert result.damaged == []
    assert [key.name for key in result.policies] == ["age-based", "max-pack", "random"]
    live = result.history("age-based")
    assert live.ages.tolist() == strategy.history().ages.tolist()
    assert not np.isnan(live.accuracy).any()
    assert np.isnan(result.history("random").accuracy).all()
    page = write_page(result).read_text(encoding="utf-8")
    assert "age-based" in page
    assert "could not be made" not in page
    scenario = Scenario.load(tmp_path / "live" / "scenario.toml")
    with pytest.raises(ValueError, match="the samples of a live federation stay there"):
        simulate(scenario, "age-based")
    replayed = simulate(scenario.with_(**{"data.dataset": "synthetic"}), "age-based")
    assert replayed.ages.tolist() == live.ages.tolist()
    assert replayed.eligible.need.tolist() == live.eligible.need.tolist()
    assert replayed.eligible.gain.tolist() == live.eligible.gain.tolist()
    shadow = simulate(scenario.with_(**{"data.dataset": "synthetic"}), "random")
    assert shadow.ages.tolist() == result.history("random").ages.tolist()


def test_ids_are_asked_once_where_keys_do_not_last(problem):
    app = ClientApp()
    app.train()(problem.train)
    grid = InProcessGrid(identify(app), lambda _: range(12), keys=False)
    strategy = problem.scheduled("age-based", Slots(3), clients=Clients(ask=True))
    strategy.start(grid, problem.arrays, 4, timeout=5.0)
    assert sorted(map(int, strategy.client_ids)) == list(range(12))
    assert sum(kind == "query.agewise" for _, kind, _ in grid.asked) == 12


def test_mods_find_the_configuration_when_a_node_is_asked_for_its_id(problem):
    found = []

    def note(message, context, call_next):
        found.append(message.content["config"]["server-round"])
        assert message.content["config"]["lr"] == 0.5
        return call_next(message, context)

    app = ClientApp(mods=[note])
    app.train()(problem.train)
    grid = InProcessGrid(identify(app), lambda t: range(12 if t else 9), keys=False)
    strategy = problem.scheduled("age-based", Slots(3), clients=Clients(ask=True))
    config = ConfigRecord({"lr": 0.5})
    strategy.start(grid, problem.arrays, 2, timeout=5.0, train_config=config)
    assert found == [1] * 12 + [2] * 3
    assert len(strategy.client_ids) == 9


def test_nodes_that_do_not_say_who_they_are_are_left_out(problem, caplog):
    """Two take the ids of others, one says what is no text, and one fails; eight train."""

    def lie(message, context, call_next):
        number = context.node_config["partition-id"]
        if message.metadata.message_type.startswith("query"):
            if number == 4:
                raise RuntimeError("no idea")
            context.node_config["partition-id"] = "5\0" if number == 5 else number % 10
        return call_next(message, context)

    app = ClientApp(mods=[lie])
    app.train()(problem.train)
    grid = InProcessGrid(identify(app), lambda _: range(12), keys=False)
    strategy = problem.scheduled("age-based", Slots(3), clients=Clients(ask=True))
    result = strategy.start(grid, problem.arrays, 4, timeout=5.0)
    assert sorted(map(int, strategy.client_ids)) == [0, 1, 2, 3, 6, 7, 8, 9]
    assert result.train_metrics_clientapp[4]["agewise-eligible"] == 8
    assert sum("is left out" in r.getMessage() for r in caplog.records) == 4


def test_a_node_that_does_not_say_who_it_is_holds_up_one_round(problem):
    app = ClientApp()
    app.train()(problem.train)
    grid = InProcessGrid(identify(app), lambda _: range(12), lambda k, *_: k == 3)
    timeouts = Timeouts(least_round_s=0.0, wait_s=0.3, poll_s=0.01)
    strategy = problem.scheduled(
        "age-based", Slots(3), timeouts=timeouts, clients=Clients(ask=True)
    )
    result = strategy.start(grid, problem.arrays, 4, timeout=5.0)
    assert [number for _, kind, number in grid.asked if kind != "train"] == list(range(12))
    rounds = result.train_metrics_clientapp
    assert [rounds[r]["agewise-eligible"] for r in range(1, 5)] == [11] * 4


@pytest.mark.parametrize(
    ("nodes", "poll_s", "pause_s"),
    [(5, 0.2, 0.2), (40, 0.2, 0.4), (300, 0.2, 0.5), (300, 2.0, 2.0)],
)
def test_many_replies_are_looked_for_less_often_but_often_enough(problem, nodes, poll_s, pause_s):
    silent = InProcessGrid(problem.app, lambda _: range(nodes), lambda *_: True)
    grid = DeadlineGrid(silent, poll_s)
    kind = f"{MessageType.QUERY}.nothing"
    try:
        grid.exchange([Message(RecordDict(), 1000 + k, kind) for k in range(nodes)], 0.0)
        assert grid.pause_s == pause_s
    finally:
        grid.close()


def test_a_model_keeps_its_shapes_and_types():
    """As a PyTorch module has them, with a counter that has no dimension."""
    model = {
        "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "scale": np.ones(2, np.float64),
        "batches": np.array(7, np.int64),
    }
    record = ArrayRecord({name: Array(array) for name, array in model.items()})
    again = _unflatten(record, _flatten(record, record))
    for name, array in model.items():
        found = again[name].numpy()
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
        assert found.tolist() == array.tolist()


def test_metrics_are_logged_as_flower_does(problem, caplog):
    with caplog.at_level(logging.INFO):
        problem.start(problem.scheduled("age-based", Slots(3)), 1)
    said = "\n".join(record.getMessage() for record in caplog.records)
    for words in ("Initial global evaluation results", "'agewise-chosen': [", "Global evaluation"):
        assert words in said


def test_the_history_has_the_seconds_of_rounds(problem, tmp_path):
    """Those of Flower's result, also after a restart; what is in the shadow took no time."""

    def start(rounds):
        strategy = problem.scheduled("age-based", Slots(3), folder=tmp_path, shadow=["random"])
        return strategy, problem.start(strategy, rounds)

    start(2)
    strategy, result = start(4)
    said = [result.train_metrics_clientapp[r]["agewise-seconds"] for r in range(1, 5)]
    assert strategy.history().numbers("seconds").tolist() == said
    assert min(said) > 0
    assert np.isnan(strategy.shadow_histories()[0].numbers("seconds")).all()


def test_history_is_written_and_read(problem, tmp_path):
    strategy = problem.scheduled("age-based", Slots(3))
    problem.start(strategy, 4)
    strategy.history().save(tmp_path / "run.parquet")
    again = History.load(tmp_path / "run.parquet")
    assert again.ages.tolist() == strategy.history().ages.tolist()
    assert strategy.client_ids[5] == id_of(5)


def test_what_a_strategy_learned_is_state_and_what_it_was_given_is_not():
    def make(eta):
        adaptive = flower.DifferentialPrivacyServerSideAdaptiveClipping(
            flower.FedAdam(eta=eta), 0.0, 4
        )
        adaptive.strategy.m_t = {"a.b": np.array([1.0, eta]), "c": np.ones(2)}
        adaptive.clipping_norm = 3.0 * eta
        adaptive.current_arrays = ArrayRecord({"w": Array(np.full(3, eta))})
        return adaptive

    kept, other = make(0.5), make(0.25)
    InnerStrategy(other, 4).restore(InnerStrategy(kept, 4).state())
    assert other.clipping_norm == 1.5
    assert other.current_arrays["w"].numpy().tolist() == [0.5] * 3
    assert {name: x.tolist() for name, x in other.strategy.m_t.items()} == {
        "a.b": [1.0, 0.5], "c": [1.0, 1.0],
    }  # fmt: skip
    assert other.strategy.eta == 0.25
