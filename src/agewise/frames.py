"""Polars, which reads, writes and computes tables, in processes that were forked.

Its threads do not survive a fork: a child of a process in which they had started would wait for
them for ever. A child of one in which they had not may use it.
"""

import os
import re
import sys
from pathlib import Path

_THREAD = re.compile(r"polars-\d+$")
_started = _lost = False


def require_frames() -> None:
    """Raise ``RuntimeError`` where Polars would wait for ever."""
    if _lost:
        raise RuntimeError(
            "tables cannot be used in a process that was forked after its parent had used them: "
            'start it with multiprocessing.get_context("spawn"), or fork before'
        )


def _threads_run() -> bool:
    """Whether Polars has threads in this process, whoever used it."""
    try:
        names = [task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm")]
    except OSError:  # no Linux, or a thread that ended meanwhile: better safe
        names = []
    return any(map(_THREAD.match, names)) if names else "polars" in sys.modules


def _before_fork() -> None:
    global _started
    _started = _threads_run()


def _in_child() -> None:
    global _lost
    _lost = _lost or _started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_in_child)
