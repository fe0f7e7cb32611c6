"""Loggers: what they were given is read back from their files, or from a stand-in module."""

import csv
import sys
from types import ModuleType

import numpy as np
import pytest

import agewise
from agewise.experiment import LoggedRun
from tests.scenarios import tiny

SCENARIO = tiny(**{"run.rounds": 3})


def compare(out, loggers, **options):
    return agewise.compare(
        SCENARIO, ["age-based", "random"], 2, out, loggers=loggers, engine="inline", quiet=True,
        **options,
    )  # fmt: skip


def accuracy_of(result, name):
    """The accuracies of the run whose file has this name."""
    return agewise.History.load(result.path / "runs" / f"{name}.parquet").accuracy


def test_csv_has_every_round_of_every_run(tmp_path):
    result = compare(tmp_path / "out", ["csv"])
    files = sorted((tmp_path / "out" / "logs" / "csv").glob("*.csv"))
    assert len(files) == 4
    for file in files:
        with file.open(newline="") as opened:
            rows = list(csv.DictReader(opened))
        assert [row["round"] for row in rows] == ["1", "2", "3"]
        logged = [float(row["accuracy"]) for row in rows]
        np.testing.assert_array_equal(logged, accuracy_of(result, file.stem))


def test_runs_that_are_there_are_logged_once(tmp_path):
    class Mine:
        name = "mine"
        runs: list[LoggedRun] = []  # noqa: RUF012

        def log(self, run):
            self.runs.append(run)

    compare(tmp_path / "out", [])
    for _ in range(2):
        compare(tmp_path / "out", [Mine()])
    assert len(Mine.runs) == 4
    assert {run.settings["policy"] for run in Mine.runs} == {"age-based", "random"}
    assert {run.settings["seed"] for run in Mine.runs} == {0, 1}


def test_tensorboard_files_are_read_back(tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event

    result = compare(tmp_path / "out", ["tensorboard"])
    folders = sorted((tmp_path / "out" / "logs" / "tensorboard").iterdir())
    assert len(folders) == 4
    for folder in folders:
        (file,) = folder.iterdir()
        raw, found = file.read_bytes(), []
        while raw:  # length, checksum, event, checksum
            size = int.from_bytes(raw[:8], "little")
            event = Event.FromString(raw[12 : 12 + size])
            found += [(event.step, v.simple_value) for v in event.summary.value
                      if v.tag == "accuracy"]  # fmt: skip
            raw = raw[16 + size :]
        assert [step for step, _ in found] == [1, 2, 3]
        logged = np.array([value for _, value in found])
        np.testing.assert_allclose(logged, accuracy_of(result, folder.name), rtol=1e-6)


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_trackers_get_init_log_and_finish(tmp_path, monkeypatch, name):
    calls = []
    stand_in = ModuleType(name)
    stand_in.init = lambda **given: calls.append(("init", given))
    stand_in.log = lambda values: calls.append(("log", values))
    stand_in.finish = lambda: calls.append(("finish", None))
    monkeypatch.setitem(sys.modules, name, stand_in)
    result = compare(tmp_path / "out", [name])
    assert [call for call, _ in calls] == ["init", "log", "log", "log", "finish"] * 4
    begun = calls[0][1]
    assert begun["project"] == "out"
    assert begun["config"]["policy.alpha"] == 0.5
    logged = [values["accuracy"] for call, values in calls[:5] if call == "log"]
    np.testing.assert_array_equal(logged, accuracy_of(result, begun["name"]))


def test_mistakes_are_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="unknown logger 'tb'; there are csv, tensorboard"):
        compare(tmp_path / "out", ["tb"])
    with pytest.raises(ValueError, match="give a results folder"):
        compare(None, ["csv"])
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'agewise\[wandb\]'"):
        compare(tmp_path / "out", ["wandb"])
    with pytest.raises(TypeError, match="there is no option 'worker'; there are engine, workers"):
        compare(tmp_path / "out", [], worker=2)
    assert not (tmp_path / "out").exists()
