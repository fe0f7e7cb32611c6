"""A run in the terminal, as it happens."""

import sys

import pytest

import agewise
from agewise.cli import _live as live
from tests.scenarios import tiny


def content(folder):
    return {file.name: file.read_bytes() for file in (folder / "runs").iterdir()}


def run(out):
    with live.Live("age-based", 8) as watch:
        return agewise.run(tiny(), "age-based", 1, out, on_round=watch, quiet=True)


def test_lines_where_there_is_no_terminal_and_the_same_files(tmp_path, capsys):
    history = run(tmp_path / "live").history("age-based")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(history)
    used = history.frame["subchannels_used"][0]
    assert lines[1].startswith(
        f"round 1 of 8: {history.frame['scheduled'].list.len()[0]} UEs on {used} of 5 subchannels"
    )
    assert lines[-1].endswith(f"accuracy {100 * history.accuracy[-1]:.1f}%")
    agewise.run(tiny(), "age-based", 1, tmp_path / "plain", engine="inline", quiet=True)
    assert content(tmp_path / "live") == content(tmp_path / "plain")
    run(tmp_path / "live")
    assert "Nothing to watch" in capsys.readouterr().out


def test_a_panel_in_a_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(live, "_SHOWN_S", 0.0)
    history = run(tmp_path / "live").history("age-based")
    shown = capsys.readouterr().out
    assert "round 8 of 8" in shown
    assert "uploads" in shown
    assert " ".join(map(str, history.frame["scheduled"][-1].to_list())) in shown
    assert f"{100 * history.accuracy[-1]:.1f}%" in shown


@pytest.mark.parametrize(("values", "drawn"), [([], ""), ([1.0], "▁"), ([2.0, 2.0], "▁▁")])
def test_sparklines_of_little(values, drawn):
    assert live.sparkline(values) == drawn
