"""Files that are written whole or not at all, and checksums that show what changed since."""

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: What stands in a file in the place of its checksum while that is worked out.
NO_CHECKSUM = "0" * 64
_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{64})"')


@contextlib.contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; on success it is flushed and renamed.

    Whoever reads ``path`` finds the old file, the new one, or none: never a part of one.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:  # say the folder, not the name that nobody gave
        raise OSError(error.errno, error.strerror, str(path.parent)) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        _flush_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """The new name, too, must survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """The process's mask of file permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def seal(content: bytes) -> bytes:
    """Content that holds the JSON member ``"checksum": NO_CHECKSUM``, with the checksum there.

    It is the SHA-256 of all bytes as they were given, so that no byte of the file can change
    unnoticed. Nothing moves, because the length stays the same.
    """
    start, end = _checksum_span(content)
    if content[start:end].decode() != NO_CHECKSUM:
        raise ValueError("the content has no empty checksum")
    return content[:start] + hashlib.sha256(content).hexdigest().encode() + content[end:]


def seal_holds(content: bytes) -> bool | None:
    """Whether sealed content is what it was when it was sealed; ``None`` if it never was.

    >>> content = seal(b'{"x": 1, "checksum": "' + NO_CHECKSUM.encode() + b'"}')
    >>> seal_holds(content), seal_holds(content.replace(b"1", b"2", 1)), seal_holds(b"{}")
    (True, False, None)
    """
    start, end = _checksum_span(content)
    if end == 0:
        return None
    empty = content[:start] + NO_CHECKSUM.encode() + content[end:]
    return hashlib.sha256(empty).hexdigest().encode() == content[start:end]


def _checksum_span(content: bytes) -> tuple[int, int]:
    """Where the last checksum of the content begins and ends; (0, 0) without one."""
    at = content.rfind(b'"checksum": "')
    found = _CHECKSUM.match(content, at) if at >= 0 else None
    return found.span(1) if found else (0, 0)
