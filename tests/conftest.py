"""Hypothesis is seeded: the same examples on every run and machine. What takes long comes first."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("agewise", derandomize=True, deadline=None, max_examples=300)
settings.load_profile("agewise")

#: With these two processes begin: each compiles kernels that the other finds in the cache later.
FIRST = ("conformance/test_policies.py", "conformance/test_learners.py")
#: Folders and files whose tests `make quick` leaves out: whole commands, pages, processes, sites.
#: They come before the others, those with the longest tests first, so that none is waited for.
LONG = (
    "test_site.py", "engines", "experiment", "report", "fuzz", "test_mistakes.py", "test_docs.py",
    "core/test_jit.py", "test_cli.py", "documents", "studies", "test_package.py",
    "test_same_bytes.py", "test_shown_commands.py", "test_memory.py", "test_forks.py",
    "conformance/test_policies.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Mark the tests below `LONG`, and order all."""
    here = Path(__file__).parent

    def place(item):
        first = [n for n, each in enumerate(FIRST + LONG) if item.path.is_relative_to(here / each)]
        return min(first, default=len(FIRST + LONG))

    items.sort(key=place)
    for item in items:
        if any(item.path.is_relative_to(here / each) for each in LONG):
            item.add_marker(pytest.mark.long)
