"""The documents say what the code computes."""

import re
from pathlib import Path

import pytest

from tests import errata

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def test_errata_figures_are_what_the_script_makes():
    text = errata.DOCUMENT.read_text(encoding="utf-8")
    assert errata.regenerated(text) == text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files(document):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_named_in_documents_exists(document):
    """Names written as `agewise.x.y` or as paths under src/ and tests/ are real."""
    import importlib

    text = document.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src|tests|benchmarks|examples|docs)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(agewise(?:\.\w+)+)`", text):
        module, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.parametrize("name", ["README.md", "docs/policies.md"])
def test_python_in_documents_runs(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), {"__name__": "example"})


def test_every_policy_is_described():
    from agewise import policies

    text = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    assert [name for name in policies.names() if f"`{name}`" not in text] == []
