"""The command line: parse, call, print."""

from agewise.cli import experiments, report, rivals, schedule
from agewise.cli.app import app, main

__all__ = ["app", "experiments", "main", "report", "rivals", "schedule"]
