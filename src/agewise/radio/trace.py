"""Gains over many rounds that were measured or recorded elsewhere."""

import functools
import io
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise.frames import require_frames

_AXES = ("round", "ue", "subchannel")


def read_trace(path: str, wanted: tuple[int, int, int]) -> NDArray[np.float64]:
    """``gains[round, ue, subchannel]`` of a file, for a run of this many of each.

    An .npz holds an array ``gains`` of that shape. A .parquet holds the columns ``round``, ``ue``,
    ``subchannel`` (each from 0) and ``gain``, every combination once. A trace may be longer than
    the run, but must have its UEs and subchannels.
    """
    file = Path(path)
    try:
        stamp = file.stat()
    except OSError as error:
        raise ValueError(f"{path}: the trace cannot be read: {error.strerror}") from error
    gains = _read(file, stamp.st_mtime_ns, stamp.st_size)
    rounds, *others = gains.shape
    if rounds < wanted[0] or tuple(others) != wanted[1:]:
        raise ValueError(
            f"{path}: the trace has (rounds, UEs, subchannels) = {gains.shape}, the scenario "
            f"{wanted}: set run.rounds to at most {rounds}, cell.ues={others[0]} and "
            f"cell.subchannels={others[1]}"
        )
    return gains


@functools.lru_cache(maxsize=2)
def _read(path: Path, *_stamp: int) -> NDArray[np.float64]:
    """The gains in a file, read once as long as it stays what it is."""
    if path.suffix not in (".npz", ".parquet"):
        raise ValueError(f"{path}: a trace is an .npz or a .parquet file")
    if path.suffix == ".npz" and not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not a readable trace: it is no NPZ file")
    try:
        gains = _from_npz(path) if path.suffix == ".npz" else _from_parquet(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except (OSError, EOFError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
        raise ValueError(f"{path}: not a readable trace: {error}") from error
    bad = ~(np.isfinite(gains) & (gains >= 0))
    if bad.any():
        t, ue, subchannel = np.unravel_index(int(bad.argmax()), gains.shape)
        raise ValueError(
            f"{path}: gains must be non-negative and finite: in round {t} that of UE {ue} on "
            f"subchannel {subchannel} is {gains[t, ue, subchannel]}"
        )
    gains.flags.writeable = False
    return gains


def _from_npz(path: Path) -> NDArray[np.float64]:
    with np.load(path, allow_pickle=False) as archive:
        if "gains" not in archive:
            held = ", ".join(archive.files) or "nothing"
            raise ValueError(f"there is no array 'gains' in it; it holds {held}")
        array = archive["gains"]
    if array.dtype.kind not in "iuf" or array.ndim != 3:
        raise ValueError(
            f"gains must be numbers[round, ue, subchannel], not {array.dtype} of shape "
            f"{array.shape}"
        )
    return np.array(array, dtype=np.float64, order="C")


def _from_parquet(path: Path) -> NDArray[np.float64]:
    require_frames()
    table = pl.read_parquet(io.BytesIO(path.read_bytes()))
    missing = [name for name in (*_AXES, "gain") if name not in table.columns]
    if missing:
        raise ValueError(
            f"there is no column {missing[0]!r}; expected round, ue, subchannel and gain, it has "
            f"{', '.join(table.columns)}"
        )
    axes = [table[name].cast(pl.Int64).to_numpy() for name in _AXES]
    shape = tuple(int(axis.max(initial=-1)) + 1 for axis in axes)
    if len(table) != np.prod(shape) or any(axis.min(initial=0) < 0 for axis in axes):
        raise ValueError(
            f"{len(table)} rows for rounds, UEs and subchannels up to {shape}: every combination "
            "must be there once"
        )
    gains = np.full(shape, np.nan)
    gains[tuple(axes)] = table["gain"].cast(pl.Float64).to_numpy()
    return gains
