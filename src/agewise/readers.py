"""Files that a user brings: arrays in NPZ, NPY and MAT files, and tables, whatever is in them."""

import codecs
import contextlib
import io
import itertools
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from agewise.checks import first_line, path_of, require_memory
from agewise.dependencies import pl, refuse_after_fork
from agewise.files import open_regular_file

#: An array of a file, of whatever type it is there.
FileArray = NDArray[np.generic]
#: Where the lengths of a member's name and extra field stand in front of it, and how long that is.
_LOCAL_HEAD = struct.Struct("<26xHH")
_CHUNK = 2**20
#: Characters of what others say of a file, which may quote all of it.
_LONGEST = 500
#: In MAT files of version 5, by their numbers there: types of stored numbers, and of arrays.
_MAT_STORED = {
    1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8",
    13: "<u8",
}  # fmt: skip
_MAT_CLASSES = {
    6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
}  # fmt: skip
_MAT_ARRAY, _MAT_COMPRESSED, _MAT_COMPLEX = 14, 15, 8
#: The type and the size in front of everything in a MAT file; bytes of an array that name it.
_MAT_TAG, _MAT_HEAD = struct.Struct("<II"), 1024
#: What is plainly the name of a column: it begins with two letters.
_NAME = re.compile(r"[^\W\d]{2}")
_SEPARATORS = re.compile(r"[\d.][;\t ]+[\d.-]")


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
        said = first_line(error)
        if said.startswith(f"{path}: "):  # one of our own
            raise
        raise ValueError(f"{path}: not a readable {wanted}: {said:.{_LONGEST}}") from error


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
    """Read these arrays of an NPZ or .mat file; ``ValueError`` says what is wrong with it.

    Arrays without numbers are refused: their shapes may be of any size.
    """
    held = array_names(path)
    missing = [name for name in names if name not in held]
    if missing:
        listed = ", ".join(held) or "nothing"
        raise ValueError(f"{path}: it has no array {missing[0]!r}; it holds {listed}")
    if path.suffix == ".mat":
        with reading(path, "MAT file"):
            variables = _mat_variables(path)
            arrays = {name: _mat_array(variables[name]) for name in names}
    else:
        with reading(path, "NPZ file"), path.open("rb") as file:  # NumPy may leave one open
            archive = np.load(file, allow_pickle=False)
            require_memory(sum(each.file_size for each in archive.zip.infolist()), "its content")
            arrays = {name: archive[name] for name in names}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path}: its member {name!r} is not an array")
        if array.size == 0:
            raise ValueError(f"{path}: its array {name!r} is empty, of shape {array.shape}")
    return list(arrays.values())


