"""Experiments: policies x seeds x variations, run on an engine, resumed, summed up."""

from agewise.experiment.description import Description, FolderError
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
from agewise.experiment.folder import Folder, replay_scenario
from agewise.experiment.loggers import CsvLogger, LoggedRun, Logger, TensorBoardLogger
from agewise.experiment.plan import (
    Plan,
    Run,
    as_columns,
    default_baseline,
    find_policy,
    product,
)
from agewise.experiment.result import Entry, FailedRun, Result
from agewise.experiment.summary import Course, Measured, checkpoints, point_name

__all__ = [
    "AllFailed",
    "Course",
    "CsvLogger",
    "Description",
    "DryRun",
    "Entry",
    "FailedRun",
    "Folder",
    "FolderError",
    "Forecast",
    "LoggedRun",
    "Logger",
    "Measured",
    "Plan",
    "Result",
    "Run",
    "RunOptions",
    "TensorBoardLogger",
    "as_columns",
    "checkpoints",
    "compare",
    "default_baseline",
    "execute",
    "find_policy",
    "forecast",
    "point_name",
    "product",
    "replay_scenario",
    "run",
    "sweep",
]
