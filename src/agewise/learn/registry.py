"""Learners by kind: the ones of this package and those that other packages add.

A package adds one through the entry point group ``agewise.learners``, in its pyproject.toml:

    [project.entry-points."agewise.learners"]
    my-learner = "my_package.my_module:MyLearner"

A scenario names it with ``learn.model = { kind = "plugin", name = "my-learner" }``. What is named
has the two methods of `agewise.learn.base.LearnerKind`; a class with class methods does.
"""

import difflib
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from agewise.cost import payload_bits
from agewise.data import Dataset, Partition, load_once
from agewise.learn.base import Learner, LearnerKind
from agewise.learn.kmeans import KMeansLearner
from agewise.learn.linear import LinearLearner
from agewise.learn.mlp import MlpLearner
from agewise.scenario import Learn, ModelThreshold, Plugin, Scenario, Torch

_GROUP = "agewise.learners"
_BUILT_IN: dict[str, LearnerKind] = {
    "linear": LinearLearner,
    "k-means": KMeansLearner,
    "mlp": MlpLearner,
}


def make_learner(dataset: Dataset, partition: Partition, settings: Learn) -> Learner:
    """The learner that a scenario describes."""
    if not partition.sizes.all():
        empty = int((partition.sizes == 0).argmax())
        raise ValueError(f"UE {empty} has no samples: every UE needs at least one")
    return learner_kind(settings).of(dataset, partition, settings)


def model_length(dataset: Dataset, settings: Learn) -> int:
    """How many numbers a model of this data set has."""
    return learner_kind(settings).length(dataset, settings)


def rate_threshold(scenario: Scenario) -> float:
    """R_s in bits per real channel use, whatever it follows from; a model's length is looked up."""
    if not isinstance(scenario.threshold, ModelThreshold):
        return scenario.rate_threshold
    length = model_length(load_once(scenario.data), scenario.learn)
    return scenario.rate_for(payload_bits(scenario, length))


def learner_kind(settings: Learn) -> LearnerKind:
    """What makes the learners of a scenario; ``ValueError`` with the nearest names otherwise."""
    model = settings.model
    if isinstance(model, Torch):
        # Only now, for PyTorch takes seconds to import and not everybody has it.
        kind: LearnerKind = import_module("agewise.learn.neural").TorchLearner
        return kind
    if not isinstance(model, Plugin):
        return _BUILT_IN[model.kind]
    added = _added()
    if model.name not in added:
        near = difflib.get_close_matches(model.name, added, n=3, cutoff=0.5)
        there = f"there are {', '.join(sorted(added))}" if added else "no package adds any"
        hint = f"did you mean {' or '.join(near)}?" if near else there
        raise ValueError(f"learn.model.name: unknown learner {model.name!r}; {hint}")
    return _load(added[model.name])


def _added() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=_GROUP)}


def _load(entry: EntryPoint) -> LearnerKind:
    try:
        found: Any = entry.load()
    except Exception as error:
        # Another package's code runs here: whatever is wrong with it is said with its name.
        raise ValueError(
            f"learner {entry.name!r} ({entry.value}) cannot be loaded: {error}"
        ) from error
    for method in ("of", "length"):
        if not callable(getattr(found, method, None)):
            raise ValueError(f"learner {entry.name!r} ({entry.value}) has no method {method!r}")
    kind: LearnerKind = found
    return kind
