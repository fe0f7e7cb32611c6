"""Everything that is attacked."""

from tests.fuzz.calls import Calls, Commands
from tests.fuzz.folders import Folders
from tests.fuzz.targets import (
    DataSets,
    Overrides,
    PolicyTexts,
    RoundArrays,
    RoundFiles,
    ScenarioFiles,
)
from tests.fuzz.traces import Traces

TARGETS = (
    ScenarioFiles, RoundFiles, RoundArrays, DataSets, Traces, Overrides, PolicyTexts, Folders,
    Commands, Calls,
)  # fmt: skip
