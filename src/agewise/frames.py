"""Polars, imported when first used, and refused where it would wait for ever.

Its threads do not survive a fork: a child of a process that had used tables would wait for them.
A child of one that had not may use it.
"""

import os
from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    import polars as pl
else:
    pl = lazy_loader.load("polars")

__all__ = ["pl", "require_frames"]

_used = _lost = False


def require_frames() -> None:
    """Raise ``RuntimeError`` in a child of a process that had used tables."""
    global _used
    if _lost:
        raise RuntimeError(
            "tables cannot be used in a process that was forked after its parent had used them: "
            'start it with multiprocessing.get_context("spawn"), or fork before'
        )
    _used = True


def _in_child() -> None:
    global _lost
    _lost = _lost or _used


os.register_at_fork(after_in_child=_in_child)
