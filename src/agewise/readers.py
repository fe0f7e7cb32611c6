"""Files that a user brings: arrays in NPZ and NPY files, and tables, whatever is in them."""

import codecs
import contextlib
import io
import math
import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from agewise.checks import require_memory
from agewise.dependencies import pl, refuse_after_fork

#: An array of a file, of whatever type it is there.
FileArray = NDArray[np.generic]
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


@contextlib.contextmanager
def reading(path: Path, wanted: str) -> Iterator[None]:
    """Turn all that goes wrong in the reader of a file into one sentence that names the file."""
    require_file(path)
    try:
        yield
    except (Exception, pl.exceptions.PanicException) as error:
        # Damage shows in gzip, zlib, the parser of a header or Polars, with errors of their own.
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        if said.startswith(f"{path}: "):  # one of our own
            raise
        raise ValueError(f"{path}: not a readable {wanted}: {said}") from error


def read_table(path: Path, separator: str = ",") -> "pl.DataFrame":
    """Read a .parquet table, or a text whose first line names its columns."""
    refuse_after_fork()
    with reading(path, "table"):  # the bytes, not the path, in which Polars would expand * and [
        content = io.BytesIO(path.read_bytes().removeprefix(codecs.BOM_UTF8))
        if path.suffix == ".parquet":
            return pl.read_parquet(content)
        return pl.read_csv(content, separator=separator, infer_schema_length=None)


def require_columns(
    path: Path, table: "pl.DataFrame", columns: Sequence[str], names: Sequence[str] = ()
) -> None:
    """Raise ``ValueError`` unless a table has rows, and these columns without gaps.

    They hold finite numbers but for those in ``names``.
    """
    for name in columns:
        if name not in table.columns:
            raise ValueError(
                f"{path}: there is no column {name!r}; expected {', '.join(columns)}, it has "
                f"{', '.join(table.columns)}"
            )
        column, gaps = table[name], table[name].null_count()
        numbers = column.dtype.is_numeric() and column.cast(pl.Float64).is_finite().all()
        if gaps or not (numbers or name in names):
            wanted = "names" if name in names else "finite numbers"
            found = f"gaps ({gaps} of {len(column)})" if gaps else column.dtype
            raise ValueError(
                f"{path}: column {name!r} must hold {wanted} without gaps, and has {found}"
            )
    if table.is_empty():
        raise ValueError(f"{path}: the table has no rows")


def read_arrays(path: Path, names: Sequence[str]) -> list[FileArray]:
    """Read the arrays of these names in an NPZ file; ``ValueError`` says what is wrong with it."""
    require_file(path)
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not an NPZ file")
    held = array_names(path)
    missing = [name for name in names if name not in held]
    if missing:
        listed = ", ".join(held) or "nothing"
        raise ValueError(f"{path}: it has no array {missing[0]!r}; it holds {listed}")
    with reading(path, "NPZ file"), path.open("rb") as file:  # NumPy may leave one open
        archive = np.load(file, allow_pickle=False)
        require_memory(sum(each.file_size for each in archive.zip.infolist()), "its content")
        arrays = {name: archive[name] for name in names}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path}: its member {name!r} is not an array")
    return list(arrays.values())


def array_names(path: Path) -> list[str]:
    """List the names of the arrays in an NPZ file; ``ValueError`` if it is none."""
    with reading(path, "NPZ file"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def map_array(path: Path, name: str) -> FileArray:
    """Map an array of an NPZ file or, without a name, of an NPY file: it stays on the disk.

    A member that is compressed cannot be mapped and is loaded. The checksum of one that can is
    verified in one pass.
    """
    if not name:
        with reading(path, "NPY file"), path.open("rb") as file:
            return _mapped(path, file, 0, path.stat().st_size)
    with reading(path, "NPZ file"), zipfile.ZipFile(path) as archive:
        member = archive.getinfo(f"{name}.npy")
        if member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1:
            with path.open("rb") as raw:
                raw.seek(member.header_offset)
                lengths = _LOCAL_HEAD.unpack(raw.read(_LOCAL_HEAD.size))
            start = member.header_offset + _LOCAL_HEAD.size + sum(lengths)
            with archive.open(member) as file:
                array = _mapped(path, file, start, member.file_size)
                while file.read(_CHUNK):  # at its end the checksum is compared
                    pass
            return array
    return read_arrays(path, [name])[0]


def _mapped(path: Path, file: IO[bytes], start: int, size: int) -> FileArray:
    """Map the array whose NPY content, read from ``file``, starts there in ``path``."""
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an NPY version other than 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    head, needed = file.tell(), math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise ValueError("objects, which are not read")
    if needed > size - head:
        raise ValueError(f"it ends before its {dtype} of shape {shape}")
    if needed == 0:
        return np.empty(shape, dtype)
    order = "F" if fortran else "C"
    return np.memmap(path, dtype, "r", start + head, shape, order)  # type: ignore[call-overload,no-any-return]
