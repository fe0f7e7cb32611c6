"""What an experiment is: validated models, TOML in and out, named presets."""

from agewise.scenario.errors import ScenarioError
from agewise.scenario.models import Cell, Channel, Data, Learn, LinkBudget, Run, Timing, Upload
from agewise.scenario.scenario import Scenario, presets, summary

__all__ = [
    "Cell",
    "Channel",
    "Data",
    "Learn",
    "LinkBudget",
    "Run",
    "Scenario",
    "ScenarioError",
    "Timing",
    "Upload",
    "presets",
    "summary",
]
