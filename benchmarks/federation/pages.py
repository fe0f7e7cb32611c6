"""Sections of docs/federation.md that scripts write."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "federation.md"


def put(name: str, text: str) -> None:
    """Put this text between the marks of a section of the page."""
    page = PAGE.read_text(encoding="utf-8")
    pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
    page, found = re.subn(pattern, lambda m: f"{m[1]}{text}\n{m[2]}", page, flags=re.DOTALL)
    assert found == 1, name
    PAGE.write_text(page, encoding="utf-8")
