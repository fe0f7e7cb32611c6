"""Tables of results: what is estimated, in words, for every medium."""

from agewise.tables.devices import device_table
from agewise.tables.explanation import Explanation
from agewise.tables.race import Racer, RaceTable
from agewise.tables.results import (
    Flat,
    GainMap,
    PolicyTable,
    ResultTable,
    Row,
    TargetRow,
    TargetTable,
    Variation,
    column_entries,
)
from agewise.tables.table import Cell, Column, Line, PolicyName, Table

__all__ = [
    "Cell",
    "Column",
    "Explanation",
    "Flat",
    "GainMap",
    "Line",
    "PolicyName",
    "PolicyTable",
    "RaceTable",
    "Racer",
    "ResultTable",
    "Row",
    "Table",
    "TargetRow",
    "TargetTable",
    "Variation",
    "column_entries",
    "device_table",
]
