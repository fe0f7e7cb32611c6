"""What an experiment is: its parts put together, TOML in and out, named presets."""

from agewise.scenario.errors import ScenarioError
from agewise.scenario.measurement import Measurement, NoOptimum, SampledOptimum
from agewise.scenario.scenario import Scenario, presets, require_scenario, short_hash

__all__ = [
    "Measurement",
    "NoOptimum",
    "SampledOptimum",
    "Scenario",
    "ScenarioError",
    "presets",
    "require_scenario",
    "short_hash",
]
