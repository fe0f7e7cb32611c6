"""Experiments: policies x seeds x variations, run on an engine, resumed, summed up."""

from agewise.experiment._description import Description, FolderError
from agewise.experiment._folder import Folder, replay_scenario
from agewise.experiment._progress import progress
from agewise.experiment._summary import LearningCurve, RunMetrics, checkpoints
from agewise.experiment.execute import (
    AllFailed,
    DryRun,
    Forecast,
    RunOptions,
    compare,
    execute,
    forecast,
    run,
    sweep,
)
from agewise.experiment.loggers import CsvLogger, LoggedRun, Logger, TensorBoardLogger
from agewise.experiment.plan import (
    Plan,
    Run,
    default_baseline,
    find_policy,
    product,
)
from agewise.experiment.result import Entry, FailedRun, Result

__all__ = [
    "AllFailed",
    "CsvLogger",
    "Description",
    "DryRun",
    "Entry",
    "FailedRun",
    "Folder",
    "FolderError",
    "Forecast",
    "LearningCurve",
    "LoggedRun",
    "Logger",
    "Plan",
    "Result",
    "Run",
    "RunMetrics",
    "RunOptions",
    "TensorBoardLogger",
    "checkpoints",
    "compare",
    "default_baseline",
    "execute",
    "find_policy",
    "forecast",
    "product",
    "progress",
    "replay_scenario",
    "run",
    "sweep",
]
