"""How documents are written: whole files, tables in few characters, numbers as CSV."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agewise.files import atomic_write
from agewise.statistics import Contrast
from agewise.tables import Table

#: Tables with more lines are shown only when asked for.
_LONG: Final = 9
#: What columns of a difference are called after its name.
_ENDS: Final = ("", "_low", "_high", "_p")


def compact(table: Table | str) -> str:
    """A table in Markdown without the spaces that align it."""
    text = table if isinstance(table, str) else table.to_markdown()
    return "\n".join(re.sub(r" *([|±]) *", r"\1", line) for line in text.strip().splitlines())


def folded(text: str) -> str:
    """A part of a document with its tables compact, and long ones folded."""

    def fold(found: re.Match[str]) -> str:
        table = compact(found[0])
        if table.count("\n") < _LONG:
            return f"{table}\n"
        return f"<details><summary>Table</summary>\n\n{table}\n\n</details>\n"

    return re.sub(r"(?:^\|.*\n)+", fold, f"{text.strip()}\n", flags=re.MULTILINE).strip()


def between(text: str, name: str, part: str) -> str:
    """A document with what stands between ``<!-- name -->`` and ``<!-- end -->`` made anew."""
    start, end = f"<!-- {name} -->", "<!-- end -->"
    before, _, rest = text.partition(start)
    return f"{before}{start}\n{part.strip()}\n{end}{rest.partition(end)[2]}"


def limits(name: str, contrast: Contrast | None) -> dict[str, float | str]:
    """A difference with its limits and p-value as columns of a CSV file."""
    if contrast is None:
        return dict.fromkeys((f"{name}{end}" for end in _ENDS), "")
    values = (contrast.mean, contrast.low, contrast.high, contrast.p)
    return {f"{name}{end}": short(x) for end, x in zip(_ENDS, values, strict=True)}


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows that `write_csv` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def contrast_in(row: Mapping[str, str], name: str) -> Contrast | None:
    """A difference from the columns that `limits` made, with the ``seeds`` of the row."""
    if not row[name]:
        return None
    mean, low, high, p = (float(row[f"{name}{end}"]) for end in _ENDS)
    return Contrast(mean, low, high, p, int(row["seeds"]))


def short(number: float) -> float:
    """A number with five digits, as CSV files have them."""
    return float(f"{number:.5g}")


def write_document(path: Path, text: str) -> Path:
    """Write a document, or a part of one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as temporary:
        temporary.write_text(f"{text.strip()}\n", encoding="utf-8")
    return path


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows of the same columns as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return write_document(path, text.getvalue())
