"""Files that a user brings: found to be files, and arrays in NPZ archives, whatever is in them."""

import contextlib
import math
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from agewise.checks import require_memory

#: Where the lengths of a member's name and extra field stand in front of it, and how long that is.
_LOCAL_HEAD = struct.Struct("<26xHH")
_CHUNK = 2**20


def require_file(path: Path) -> None:
    """Raise ``ValueError`` unless there is a regular file of this name; it says where that is."""
    if path.is_dir():
        raise ValueError(f"{path.absolute()}: a folder, not a file")
    if not path.exists():
        raise ValueError(f"{path.absolute()}: no such file")
    if not path.is_file():
        raise ValueError(f"{path.absolute()}: not a regular file")


def read_arrays(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """The arrays of these names in an NPZ file; ``ValueError`` says what is wrong with it."""
    require_file(path)
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not an NPZ file")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive]
            held = ", ".join(archive.files) or "nothing"
            size = sum(member.file_size for member in archive.zip.infolist())
            arrays = [] if missing else _loaded(archive, names, size)
    except Exception as error:
        # A damaged archive fails in the zip reader, in zlib, or in the parser of the header.
        raise ValueError(f"{path}: not a readable NPZ file: {_reason(error)}") from error
    if missing:
        raise ValueError(f"{path}: it has no array {missing[0]!r}; it holds {held}")
    for name, array in zip(names, arrays, strict=True):
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path}: its member {name!r} is not an array")
    return arrays


def array_names(path: Path) -> list[str]:
    """The names of the arrays in an NPZ file; ``ValueError`` if it is none."""
    require_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except Exception as error:
        raise ValueError(f"{path}: not a readable NPZ file: {_reason(error)}") from error


def map_array(path: Path, name: str) -> NDArray[Any]:
    """An array of an NPZ file or, without a name, of an NPY file, mapped: it stays on the disk.

    A member that is compressed cannot be mapped and is loaded. The checksum of one that can is
    verified in one pass.
    """
    require_file(path)
    try:
        if not name:
            with path.open("rb") as file:
                return _mapped(path, file, 0, path.stat().st_size)
        with zipfile.ZipFile(path) as archive, contextlib.suppress(_NotMappable):
            member = archive.getinfo(f"{name}.npy")
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
                raise _NotMappable
            start = _start_of(path, member.header_offset)
            with archive.open(member) as file:
                array = _mapped(path, file, start, member.file_size)
            _require_checksum(path, start, member)
            return array
    except Exception as error:
        # A damaged archive fails in the zip reader, in the parser of the header, or when mapped.
        kind = "NPZ" if name else "NPY"
        raise ValueError(f"{path}: not a readable {kind} file: {_reason(error)}") from error
    return read_arrays(path, [name])[0]


class _NotMappable(Exception):
    """A member that has to be loaded."""


def _start_of(path: Path, header_offset: int) -> int:
    """Where the content of a member begins in the archive."""
    with path.open("rb") as file:
        file.seek(header_offset)
        name, extra = _LOCAL_HEAD.unpack(file.read(_LOCAL_HEAD.size))
    return int(header_offset + _LOCAL_HEAD.size + name + extra)


def _mapped(path: Path, file: IO[bytes], start: int, size: int) -> NDArray[Any]:
    """The array whose NPY content of this size, read from ``file``, starts there in ``path``."""
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an NPY version other than 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    head = file.tell()
    if dtype.hasobject:
        raise ValueError("objects, which are not read")
    if math.prod(shape) * dtype.itemsize > size - head:
        raise ValueError(f"it ends before its {dtype} of shape {shape}")
    if math.prod(shape) * dtype.itemsize == 0:
        return np.empty(shape, dtype)
    order = "F" if fortran else "C"
    return np.memmap(path, dtype, "r", start + head, shape, order)  # type: ignore[call-overload,no-any-return]


def _require_checksum(path: Path, start: int, member: zipfile.ZipInfo) -> None:
    checksum, left = 0, member.file_size
    with path.open("rb") as file:
        file.seek(start)
        while left > 0:
            chunk = file.read(min(_CHUNK, left))
            if not chunk:
                break
            checksum, left = zlib.crc32(chunk, checksum), left - len(chunk)
    if left or checksum != member.CRC:
        raise ValueError(f"the checksum of its member {member.filename!r} is wrong")


def _loaded(archive: Any, names: Sequence[str], size: int) -> list[NDArray[Any]]:
    require_memory(size, "its content")
    return [archive[name] for name in names]


def _reason(error: Exception) -> str:
    """The first line of what an error says, or its name if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
