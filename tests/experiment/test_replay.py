"""A recorded federation again, under other policies."""

import numpy as np
import pytest

import agewise
from agewise.cli._options import compared_scenario
from agewise.experiment import FolderError, replay_scenario
from agewise.simulation import simulate
from tests.scenarios import tiny


def recorded(folder, dataset="clients"):
    """A folder as a live federation leaves it: a trace and a scenario that names it."""
    gains = np.random.default_rng(3).exponential(30.0, (8, 12, 5))
    folder.mkdir()
    np.savez(folder / "trace.npz", gains=gains)
    channel = {"kind": "trace", "path": str(folder / "trace.npz"), "power_budget": 2.0}
    scenario = tiny(**{"channel": channel, "threshold.rate": 3.0, "data.dataset": dataset})
    plan = agewise.experiment.Plan.of(scenario, ["age-based"], 1)
    with agewise.experiment.Folder(folder).opened(plan):
        pass
    return scenario


def test_links_of_the_folder_and_learning_of_another_scenario(tmp_path):
    scenario = recorded(tmp_path / "live")
    learning = tiny(**{"cell.ues": 40, "learn.local_steps": 3, "run.rounds": 99})
    replayed = replay_scenario(tmp_path / "live", learning)
    assert replayed.learn == learning.learn
    assert (replayed.cell, replayed.channel) == (scenario.cell, scenario.channel)
    assert (replayed.threshold, replayed.run.rounds) == (scenario.threshold, 8)
    assert simulate(replayed, "max-pack").ages.shape == (8, 12)


def test_a_folder_that_was_moved_has_its_trace_with_it(tmp_path):
    recorded(tmp_path / "live", "synthetic")
    (tmp_path / "live").rename(tmp_path / "kept")
    replayed = replay_scenario(tmp_path / "kept")
    assert replayed.channel.path == str(tmp_path / "kept" / "trace.npz")
    assert len(simulate(replayed, "random")) == 8


def test_samples_of_clients_cannot_be_simulated(tmp_path):
    recorded(tmp_path / "live")
    with pytest.raises(ValueError, match="data.dataset is clients: .* set data.dataset to mnist"):
        simulate(replay_scenario(tmp_path / "live"), "random")


def test_modelled_links_are_no_record(tmp_path):
    agewise.run(
        tiny(**{"run.rounds": 1}), "random", out=tmp_path / "run", engine="inline", quiet=True
    )
    with pytest.raises(FolderError, match="not recorded but modelled"):
        replay_scenario(tmp_path / "run")


def test_the_command_takes_learning_from_a_scenario_or_the_folder(tmp_path):
    scenario = recorded(tmp_path / "live")
    by_paper = compared_scenario("paper", tmp_path / "live", ["learn.local_steps=7"])
    assert by_paper.data == agewise.Scenario.preset("paper").data
    assert (by_paper.channel, by_paper.learn.local_steps) == (scenario.channel, 7)
    by_folder = compared_scenario(None, tmp_path / "live", ["data.dataset=synthetic"])
    assert by_folder == scenario.with_(**{"data.dataset": "synthetic"})
    assert compared_scenario(None, None, None) == agewise.Scenario.preset("paper")
