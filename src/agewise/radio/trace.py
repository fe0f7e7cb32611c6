"""Gains over many rounds that were measured or recorded elsewhere."""

import functools
import io
import math
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise.archives import read_arrays, require_file
from agewise.files import stamp
from agewise.frames import require_frames

_AXES = ("round", "ue", "subchannel")


def read_trace(path: str, wanted: tuple[int, int, int]) -> NDArray[np.float64]:
    """``gains[round, ue, subchannel]`` of a file, for a run of this many of each.

    An .npz holds an array ``gains`` of that shape. A .parquet holds the columns ``round``, ``ue``,
    ``subchannel`` (each from 0) and ``gain``, every combination once. A trace may be longer than
    the run, but must have its UEs and subchannels.
    """
    try:
        state = stamp(path)
    except OSError as error:
        raise ValueError(f"{path}: the trace cannot be read: {error.strerror}") from error
    gains = _read(Path(path), *state)
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
    require_file(path)
    gains = _from_npz(path) if path.suffix == ".npz" else _from_parquet(path)
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
    (array,) = read_arrays(path, ["gains"])
    if array.dtype.kind not in "iuf" or array.ndim != 3:
        raise ValueError(
            f"{path}: gains must be numbers[round, ue, subchannel], not {array.dtype} of shape "
            f"{array.shape}"
        )
    return np.array(array, dtype=np.float64, order="C")


def _from_parquet(path: Path) -> NDArray[np.float64]:
    require_frames()
    try:
        table = pl.read_parquet(io.BytesIO(path.read_bytes()))
    except (Exception, pl.exceptions.PanicException) as error:
        # A damaged file can fail anywhere in the reader.
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path}: not a readable trace: {reason}") from error
    missing = [name for name in (*_AXES, "gain") if name not in table.columns]
    if missing:
        raise ValueError(
            f"{path}: there is no column {missing[0]!r}; expected round, ue, subchannel and "
            f"gain, it has {', '.join(table.columns)}"
        )
    for name in (*_AXES, "gain"):
        kind, whole = table.schema[name], name != "gain"
        if not (kind.is_integer() if whole else kind.is_numeric()) or table[name].null_count():
            wanted = "whole numbers" if whole else "numbers"
            raise ValueError(f"{path}: column {name!r} must hold {wanted} without gaps, not {kind}")
    axes = [table[name].cast(pl.Int64).to_numpy() for name in _AXES]
    shape = tuple(int(axis.max(initial=-1)) + 1 for axis in axes)
    if len(table) != math.prod(shape) or any(axis.min(initial=0) < 0 for axis in axes):
        raise ValueError(
            f"{path}: {len(table)} rows for rounds, UEs and subchannels up to {shape}: every "
            "combination must be there once"
        )
    gains = np.full(shape, np.nan)
    gains[tuple(axes)] = table["gain"].cast(pl.Float64).to_numpy()
    return gains
