"""Experiments: policies x seeds x variations, run on an engine, resumed, summed up."""

from agewise.experiment.description import Description, FolderError
from agewise.experiment.execute import (
    AllFailed,
    Options,
    StudyOptions,
    compare,
    engine_of,
    execute,
    execute_study,
    run,
    sweep,
)
from agewise.experiment.folder import Folder
from agewise.experiment.forecast import Forecast, forecast, forecast_all
from agewise.experiment.loggers import CsvLogger, LoggedRun, Logger, TensorBoardLogger
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
from agewise.experiment.summary import Course, Measured, checkpoints, point_name

__all__ = [
    "AllFailed",
    "Course",
    "CsvLogger",
    "Description",
    "Entry",
    "FailedRun",
    "Folder",
    "FolderError",
    "Forecast",
    "LoggedRun",
    "Logger",
    "Measured",
    "Options",
    "Plan",
    "Result",
    "Run",
    "StudyOptions",
    "TensorBoardLogger",
    "as_columns",
    "checkpoints",
    "compare",
    "default_baseline",
    "engine_of",
    "execute",
    "execute_study",
    "find_policy",
    "forecast",
    "forecast_all",
    "point_name",
    "product",
    "replay_scenario",
    "run",
    "sweep",
]
