"""The command line: parse, call, print."""

from agewise.cli import experiments, schedule
from agewise.cli.app import app, main

__all__ = ["app", "experiments", "main", "schedule"]
