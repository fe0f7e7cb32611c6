"""A federation is watched while it runs: the hook, metrics for Prometheus, the page."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from agewise.experiment import Result
from agewise.flower import LiveRound, PrometheusMetrics, RoundPlanner, Slots
from agewise.flower.record import LiveRecord
from agewise.report import write_page
from agewise.scheduling import NoPause
from tests.scenarios import tiny
from tests_extra.flower.federations import Problem, id_of


@pytest.fixture
def problem():
    return Problem(tiny(), fails=frozenset({2}))


def test_the_hook_is_told_of_every_round(problem):
    found = []
    strategy = problem.scheduled("round-robin", Slots(4), on_round=found.append)
    result = problem.start(strategy, 3)
    assert [each.number for each in found] == [1, 2, 3]
    assert found[0].outcomes == {id_of(k): "failed" if k == 2 else "received" for k in range(4)}
    assert found[0].staleness == {id_of(k): 0 for k in (0, 1, 3)}
    assert found[2].ages.tolist() == strategy.ages.tolist()
    for each in found:
        measured = result.evaluate_metrics_serverapp[each.number]
        assert (each.accuracy, each.loss) == (measured["accuracy"], measured["loss"])


def test_the_log_has_a_line_of_json_for_every_round(problem, caplog):
    with caplog.at_level(logging.INFO):
        result = problem.start(problem.scheduled("round-robin", Slots(4)), 2)
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("agewise {")]
    first, second = (json.loads(line.removeprefix("agewise ")) for line in lines)
    assert first["asked"] == {"received": 3, "failed": 1}
    assert first["staleness"] == {"0": 3}
    assert (second["round"], second["refused"], second["largest_age"]) == (2, {}, 2)
    assert second["accuracy"] == result.evaluate_metrics_serverapp[2]["accuracy"]


def test_a_hook_that_fails_stops_nothing(problem, caplog):
    strategy = problem.scheduled("round-robin", Slots(4), on_round=lambda _: 1 / 0)
    problem.start(strategy, 2)
    assert len(strategy.history().ages) == 2
    assert "on_round failed: ZeroDivisionError: division by zero" in caplog.text


def test_metrics_are_served_on_the_loopback_address(problem):
    pytest.importorskip("prometheus_client")
    metrics = PrometheusMetrics(port=0)
    try:
        problem.start(problem.scheduled("round-robin", Slots(4), on_round=metrics), 3)
        host, port = metrics.server.server_address
        with urllib.request.urlopen(f"http://{host}:{port}/metrics") as reply:
            said = reply.read().decode()
    finally:
        metrics.server.shutdown()
        metrics.server.server_close()
    assert host == "127.0.0.1"
    for line in (
        "agewise_round 3.0",
        "agewise_known_clients 12.0",
        'agewise_asked_total{outcome="received"} 11.0',
        'agewise_asked_total{outcome="failed"} 1.0',
    ):
        assert line in said.splitlines()


def test_a_port_that_is_taken_is_named():
    pytest.importorskip("prometheus_client")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of 127.0.0.1 .*: give another port"):
            PrometheusMetrics(port=port)
    with pytest.raises(ValueError, match="port 70000 of 127.0.0.1"):
        PrometheusMetrics(port=70_000)


class Killed(BaseException):
    """What nothing catches."""


def test_the_page_is_made_while_the_server_runs_and_after_it_was_killed(
    problem, tmp_path, monkeypatch
):
    strategy = problem.scheduled("round-robin", Slots(4), folder=tmp_path, shadow=["random"])
    seen = []

    def watch(done: LiveRound):
        if done.number > 1:
            result = Result.open(tmp_path)
            seen.append(len(result.history("round-robin").ages))
            assert result.damaged == []
            assert "round-robin" in write_page(result).read_text(encoding="utf-8")
        if done.number == 4:
            monkeypatch.setattr(strategy._record, "write", lambda: None)
            raise Killed

    monkeypatch.setattr("agewise.flower.record._SELDOM", 0.0)
    strategy.on_round = watch
    with pytest.raises(Killed):
        problem.start(strategy, 9)
    assert seen == [1, 2, 3]
    live = Result.open(tmp_path).history("round-robin")
    assert np.isfinite(live.accuracy).all()
    assert len(live.ages) == 3
    assert {path.name for path in tmp_path.iterdir()} >= {"state.npz", "rounds", "runs"}
    again = problem.scheduled("round-robin", Slots(4), folder=tmp_path, shadow=["random"])
    problem.start(again, 5)
    assert len(Result.open(tmp_path).history("round-robin").ages) == 5


def train_and_die(folder):
    """Train until the power fails in the third round, before its state is written."""
    problem = Problem(tiny(), fails=frozenset({2}))
    evaluate = problem.evaluate

    def die(server_round, arrays):
        if server_round == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return evaluate(server_round, arrays)

    problem.evaluate = die
    problem.start(problem.scheduled("round-robin", Slots(4), folder=folder), 9)


def test_a_server_that_is_killed_outright_is_reported_and_goes_on(problem, tmp_path):
    """Nothing can be caught or written any more; the model is as if it had never happened."""
    code = f"from {__name__} import train_and_die; train_and_die({str(tmp_path / 'killed')!r})"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    result = Result.open(tmp_path / "killed")
    assert result.damaged == []
    assert 1 <= len(result.history("round-robin").ages) <= 2
    assert "round-robin" in write_page(result).read_text(encoding="utf-8")
    ends = []
    for name in ("killed", "whole"):
        strategy = problem.scheduled("round-robin", Slots(4), folder=tmp_path / name)
        ends.append(problem.start(strategy, 5).arrays["model"].data)
        assert len(Result.open(tmp_path / name).history("round-robin").ages) == 5
    assert ends[0] == ends[1]


def recorded(folder, rounds, look):
    """A record of rounds in which clients join, every third time of all at once."""
    links, retry = Slots(2), NoPause()
    planner = RoundPlanner(["age-based", "random"], links, retry=retry)
    record = LiveRecord(folder, links, planner.policies, 0, retry)
    nothing = dict.fromkeys(("late", "failed", "lost"), np.zeros(0, np.int64))
    numbers = dict.fromkeys(("seconds", "diversity", "accuracy", "loss"), np.array(np.nan))
    for t in range(rounds):
        planned = planner.plan(planner.rows([str(k) for k in range(3 + 300 * (t // 3))]))
        record.keep(planner.receive(planned, planned.chosen) | nothing | numbers)
        look(record)
    return record


def test_rounds_are_read_once_however_often_the_page_is_made(tmp_path, monkeypatch):
    """Only one round is read for each policy and page, that in the middle."""
    monkeypatch.setattr("agewise.flower.record._SELDOM", 0.0)
    read, reads = LiveRecord._read, []
    monkeypatch.setattr(LiveRecord, "_read", lambda self, t: reads.append(t) or read(self, t))
    record = recorded(tmp_path, 20, LiveRecord.write_now_and_then)
    assert reads == [t // 2 for t in range(1, 21) for _ in range(2)]
    assert not (tmp_path / "trace.npz").exists()  # it is of all rounds, and made at the end
    record.write()
    with np.load(tmp_path / "trace.npz") as trace:
        assert trace["gains"].shape == (20, 1803, 2)
    for seldom, often in zip(recorded(None, 20, id).histories(), record.histories(), strict=True):
        kept_in_files = ("need", "eligible_gain")
        assert_frame_equal(seldom.frame.drop(kept_in_files), often.frame.drop(kept_in_files))


def test_rounds_that_are_kept_take_a_byte_or_two_for_each_number():
    record = recorded(None, 20, id)
    held = sum(x.nbytes for kept in record._new for x in kept.values())
    assert held < 8 * 2 * 20 * 1803
    record.histories()
    assert record._new == []


def test_no_result_is_missing_while_new_ones_take_its_place(tmp_path, monkeypatch):
    record = recorded(tmp_path, 2, LiveRecord.write)
    files = [tmp_path / "experiment.json", tmp_path / "scenario.toml", *tmp_path.glob("runs/*")]
    replace, seen = Path.replace, []

    def watched(self, target):
        seen.append(all(file.is_file() for file in files))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    record.write()
    assert len(files) == 4
    assert len(seen) > len(files)
    assert all(seen)
