"""Progress: a bar in a terminal or a notebook, silent elsewhere and when quick or quiet."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import agewise
from agewise.experiment import _progress as module
from agewise.experiment._progress import Progress, counter, progress, round_counts
from agewise.policies import Policy
from tests.experiment.watch import until
from tests.scenarios import tiny


@dataclass(frozen=True)
class Pausing(Policy):
    """Rests before its sixth round until somebody has told that five are done."""

    name = "pausing"
    told: str

    def utility(self, view, rng):
        if view.t == 5:
            until(Path(self.told).exists)
        return np.ones(view.ue_count)


@pytest.fixture
def clock(monkeypatch):
    """The time by which progress goes, as the test sets it."""
    now = [0.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def said(capsys):
    """What stands on standard error so far."""
    read = []
    return lambda: read.append(capsys.readouterr().err) or "".join(read)


@pytest.fixture
def quickly(monkeypatch):
    for name in ("_PATIENCE_S", "_LOOK_S"):
        monkeypatch.setattr(module, name, 0.02)


@pytest.mark.usefixtures("quickly")
def test_nothing_is_told_where_nobody_looks(capsys):
    with progress(4, 400, quiet=False) as counted:
        time.sleep(0.2)
        counted.advance(100)
    assert capsys.readouterr() == ("", "")


def test_lines_tell_runs_speed_and_time_left_once_they_are_measured(clock):
    counted = Progress(1, 400, "run", lambda: 200)
    assert counted.line == "0 of 1 run, 1 s so far"
    counted.look()
    assert counted.line == "0 of 1 run, 200 of 400 rounds"
    counted = Progress(4, 400, "run", None)
    clock[0] = 1.0
    counted.advance(200)
    assert counted.line == "1 of 4 runs, 200 of 400 rounds, 200 a second, about 1 s left"


@pytest.mark.usefixtures("quickly")
def test_a_notebook_gets_a_bar_in_its_cell_which_goes_in_the_end(monkeypatch, capsys):
    told = []
    cell = SimpleNamespace(update=lambda content, **_: told.append(content["text/html"]))
    shell = SimpleNamespace(kernel=None)
    display = SimpleNamespace(display=lambda *_, **__: cell)
    notebook = SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with progress(4, 400, quiet=False) as counted:
        counted.advance(100)
        shown = '<progress value="0.2500"></progress> 1 of 4 runs, 100 of 400 rounds'
        until(lambda: told and told[-1].startswith(shown))
    assert told[-1] == ""
    assert capsys.readouterr() == ("", "")


def test_quiet_and_quick_work_print_nothing(capsys, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 60.0)
    for quiet, total in ((True, 3), (False, 0), (False, 3)):
        with progress(total, total, quiet=quiet) as counted:
            counted.advance(1)
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("quickly")
def test_a_terminal_gets_a_bar_once_it_takes_long(said, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress(4, 40, quiet=False) as counted:
        counted.advance(10)
        until(lambda: "1 of 4 runs, 10 of 40 rounds" in said())


def test_the_pace_is_that_of_counted_rounds(clock):
    """20 s of compiling, then 50 rounds a second: 900 rounds are left, which take 18 s."""
    rounds = [0]
    counted = Progress(10, 1000, "run", lambda: rounds[0])
    for now, done in ((1, 0), (20, 0), (20.2, 10), (22, 100)):
        clock[0], rounds[0] = now, done
        counted.look()
    assert counted.line == "0 of 10 runs, 100 of 1,000 rounds, 50 a second, about 18 s left"
    rounds[0] = 0  # the run that these were of is finished
    counted.advance(100)
    assert counted.line.startswith("1 of 10 runs, 100 of 1,000 rounds, ")
    clock[0] = 200.2  # it is stuck
    assert counted.line.endswith(", 0.5 a second, about 30 min left")
    rounds[0] = 900
    counted.look()
    assert counted.line == "1 of 10 runs, 1,000 of 1,000 rounds"


def test_runs_that_end_together_say_how_long_they_took(clock):
    """Two processes end a seed each after 300 s and a blink: 18 more take 45 min, not 9 blinks."""
    counted = Progress(20, 2000, "seed", None)
    clock[0] = 290.0
    assert counted.line == "0 of 20 seeds, 5 min so far"
    for clock[0] in (300.0, 300.1):
        counted.advance(100)
    clock[0] = 300.0
    assert counted.line == "2 of 20 seeds, 200 of 2,000 rounds, 0.67 a second, about 45 min left"


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("engine", ["inline", "local"])
def test_rounds_are_told_before_a_run_is_done(engine, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    seen, told, line = [], tmp_path / "told", Progress.line.fget

    def told_line(counted):
        if (text := line(counted)).startswith("0 of 1 run, 5 of 8 rounds"):
            told.touch()
        return text

    monkeypatch.setattr(Progress, "line", property(told_line))
    watch = {"on_round": seen.append} if engine == "inline" else {"engine": engine, "workers": 1}
    result = agewise.run(tiny(), Pausing(str(told)), out=tmp_path / engine, **watch)
    assert len(result.entries) == 1
    assert len(seen) == (8 if engine == "inline" else 0)
    assert "0 of 1 run, 5 of 8 rounds" in capsys.readouterr().err


def test_rounds_are_counted_in_a_file_that_goes(tmp_path):
    with round_counts(tmp_path, 3) as counts:
        count = counter(counts.filename, 1)
        for _ in range(5):
            count(None)
        assert counts.tolist() == [0, 5, 0]
        counter(counts.filename, 2)(None)
        assert counts.tolist() == [0, 5, 1]
    assert list(tmp_path.iterdir()) == []
    assert counter(counts.filename, 0) is None, "a run does without"
