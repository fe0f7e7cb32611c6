"""Gains, ages and positions that a user brings, from CSV or NPZ files."""

import re
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agewise.files import stamp
from agewise.readers import read_arrays, require_file


def stamp_of(path: Path | str, what: str) -> tuple[int, ...]:
    """Return what tells a file from its later versions; ``ValueError`` names a missing file."""
    try:
        return stamp(path)
    except OSError as error:
        where = Path(path).absolute()
        raise ValueError(f"{where}: the {what} cannot be read: {error.strerror}") from error


def read_gains(path: Path | str) -> NDArray[np.float64]:
    """Read gains ``[ue, subchannel]`` from a CSV (a row per UE) or the ``gains`` of an NPZ file."""
    return _read(path, "gains")


def read_ages(path: Path | str) -> NDArray[np.float64]:
    """Read ages ``[ue]`` from a CSV (one row or one column) or the ``ages`` of an NPZ file."""
    table = _read(path, "ages")
    if table.ndim == 2 and 1 in table.shape:
        return table.ravel()
    if table.ndim != 1:
        raise ValueError(f"{path}: ages must be one row or one column, not shape {table.shape}")
    return table


def read_positions(path: Path | str) -> NDArray[np.float64]:
    """Read ``[ue, (x, y)]`` from a CSV (a row per UE) or the ``positions_m`` of an NPZ file."""
    table = _read(path, "positions_m")
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"{path}: positions_m must be [ue, (x, y)], not of shape {table.shape}")
    _require_numbers(table, path, "positions_m")
    return table


def read_tracks(path: Path | str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read ``times_s[time]`` and ``positions_m[time, ue, (x, y)]`` from an NPZ or a CSV file.

    A CSV has rows of time, UE (from 0), x and y, every UE at every time once, in any order.
    """
    path = Path(path)
    table = _read(path, "positions_m")
    if zipfile.is_zipfile(path):
        times, positions = _read_npz(path, "times_s"), table
    else:
        times, positions = _tracks_of(table, path)
    if positions.ndim != 3 or positions.shape[2] != 2 or times.shape != positions.shape[:1]:
        raise ValueError(
            f"{path}: positions_m must be [time, ue, (x, y)] and times_s [time], not of shapes "
            f"{positions.shape} and {times.shape}"
        )
    _require_numbers(times, path, "times_s")
    _require_numbers(positions, path, "positions_m")
    if (np.diff(times) <= 0).any():
        where = int(np.argmax(np.diff(times) <= 0))
        raise ValueError(
            f"{path}: times_s must rise: {times[where]:g} s is followed by {times[where + 1]:g} s"
        )
    return times, positions


def _tracks_of(
    table: NDArray[np.float64], path: Path
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if table.shape[1] != 4:
        raise ValueError(f"{path}: rows must be time, UE, x and y: 4 values, not {table.shape[1]}")
    _require_numbers(table, path, "rows")
    times, at_time = np.unique(table[:, 0], return_inverse=True)
    ues, of_ue = np.unique(table[:, 1], return_inverse=True)
    if not np.array_equal(ues, np.arange(ues.size)):
        raise ValueError(f"{path}: UEs must be whole numbers from 0 on, without gaps")
    positions = np.full((times.size, ues.size, 2), np.nan)
    positions[at_time, of_ue] = table[:, 2:]
    if len(table) != times.size * ues.size or np.isnan(positions).any():
        raise ValueError(
            f"{path}: {len(table)} rows for {times.size} times and {ues.size} UEs: every UE must "
            "be there once at every time"
        )
    return times, positions


def _require_numbers(table: NDArray[np.float64], path: Path | str, name: str) -> None:
    if not np.isfinite(table).all():
        where = np.unravel_index(int(np.argmin(np.isfinite(table))), table.shape)
        place = ", ".join(map(str, where))
        raise ValueError(f"{path}: {name}[{place}] is {table[where]}: all must be finite numbers")


def _read(path: Path | str, name: str) -> NDArray[np.float64]:
    path = Path(path)
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


#: What is plainly the name of a column: it begins with two letters.
_NAME = re.compile(r"[^\W\d]{2}")
_SEPARATORS = re.compile(r"[\d.][;\t ]+[\d.-]")


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
