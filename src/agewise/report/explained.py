"""What explains the gain, as a part of the page: from the files of the results folder."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from agewise.files import read_sealed
from agewise.report._gains import explanation_chart
from agewise.report.style import new_figure, page_style
from agewise.report.svg import inline_svg
from agewise.report.text import p_text, with_interval

_HEAD = ("measure", "age-based", "max-pack", "difference")
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
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in _HEAD)
    rows = "".join(f"<tr>{_entries(row)}</tr>" for row in found["rows"])
    return (
        '<h3 class="part">What differs on the same models</h3>'
        f'{sentences}{_picture(found["rows"])}<div class="scroll" tabindex="0" '
        f'role="region" aria-label="{escape(_ALT)}"><table>'
        f'<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div><p class="note">'
        f"{escape(_NOTE)}</p>"
    )


def _entries(row: Mapping[str, Any]) -> str:
    means = (
        (row[f"{policy}@age_based"], row[f"{policy}@max_pack"])
        for policy in ("age_based", "max_pack")
    )
    cells = [_mean(*both) for both in means]
    cells.append(_with_p(row))
    numbers = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<th scope="row">{escape(str(row["label"]))}</th>{numbers}'


def _mean(first: float | None, second: float | None) -> str:
    return "–" if first is None or second is None else f"{(first + second) / 2:.2f}"


def _with_p(row: Mapping[str, Any]) -> str:
    if row["difference"] is None or row["difference_low"] is None:
        return "–"
    said = (with_interval(row, "difference", ".2f", 1), p_text(row["difference_p"]))
    return ", ".join(filter(None, said))


def _picture(rows: Sequence[Mapping[str, Any]]) -> str:
    """The chart of the folder's explanation.pdf, from its numbers."""
    with page_style():
        figure = new_figure(4.0, 3.4)
        explanation_chart(rows, figure.subplots())
        picture = inline_svg(figure, "explained", _ALT)
    return f'<div class="scroll wide" tabindex="0" role="region" aria-label="Chart">{picture}</div>'
