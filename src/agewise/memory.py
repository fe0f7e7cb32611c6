"""How much memory there is, so that what needs more is refused before it starts."""

import os
import resource
from pathlib import Path

#: Where a container keeps its limit, by either version of control groups.
_CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def require_memory(needed: float, what: str) -> None:
    """Raise ``ValueError`` if this process cannot get this many bytes."""
    most = available_bytes()
    if needed > most:
        raise ValueError(
            f"{what} would need {bytes_text(needed)} of memory, and {bytes_text(most)} are "
            "available: make it smaller"
        )


def available_bytes() -> int:
    """What the machine has, or this process may have if that is less.

    How much of it others use at the moment is not known on every system, and changes.
    """
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    of_process, _ = resource.getrlimit(resource.RLIMIT_AS)
    if of_process != resource.RLIM_INFINITY:
        limits.append(of_process)
    texts = [
        file.read_text(encoding="ascii").strip() for file in _CONTAINER_LIMITS if file.exists()
    ]
    return min([*limits, *(int(text) for text in texts if text.isdigit())])  # "max" is no limit


def bytes_text(count: float) -> str:
    """An amount of memory.

    >>> bytes_text(999), bytes_text(1.6e11)
    ('999 bytes', '160 GB')
    """
    power = 0
    while count >= 1000 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.3g} {_UNITS[power]}"
