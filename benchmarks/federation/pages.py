"""Sections of docs/flower.md that scripts write."""

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "flower.md"


def put(name: str, text: str) -> None:
    """Put this text between the marks of a section of the guide."""
    page = GUIDE.read_text(encoding="utf-8")
    pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
    page, found = re.subn(pattern, lambda m: f"{m[1]}{text}\n{m[2]}", page, flags=re.DOTALL)
    assert found == 1, name
    GUIDE.write_text(page, encoding="utf-8")
