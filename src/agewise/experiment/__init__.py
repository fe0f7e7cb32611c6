"""Experiments: policies x seeds x variations, run on an engine, resumed, summed up."""

from agewise.experiment.execute import compare, execute, run, sweep
from agewise.experiment.folder import Folder, FolderError
from agewise.experiment.result import Result
from agewise.experiment.summary import Measured, baseline_of, checkpoints

__all__ = [
    "Folder",
    "FolderError",
    "Measured",
    "Result",
    "baseline_of",
    "checkpoints",
    "compare",
    "execute",
    "run",
    "sweep",
]
