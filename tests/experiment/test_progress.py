"""Progress: silent when quick or quiet, lines where there is no terminal."""

import time

from agewise.experiment import progress as module
from agewise.experiment.progress import progress


def test_lines_tell_runs_speed_and_time_left(capsys, monkeypatch):
    monkeypatch.setattr(module, "_INTERVAL_S", 0.02)
    with progress(4, quiet=False) as counted:
        time.sleep(0.05)
        counted.advance(100)
        time.sleep(0.1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("0 of 4 runs, 0 rounds/s, time left unknown")
    assert lines[-1].startswith("1 of 4 runs, ")
    assert lines[-1].endswith(" s")


def test_quiet_and_quick_work_print_nothing(capsys):
    for quiet, total in ((True, 3), (False, 0), (False, 3)):
        with progress(total, quiet=quiet) as counted:
            counted.advance(1)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_once_it_takes_long(capsys, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.02)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress(4, quiet=False) as counted:
        time.sleep(0.1)
        counted.advance(10)
        time.sleep(0.5)
    shown = capsys.readouterr().err
    assert "1/4" in shown
    assert "rounds/s" in shown
