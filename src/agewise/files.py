"""Files that are written whole or not at all, read with care, and known by their content."""

import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

#: What stands in a file in the place of its checksum while that is worked out.
NO_CHECKSUM = "0" * 64
_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{64})"')
#: Temporary files that `atomic_write` makes, by which only they are ever cleared away.
_TEMPORARY = re.compile(r"\.agewise-(\d+)-\w+\.tmp")
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
}
#: JSON that is nested deeper is refused: nothing that is written here comes near.
_DEEPEST = 40


class NotRegularFile(OSError):
    """A pipe, a device, a link or a folder in the place of a file, or a file that is too large."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(errno.EINVAL, problem, str(path))


def temporary_name(path: Path) -> Path:
    """A name beside ``path`` that nobody has, which `clear_leftovers` knows as temporary."""
    return path.with_name(f".agewise-{os.getpid()}-{secrets.token_hex(4)}.tmp")


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` to write to; on success it is flushed and renamed.

    Whoever reads ``path`` finds the old file, the new one, or none: never a part of one.
    """
    with contextlib.suppress(FileNotFoundError):
        _require_plain(path, path.stat())  # root could put a file in the place of /dev/null
    temporary = temporary_name(path)
    try:
        # As wide as the process's mask allows, which the system applies: to read it one has to
        # set it.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:  # say the folder, not the name that nobody gave
        raise OSError(error.errno, error.strerror, str(path.parent)) from error
    try:
        with contextlib.suppress(OSError):  # some disks have no locks
            fcntl.flock(handle, fcntl.LOCK_SH)  # held as long as somebody works on the file
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        _flush_folder(path.parent)
    except OSError as error:  # that the disk is full, and of which file that is said
        if error.errno is None or error.filename not in (None, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file by `atomic_write`."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def clear_leftovers(folder: Path) -> None:
    """Delete the temporary files of `atomic_write` in this very folder whose process is gone."""
    for file in folder.iterdir():
        found = _TEMPORARY.fullmatch(file.name)
        if found and not _is_alive(int(found[1])):
            with contextlib.suppress(OSError):
                _unlink_unless_locked(file)


def _is_alive(process: int) -> bool:
    try:
        with contextlib.suppress(PermissionError):
            os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _unlink_unless_locked(file: Path) -> None:
    """The lock tells of processes on other machines and in other containers."""
    with os.fdopen(open_regular_file(file, os.O_RDONLY), "rb") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink(missing_ok=True)


def open_regular_file(path: Path, flags: int, mode: int = 0o666) -> int:
    """A handle of a regular file that is no link; `NotRegularFile` says what it is instead.

    Nothing else is opened, for a pipe would wait and a device might act.
    """
    with contextlib.suppress(FileNotFoundError):
        _require_plain(path, path.lstat())
    extra = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(path, flags | extra, mode)
    try:
        _require_plain(path, os.fstat(handle))
    except NotRegularFile:
        os.close(handle)
        raise
    return handle


def _require_plain(path: Path, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        kind = _KINDS.get(stat.S_IFMT(state.st_mode), "something else")
        raise NotRegularFile(path, f"{kind}, not a file")


def read_regular_file(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most ``limit`` bytes that is no link."""
    with os.fdopen(open_regular_file(path, os.O_RDONLY), "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise NotRegularFile(path, f"a file of more bytes than the {limit:,} that it may have")
    return content


def parse_json(text: str) -> object:
    """JSON as plain data; ``ValueError`` if it is none, or nested beyond all need.

    Names that are no UTF-8 are kept as Python has them, for which other parsers are too strict.
    """
    try:
        value: object = json.loads(text)
        level = [value]
        for _ in range(_DEEPEST):
            holding = [list(x.values()) if isinstance(x, dict) else x for x in level]
            level = [inner for outer in holding if isinstance(outer, list) for inner in outer]
    except RecursionError:
        level = [None]
    if level:
        raise ValueError(f"nested more than {_DEEPEST} levels deep")
    return value


def fingerprint(path: Path | str) -> str | None:
    """The SHA-256 of a file's content; ``None`` if there is no regular file to read.

    That of a folder is of the names and contents of the JSON files in it, for data sets that come
    in many. A file is read once as long as it stays what it is.
    """
    file = Path(path)
    try:
        state = file.stat()
        if stat.S_ISDIR(state.st_mode):
            parts = [f"{part.name} {fingerprint(part)}" for part in sorted(file.glob("*.json"))]
            return hashlib.sha256("\n".join(parts).encode()).hexdigest() if parts else None
        if not stat.S_ISREG(state.st_mode):
            return None
        return _fingerprint(file, stamp(file))
    except OSError:
        return None


def stamp(path: Path | str) -> tuple[int, ...]:
    """Numbers that change when the file does: times, size and inode."""
    state = Path(path).stat()
    return (state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino, state.st_dev)


@functools.lru_cache(maxsize=256)
def _fingerprint(file: Path, _: tuple[int, ...]) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _flush_folder(folder: Path) -> None:
    """The new name, too, must survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def add_checksum(content: bytes) -> bytes:
    """Content that holds the JSON member ``"checksum": NO_CHECKSUM``, with the checksum there.

    It is the SHA-256 of all bytes as they were given, so that no byte of the file can change
    unnoticed. Nothing moves, because the length stays the same.
    """
    start, end = _checksum_span(content)
    if content[start:end].decode() != NO_CHECKSUM:
        raise ValueError("the content has no empty checksum")
    return content[:start] + hashlib.sha256(content).hexdigest().encode() + content[end:]


def json_with_checksum(values: Mapping[str, object]) -> bytes:
    """A JSON object with its checksum, as `read_verified_json` reads it."""
    text = json.dumps({**values, "checksum": NO_CHECKSUM}, indent=2)
    return add_checksum(f"{text}\n".encode())


def verify_checksum(content: bytes) -> bool | None:
    """Whether content matches its checksum; ``None`` if it has none.

    >>> content = add_checksum(b'{"x": 1, "checksum": "' + NO_CHECKSUM.encode() + b'"}')
    >>> changed = content.replace(b"1", b"2", 1)
    >>> verify_checksum(content), verify_checksum(changed), verify_checksum(b"{}")
    (True, False, None)
    """
    start, end = _checksum_span(content)
    if end == 0:
        return None
    empty = content[:start] + NO_CHECKSUM.encode() + content[end:]
    return hashlib.sha256(empty).hexdigest().encode() == content[start:end]


def read_verified_json(file: Path) -> dict[str, Any] | None:
    """The JSON object of a file with a checksum; ``None`` if it is not there or has changed."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    if not verify_checksum(content):
        return None
    values: dict[str, Any] = json.loads(content)
    return values


def _checksum_span(content: bytes) -> tuple[int, int]:
    """Where the last checksum of the content begins and ends; (0, 0) without one."""
    at = content.rfind(b'"checksum": "')
    found = _CHECKSUM.match(content, at) if at >= 0 else None
    return found.span(1) if found else (0, 0)
