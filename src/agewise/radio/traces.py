"""Gains and ages that a user brings, from CSV or NPZ files."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def read_gains(path: Path) -> NDArray[np.float64]:
    """Gains ``[ue, subchannel]`` from a CSV (a row per UE) or the ``gains`` of an NPZ file."""
    return _read(path, "gains")


def read_ages(path: Path) -> NDArray[np.float64]:
    """Ages ``[ue]`` from a CSV (one row or one column) or the ``ages`` of an NPZ file."""
    table = _read(path, "ages")
    if table.ndim == 2 and 1 in table.shape:
        return table.ravel()
    if table.ndim != 1:
        raise ValueError(f"{path}: ages must be one row or one column, not shape {table.shape}")
    return table


def _read(path: Path, name: str) -> NDArray[np.float64]:
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        table = _read_npz(path, name) if zipfile.is_zipfile(path) else _read_csv(path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from error
    if table.size == 0:
        raise ValueError(f"{path}: the file has no numbers")
    return table


def _read_npz(path: Path, name: str) -> NDArray[np.float64]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if name not in archive:
                held = ", ".join(archive.files) or "nothing"
                raise ValueError(f"it has no array {name!r}; it holds {held}")
            return np.asarray(archive[name], dtype=np.float64)
    except (ValueError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{path}: not a readable NPZ file: {error}") from error


def _read_csv(path: Path) -> NDArray[np.float64]:
    """Comma-separated numbers; lines that start with # and one line of names may lead."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: neither an NPZ file nor text: {error}") from error
    rows: list[NDArray[np.float64]] = []
    first_line = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = line.split(",")
        if not rows and not first_line and not any(_is_number(cell) for cell in cells):
            first_line = number  # a line of names
            continue
        try:
            row = np.array(cells, dtype=np.float64)
        except ValueError:
            bad = next(cell for cell in cells if not _is_number(cell))
            raise ValueError(f"{path}, line {number}: {bad.strip()!r} is not a number") from None
        if rows and row.size != rows[0].size:
            raise ValueError(
                f"{path}, line {number}: {row.size} values where the lines before have "
                f"{rows[0].size}"
            )
        rows.append(row)
    return np.array(rows)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
