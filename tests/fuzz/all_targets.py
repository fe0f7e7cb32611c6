"""Everything that is attacked."""

from tests.fuzz.folders import Folders
from tests.fuzz.targets import (
    DataSets,
    Overrides,
    PolicyTexts,
    RoundArrays,
    RoundFiles,
    ScenarioFiles,
    Traces,
)

TARGETS = (
    ScenarioFiles, RoundFiles, RoundArrays, DataSets, Traces, Overrides, PolicyTexts, Folders,
)  # fmt: skip
