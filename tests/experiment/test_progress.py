"""Progress: silent when quick or quiet, lines where there is no terminal."""

import re
import time

from agewise.experiment import progress as module
from agewise.experiment.progress import progress


def test_lines_tell_runs_speed_and_time_left(capsys, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.02)
    monkeypatch.setattr(module, "_INTERVAL_S", 0.02)
    for expected_s, left in ((None, "time left unknown"), (9.1, "about 9 s left")):
        with progress(4, quiet=False, expected_s=expected_s) as counted:
            time.sleep(0.1)
            counted.advance(100)
            time.sleep(0.1)
        lines = capsys.readouterr().err.splitlines()
        assert lines[0] == f"0 of 4 runs, compiling, {left}"
        assert re.fullmatch(r"1 of 4 runs, 100 rounds, [\d,]+ a second, about 1 s left", lines[-1])


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
    assert "1 of 4 runs, 10 rounds, " in shown
    assert " left" in shown
