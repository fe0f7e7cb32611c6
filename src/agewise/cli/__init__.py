"""The command line: parse, call, print."""

from agewise.cli import commands, commands_radio, commands_studies
from agewise.cli.app import app, main

__all__ = ["app", "commands", "commands_radio", "commands_studies", "main"]
