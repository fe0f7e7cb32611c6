from . import loggers
from ._description import Description, FolderError
from ._folder import Folder, replay_scenario
from ._progress import progress
from ._summary import LearningCurve, RunMetrics, checkpoints
from .execute import AllFailed, DryRun, Forecast, RunOptions, compare, execute, forecast, run, sweep
from .loggers import LoggedRun, Logger
from .plan import Plan, Run, default_baseline, find_policy, product
from .result import Entry, FailedRun, Result

__all__ = [
    "AllFailed",
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
    "checkpoints",
    "compare",
    "default_baseline",
    "execute",
    "find_policy",
    "forecast",
    "loggers",
    "product",
    "progress",
    "replay_scenario",
    "run",
    "sweep",
]
