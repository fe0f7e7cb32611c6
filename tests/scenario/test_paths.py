"""Paths in a scenario's file start at the working folder, or, if they say so, at the file's."""

import numpy as np
import pytest

from agewise import simulate
from agewise.cli._options import scenario_of
from agewise.part import Part, kind_of, parts_of
from agewise.provenance import source_names
from agewise.random import Streams
from agewise.scenario import Scenario, ScenarioError
from tests.scenarios import tiny

_TORCH = {"kind": "torch", "source": "own.x:make", "loss": "cross-entropy", "optimiser": "SGD"}
#: By the section that names a file: changes that bring it, and what its source is called.
SECTIONS = {
    "channel": ({"channel": {"kind": "trace", "path": "own.x"}}, "trace:{}/own.x"),
    "channel.placement": (
        {"channel.placement": {"kind": "file", "path": "own.x", "radius_m": 100.0}},
        "positions:{}/own.x",
    ),
    "channel.mobility": (
        {"channel.mobility": {"kind": "file", "path": "own.x"}, "channel.round_s": 1.0},
        "tracks:{}/own.x",
    ),
    "devices": (
        {"devices": {"kind": "file", "path": "own.x", "assignment": "in-order"}},
        "devices:{}/own.x",
    ),
    "devices.availability": (
        {"devices.availability": {"kind": "file", "path": "own.x", "repeat": True}},
        "availability:{}/own.x",
    ),
    "data.dataset": ({"data.dataset": {"kind": "npz", "path": "own.x"}}, "data:{}/own.x"),
    "learn.model": ({"learn.model": _TORCH}, "model:{}/own.x:make"),
}


def written(file, section, changes):
    """The file of a scenario whose section names a path relative to it."""
    head, mark, rest = tiny(**changes).to_toml().partition(f"[{section}]\n")
    rest = rest.replace('relative_to = "working-folder"', 'relative_to = "scenario-file"', 1)
    file.write_text(head + mark + rest)
    return file


def sections_with_a_path(section, name=""):
    for key, field in section.model_fields.items():
        for kind in parts_of(field):
            here = f"{name}{key}"
            if {"path", "source"} & kind.model_fields.keys():
                yield here, kind
            yield from sections_with_a_path(kind, f"{here}.")


def test_every_section_with_a_path_has_the_field():
    found = list(sections_with_a_path(Scenario))
    assert {name for name, _ in found} == set(SECTIONS)
    for name, kind in found:
        assert issubclass(kind, Part)
        assert "relative_to" in kind.model_fields, (name, kind_of(kind))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_path_starts_at_the_scenarios_file(section, tmp_path, monkeypatch):
    """Wherever the command is run; the path is absolute once the file is read."""
    changes, source = SECTIONS[section]
    monkeypatch.chdir("/")
    scenario = Scenario.load(written(tmp_path / "own.toml", section, changes))
    assert source.format(tmp_path) in source_names(scenario)
    assert Scenario.read(scenario.resolved()) == scenario  # a results folder keeps this
    again = tmp_path / "again" / "own.toml"
    again.parent.mkdir()
    again.write_text(scenario.to_toml())
    assert Scenario.load(again) == scenario


@pytest.mark.parametrize("section", sorted(SECTIONS.keys() - {"learn.model"}))
def test_errors_say_the_resolved_path(section, tmp_path, monkeypatch):
    changes, _ = SECTIONS[section]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    beside = Scenario.load(written(tmp_path / "own.toml", section, changes))
    for scenario, place in ((beside, tmp_path), (tiny(**changes), tmp_path / "here")):
        with pytest.raises(ValueError, match=rf"^{place}/own\.x: .*[Nn]o such file") as caught:
            simulate(scenario, "age-based")
        assert "\n" not in str(caught.value)


def test_the_command_line_and_python_start_at_the_working_folder(tmp_path, monkeypatch):
    """Also where the scenario that they change is in a file elsewhere, relative to which it is."""
    (tmp_path / "elsewhere").mkdir()
    changes, _ = SECTIONS["channel.placement"]
    file = written(tmp_path / "elsewhere" / "own.toml", "channel.placement", changes)
    places = np.random.default_rng(0).uniform(5.0, 50.0, (12, 2))
    np.savetxt(tmp_path / "elsewhere" / "own.x", places, delimiter=",")
    np.savetxt(tmp_path / "mine.csv", places + 1.0, delimiter=",")
    monkeypatch.chdir(tmp_path)
    by_command = scenario_of(str(file), ["channel.placement.path=mine.csv"])
    by_python = Scenario.load(file).with_(**{"channel.placement.path": "mine.csv"})
    assert by_command == by_python
    for scenario, expected in ((Scenario.load(file), places), (by_command, places + 1.0)):
        block = scenario.make_channel(Streams(0)).block(0)
        np.testing.assert_allclose(block.positions_m, expected)


def test_a_scenario_from_no_file_cannot_be_relative_to_it():
    for section, (changes, _) in SECTIONS.items():
        with pytest.raises(ScenarioError, match=f"^{section}.relative_to = 'scenario-file': "):
            tiny(**changes, **{f"{section}.relative_to": "scenario-file"})
