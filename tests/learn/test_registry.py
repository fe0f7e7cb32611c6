"""Learners that other packages add."""

import re
from importlib.metadata import EntryPoint

import pytest

from agewise import simulate
from agewise.learn import LinearLearner, registry
from agewise.scenario import Scenario
from tests.scenarios import tiny


class Halved:
    """A learner of another package: a linear model whose steps are as long as it is told."""

    @classmethod
    def of(cls, dataset, partition, settings):
        return LinearLearner.of(dataset, partition, cls._linear(settings))

    @classmethod
    def length(cls, dataset, settings):
        return LinearLearner.length(dataset, cls._linear(settings))

    @staticmethod
    def _linear(settings):
        model = {"kind": "linear", "loss": "hinge", "initial_deviation": 0.01}
        step = settings.step_size * settings.model.settings.values()["factor"]
        return tiny(**{"learn.model": model, "learn.step_size": step}).learn


class NoLength:
    of = Halved.of


@pytest.fixture(autouse=True)
def _added(monkeypatch):
    names = {"halved": "Halved", "no-length": "NoLength", "not-there": "NotThere"}
    entries = [
        EntryPoint(name, f"{__name__}:{attribute}", "agewise.learners")
        for name, attribute in names.items()
    ]
    loaded = {"Halved": Halved, "NoLength": NoLength}
    monkeypatch.setattr(
        registry, "entry_points", lambda group: entries * (group == "agewise.learners")
    )
    monkeypatch.setattr(EntryPoint, "load", lambda entry: loaded[entry.value.rpartition(":")[2]])


def plugin(name, **settings):
    return tiny(**{"learn.model": {"kind": "plugin", "name": name, "settings": settings}})


def test_a_learner_of_another_package_runs(tmp_path):
    scenario = plugin("halved", factor=0.5)
    (tmp_path / "mine.toml").write_text(scenario.to_toml())
    assert Scenario.load(tmp_path / "mine.toml") == scenario
    found = simulate(scenario, "age-based", 4)
    expected = simulate(tiny(**{"learn.step_size": 0.025}), "age-based", 4)
    assert found.accuracy.tolist() == expected.accuracy.tolist()
    assert scenario.with_(**{"learn.model.settings.factor": 1.0}) == plugin("halved", factor=1.0)


@pytest.mark.parametrize(
    ("name", "message"),
    [("halve", "learn.model.name: unknown learner 'halve'; did you mean halved?"),
     ("zzz", "there are halved, no-length, not-there"), ("no-length", "has no method 'length'"),
     ("not-there", "learner 'not-there' (")],
)  # fmt: skip
def test_learners_that_are_not_there(name, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        simulate(plugin(name), "age-based")
