"""The command line: parse, call, print."""

from agewise.cli import _commands as _commands  # which registers the commands
from agewise.cli._app import app, main

__all__ = ["app", "main"]
