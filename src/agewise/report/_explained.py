"""What explains the gain, as a part of the page: from the files of the results folder."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from agewise.files import read_sealed
from agewise.report._gains import explanation_chart
from agewise.report.style import new_figure, page_style
from agewise.report.svg import inline_svg
from agewise.statistics import Estimate
from agewise.tables import Column, Line, Table
from agewise.tables._words import estimate_text, p_text

_NOTE = (
    "What both policies hear, compared on the same models; intervals are 95%, and p-values are "
    "corrected (Holm) for all of the table."
)
_ALT = "How the two policies differ in each measure"


def explained_section(folder: Path) -> str:
    """The section of the page; nothing if nothing was explained, or the file was changed."""
    found = read_sealed(folder / "explanation.json")
    if found is None:
        return ""
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in found["sentences"])
    return (
        '<h3 class="part">What differs on the same models</h3>'
        f"{sentences}{_picture(found['rows'])}{explanation_table(found['rows']).to_html()}"
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
    return Table(_ALT, columns, lines, _NOTE)


def _picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """The chart of the folder's explanation.pdf, from its numbers."""
    with page_style():
        figure = new_figure(4.0, 3.4)
        explanation_chart(rows, figure.subplots())
        picture = inline_svg(figure, "explained", _ALT)
    return f'<div class="scroll wide" tabindex="0" role="region" aria-label="Chart">{picture}</div>'
