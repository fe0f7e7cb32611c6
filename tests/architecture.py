"""Draws the import layers of docs/architecture.md: ``python -m tests.architecture``.

The contracts stand in pyproject.toml, where import-linter checks them.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "architecture.md"


def layers():
    """The layers, from the top down: in each, rooms that do not know of each other."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each["type"] == "layers"]
    return [re.split(r"\s*[|:]\s*", layer) for layer in contract["layers"]]


def diagram():
    """A box with a row for each layer: a row may import the rows below it."""
    rows = ["   ".join(layer) for layer in layers()]
    width = max(map(len, rows)) + 2
    edge = f"+{'-' * width}+"
    return f"{edge}\n" + "".join(f"|{row.center(width)}|\n{edge}\n" for row in rows)


def regenerated(text):
    """The document with the diagram made anew."""
    made, count = re.subn(
        r"(<!-- layers -->\n```text\n).*?(```\n<!-- end -->)",
        lambda found: f"{found[1]}{diagram()}{found[2]}",
        text,
        flags=re.DOTALL,
    )
    assert count == 1
    return made


if __name__ == "__main__":
    DOCUMENT.write_text(regenerated(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
