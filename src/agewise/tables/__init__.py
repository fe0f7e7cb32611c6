"""Tables of results: what is estimated, in words, for every medium."""

from agewise.tables.results import (
    GainMap,
    PolicyTable,
    ResultTable,
    Row,
    TargetRow,
    TargetTable,
    column_entries,
)
from agewise.tables.table import Cell, Column, Line, PolicyName, Table

__all__ = [
    "Cell",
    "Column",
    "GainMap",
    "Line",
    "PolicyName",
    "PolicyTable",
    "ResultTable",
    "Row",
    "Table",
    "TargetRow",
    "TargetTable",
    "column_entries",
]
