"""Files that a user brings: found to be files, and arrays in NPZ archives, whatever is in them."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.memory import require_memory


def require_file(path: Path) -> None:
    """Raise ``ValueError`` unless there is a regular file of this name."""
    if path.is_dir():
        raise ValueError(f"{path}: a folder, not a file")
    if not path.exists():
        raise ValueError(f"{path}: no such file")
    if not path.is_file():
        raise ValueError(f"{path}: not a regular file")


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


def _loaded(archive: Any, names: Sequence[str], size: int) -> list[NDArray[Any]]:
    require_memory(size, "its content")
    return [archive[name] for name in names]


def _reason(error: Exception) -> str:
    """The first line of what an error says, or its name if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
