"""What differs on the same models: the file that a reproduction leaves, and its table."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agewise.statistics import Estimate
from agewise.tables import Column, Line, Table
from agewise.tables._words import estimate_text, p_text

#: The file in a results folder.
EXPLANATION = "explanation.json"
_NOTE = (
    "What both policies hear, compared on the same models; intervals are 95%, and p-values are "
    "corrected (Holm) for all of the table."
)


def explanation_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """What both policies hear on the same models, and the paired difference."""
    columns = [
        Column("measure", kind="words"),
        Column("age-based", ".2f"),
        Column("max-pack", ".2f"),
        Column("difference"),
    ]
    lines = []
    for row in rows:
        numbers = {name: math.nan if x is None else x for name, x in row.items()}
        aged, packed = (
            (numbers[f"{policy}@age_based"] + numbers[f"{policy}@max_pack"]) / 2
            for policy in ("age_based", "max_pack")
        )
        mean, low, high, p = (numbers[f"difference{end}"] for end in ("", "_low", "_high", "_p"))
        said = [estimate_text(Estimate(mean, low, high), ".2f", 1.0), p_text(p)]
        difference = [Line(text) for text in said if text]
        lines.append([str(row["label"]), aged, packed, difference])
    return Table("How the two policies differ in each measure", columns, lines, _NOTE)
