"""How much memory is left, so that what needs more is refused before it starts."""

from collections.abc import Iterator
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def require_memory(needed: float, what: str) -> None:
    """Raise ``ValueError`` if this process cannot get this many bytes."""
    left = available_bytes()
    if left is not None and needed > left:
        raise ValueError(
            f"{what} would need {bytes_text(needed)} of memory, and {bytes_text(left)} are "
            "available: make it smaller"
        )


def available_bytes() -> int | None:
    """What the machine has left, or the group of this process if less; ``None`` if unknown."""
    return min([*_of_machine(), *_of_groups()], default=None)


def bytes_text(count: float) -> str:
    """An amount of memory.

    >>> bytes_text(999), bytes_text(1.6e11)
    ('999 bytes', '160 GB')
    """
    power = 0
    while count >= 1000 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.3g} {_UNITS[power]}"


def _of_machine() -> Iterator[int]:
    for line in _text(_MEMINFO).splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            yield 1024 * int(value.split()[0])


def _of_groups() -> Iterator[int]:
    """What each control group around this process has left, of either version."""
    for line in _text(_OWN_GROUPS).splitlines():
        _, kinds, path = line.split(":", 2)
        own = Path(path.lstrip("/"))
        for group in (own, *own.parents):
            if "memory" in kinds.split(","):
                folder = _GROUPS / "memory" / group
                yield from _left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes")
            elif not kinds:
                yield from _left(_GROUPS / group, "memory.max", "memory.current")


def _left(folder: Path, limit_file: str, used_file: str) -> Iterator[int]:
    limit, used = _text(folder / limit_file).strip(), _text(folder / used_file).strip()
    if limit.isdigit() and used.isdigit():  # "max" is no limit
        # Copies of files are let go when memory is wanted.
        lines = (line.split() for line in _text(folder / "memory.stat").splitlines())
        freed = max((int(n) for name, n in lines if name.endswith("inactive_file")), default=0)
        yield max(0, int(limit) - int(used) + freed)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except OSError:
        return ""
