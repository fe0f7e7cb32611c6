"""Hypothesis is seeded: the same examples on every run and machine. What takes long is marked."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("agewise", derandomize=True, deadline=None, max_examples=300)
settings.load_profile("agewise")

#: Folders and files whose tests `make quick` leaves out: whole commands, pages, processes, sites.
LONG = (
    "conformance/test_policies.py", "core/test_jit.py", "documents", "engines", "experiment",
    "fuzz", "report", "studies", "test_cli.py", "test_docs.py", "test_forks.py", "test_memory.py",
    "test_mistakes.py", "test_package.py", "test_same_bytes.py", "test_shown_commands.py",
    "test_site.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Mark the tests below `LONG`."""
    here = Path(__file__).parent
    for item in items:
        if any(item.path.is_relative_to(here / each) for each in LONG):
            item.add_marker(pytest.mark.long)