def load_arrays(path: Path) -> dict[str, FileArray]:
    """Load all arrays of an NPZ file of our own, where a pipe or a link may have taken its place.

    What is wrong with it shows in errors of many kinds.
    """
    with (
        os.fdopen(open_regular_file(path, os.O_RDONLY), "rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        return dict(archive)


def array_names(path: Path) -> list[str]:
    """List the names of the arrays in an NPZ or .mat file; ``ValueError`` if it is none."""
    if path.suffix == ".mat":
        with reading(path, "MAT file"):
            return list(_mat_variables(path))
    with reading(path, "NPZ file"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def map_array(path: Path, name: str) -> FileArray:
    """Map an array of an NPZ file or, without a name, of an NPY file: it stays on the disk.

    What cannot be mapped is loaded: compressed members, and MAT files. The checksum of a member
    that can is verified in one pass.
    """
    if path.suffix == ".mat":
        return read_arrays(path, [name])[0]
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


def read_numbers(path: Path | str, name: str) -> NDArray[np.float64]:
    """Read the numbers of a CSV file, or those of the array of this name in an NPZ file."""
    path = path_of("path", path)
    require_file(path)
    try:
        table = _read_npz(path, name) if zipfile.is_zipfile(path) else _read_csv(path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error
    if table.size == 0:
        raise ValueError(f"{path}: the file has no numbers")
    return table


def _read_npz(path: Path, name: str) -> NDArray[np.float64]:
    (array,) = read_arrays(path, [name])
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{path}: {name} must be real numbers, not {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def _read_csv(path: Path) -> NDArray[np.float64]:
    """Read comma-separated numbers; lines that start with # and one line of names may lead."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: neither an NPZ file nor text: {error}") from error
    rows: list[list[float | None]] = []
    is_first = True
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split(",")]
        row = [_number(cell) for cell in cells]
        is_head = is_first and all(_NAME.match(cell.strip("\"'")) for cell in cells)
        is_first = False
        if is_head and row.count(None) == len(row):
            continue
        if None in row:
            bad = cells[row.index(None)]
            hint = "; separate the numbers by commas" if _SEPARATORS.search(bad) else ""
            raise ValueError(f"{path}, line {number}: {bad!r} is not a number{hint}")
        if rows and len(row) != len(rows[0]):
            raise ValueError(
                f"{path}, line {number}: {len(row)} values where the lines before have "
                f"{len(rows[0])}"
            )
        rows.append(row)
    return np.array(rows, dtype=np.float64)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


# --------------------------------------------------------------------------------------- MAT files
# What MATLAB writes with -v6 and -v7. Readers of all that may be in such a file have crashed on
# damaged ones: only arrays of numbers are read here, and every size is judged before it is used.
def _mat_variables(path: Path) -> dict[str, memoryview]:
    """Return what stands for each variable of a file, by its name."""
    content = memoryview(path.read_bytes())
    if bytes(content[:10]) == b"MATLAB 7.3":
        raise ValueError("it is of version 7.3: save it with '-v7' in MATLAB")
    if bytes(content[124:128]) != b"\x00\x01IM":
        raise ValueError("it is not of version 5, or of a big-endian machine")
    variables, at = {}, 128
    while at < len(content):
        kind, size = _MAT_TAG.unpack_from(content, at)
        end = at + _MAT_TAG.size + size
        if kind not in (_MAT_ARRAY, _MAT_COMPRESSED) or end > len(content):
            raise ValueError(f"there is no whole variable at byte {at}")
        head = content[at:end]
        if kind == _MAT_COMPRESSED:
            head = memoryview(zlib.decompressobj().decompress(head[_MAT_TAG.size :], _MAT_HEAD))
        *_, (_, name) = itertools.islice(_mat_parts(head), 3)
        variables[str(name, "ascii")] = content[at:end]
        at = end
    return variables


def _mat_parts(array: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Return types and contents of an array's parts: flags, shape, name, numbers."""
    at = _MAT_TAG.size
    while at < len(array):
        kind, size = _MAT_TAG.unpack_from(array, at)
        start = at + _MAT_TAG.size
        if kind >> 16:  # up to four bytes stand in the tag
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        end = start + size
        if end > len(array):
            raise ValueError("it ends amid a variable")
        yield kind, array[start:end]
        at = end + -end % _MAT_TAG.size


def _mat_array(variable: memoryview) -> FileArray:
    """Return the numbers of a variable."""
    array = variable
    if _MAT_TAG.unpack_from(variable)[0] == _MAT_COMPRESSED:
        inflating = zlib.decompressobj()
        head = inflating.decompress(variable[_MAT_TAG.size :], _MAT_TAG.size)
        size = _MAT_TAG.unpack(head)[1]
        require_memory(size, "a variable in it")
        # At one byte more than there should be, the end is seen and the checksum compared.
        rest = inflating.decompress(inflating.unconsumed_tail, size + 1)
        if len(rest) != size or not inflating.eof:
            raise ValueError("it is damaged amid a variable")
        array = memoryview(head + rest)
    (_, flags), (_, sizes), _, *parts = _mat_parts(array)
    are_numbers = flags[0] in _MAT_CLASSES and all(kind in _MAT_STORED for kind, _ in parts)
    if not are_numbers or len(parts) != 1 + bool(flags[1] & _MAT_COMPLEX):
        raise ValueError("one of the variables is no array of numbers")
    shape, dtype = np.frombuffer(sizes, "<u4").tolist(), _MAT_CLASSES[flags[0]]
    with np.errstate(over="ignore"):  # what is infinite then is found by checks
        real, *imaginary = (
            np.frombuffer(part, _MAT_STORED[kind])
            .astype(dtype, casting="same_kind")
            .reshape(shape, order="F")
            for kind, part in parts
        )
    if not imaginary:
        return real
    numbers = real.astype(np.result_type(real, np.complex64))
    numbers.imag = imaginary[0]
    return numbers
