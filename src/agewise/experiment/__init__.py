"""Experiments: policies x seeds x variations, run on an engine, resumed, summed up."""

from agewise.experiment.description import Description, FolderError
from agewise.experiment.execute import compare, execute, run, sweep
from agewise.experiment.folder import Folder
from agewise.experiment.result import Entry, Result
from agewise.experiment.runs import Plan, Run, default_baseline, product
from agewise.experiment.summary import Measured, checkpoints

__all__ = [
    "Description",
    "Entry",
    "Folder",
    "FolderError",
    "Measured",
    "Plan",
    "Result",
    "Run",
    "checkpoints",
    "compare",
    "default_baseline",
    "execute",
    "product",
    "run",
    "sweep",
]
