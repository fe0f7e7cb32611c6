"""Gains, ages and positions that a user brings, from CSV or NPZ files."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agewise.files import stamp
from agewise.readers import read_numbers


def stamp_of(path: Path | str, what: str) -> tuple[int, ...]:
    """Return what tells a file from its later versions; ``ValueError`` names a missing file."""
    try:
        return stamp(path)
    except OSError as error:
        where = Path(path).absolute()
        raise ValueError(f"{where}: the {what} cannot be read: {error.strerror}") from error


def read_gains(path: Path | str) -> NDArray[np.float64]:
    """Read gains ``[ue, subchannel]`` from a CSV (a row per UE) or the ``gains`` of an NPZ file."""
    return read_numbers(path, "gains")


def read_ages(path: Path | str) -> NDArray[np.float64]:
    """Read ages ``[ue]`` from a CSV (one row or one column) or the ``ages`` of an NPZ file."""
    table = read_numbers(path, "ages")
    if table.ndim == 2 and 1 in table.shape:
        return table.ravel()
    if table.ndim != 1:
        raise ValueError(f"{path}: ages must be one row or one column, not shape {table.shape}")
    return table


def read_positions(path: Path | str) -> NDArray[np.float64]:
    """Read ``[ue, (x, y)]`` from a CSV (a row per UE) or the ``positions_m`` of an NPZ file."""
    table = read_numbers(path, "positions_m")
    if table.ndim != 2 or table.shape[1] != 2:
        raise ValueError(f"{path}: positions_m must be [ue, (x, y)], not of shape {table.shape}")
    _require_numbers(table, path, "positions_m")
    return table


def read_tracks(path: Path | str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read ``times_s[time]`` and ``positions_m[time, ue, (x, y)]`` from an NPZ or a CSV file.

    A CSV has rows of time, UE (from 0), x and y, every UE at every time once, in any order.
    """
    path = Path(path)
    table = read_numbers(path, "positions_m")
    if zipfile.is_zipfile(path):
        times, positions = read_numbers(path, "times_s"), table
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
    places = np.unique(at_time * ues.size + of_ue).size
    if not len(table) == places == times.size * ues.size:
        raise ValueError(
            f"{path}: {len(table)} rows for {times.size} times and {ues.size} UEs: every UE must "
            "be there once at every time"
        )
    positions = np.empty((times.size, ues.size, 2))
    positions[at_time, of_ue] = table[:, 2:]
    return times, positions


def _require_numbers(table: NDArray[np.float64], path: Path | str, name: str) -> None:
    if not np.isfinite(table).all():
        where = np.unravel_index(int(np.argmin(np.isfinite(table))), table.shape)
        place = ", ".join(map(str, where))
        raise ValueError(f"{path}: {name}[{place}] is {table[where]}: all must be finite numbers")
