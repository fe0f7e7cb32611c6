"""The command line: parse, call, print."""

from agewise.cli import commands
from agewise.cli.app import app, main

__all__ = ["app", "commands", "main"]
