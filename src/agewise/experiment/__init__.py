"""Experiments: policies x seeds x variations, run on an engine, resumed, summed up."""

from agewise.experiment.description import Description, FolderError
from agewise.experiment.execute import AllFailed, compare, execute, run, sweep
from agewise.experiment.folder import Folder
from agewise.experiment.replay import replay_scenario
from agewise.experiment.result import Entry, FailedRun, Result
from agewise.experiment.runs import (
    Plan,
    Run,
    as_columns,
    default_baseline,
    find_policy,
    product,
)
from agewise.experiment.summary import Measured, checkpoints

__all__ = [
    "AllFailed",
    "Description",
    "Entry",
    "FailedRun",
    "Folder",
    "FolderError",
    "Measured",
    "Plan",
    "Result",
    "Run",
    "as_columns",
    "checkpoints",
    "compare",
    "default_baseline",
    "execute",
    "find_policy",
    "product",
    "replay_scenario",
    "run",
    "sweep",
]
