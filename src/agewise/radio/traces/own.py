"""Gains in files of our own kinds: NPZ, NPY, HDF5, Parquet."""

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise.archives import array_names, map_array, require_file
from agewise.extras import require
from agewise.frames import require_frames
from agewise.radio.traces.trace import Blocks, Trace, require_gains

HDF5_ENDINGS = (".h5", ".hdf5")
ENDINGS = (".npz", ".npy", *HDF5_ENDINGS, ".parquet")
_ARRAYS: tuple[str, ...] = ("gains", "seen", "positions_m", "power_budget")
_AXES = ("round", "ue", "subchannel")


def read_own(path: Path) -> Trace:
    """The trace in a file; ``gains[round, ue, subchannel]`` stay on the disk where they can.

    An .npz or HDF5 file holds ``gains`` and, where a recorded channel has them, ``seen``,
    ``positions_m`` and ``power_budget``; an .npy just the gains. A .parquet has the columns
    ``round``, ``ue``, ``subchannel`` (each from 0) and ``gain``, every combination once.
    """
    require_file(path)
    if path.suffix == ".npz":
        names = array_names(path)
        arrays = {name: map_array(path, name) for name in _ARRAYS if name in names}
        return _checked(path, arrays, ", ".join(names) or "nothing")
    if path.suffix == ".npy":
        return _checked(path, {"gains": map_array(path, "")}, "")
    if path.suffix in HDF5_ENDINGS:
        return _from_hdf5(path)
    if path.suffix == ".parquet":
        return _checked(path, {"gains": _from_parquet(path)}, "")
    raise ValueError(f"{path}: a trace of gains is a file that ends in {', '.join(ENDINGS)}")


def _from_hdf5(path: Path) -> Trace:
    h5py = require("h5py", "hdf5")
    try:
        file = h5py.File(path, "r", locking=False)
        arrays = {name: file[name] for name in file if isinstance(file[name], h5py.Dataset)}
        if "power_budget" in file.attrs:
            arrays["power_budget"] = np.asarray(file.attrs["power_budget"])
        return _checked(path, arrays, ", ".join(file) or "nothing")
    except (OSError, RuntimeError, KeyError, TypeError) as error:
        # A damaged file can fail at any of its parts.
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path}: not a readable HDF5 file: {reason}") from error


def _checked(path: Path, arrays: Mapping[str, Any], held: str) -> Trace:
    """The trace of these arrays, each of them what it should be."""
    if "gains" not in arrays:
        raise ValueError(f"{path}: it has no array 'gains'; it holds {held}")
    gains = arrays["gains"]
    if getattr(gains.dtype, "kind", "O") not in "iuf" or len(gains.shape) != 3:
        raise ValueError(
            f"{path}: gains must be numbers[round, ue, subchannel], not {gains.dtype} of shape "
            f"{gains.shape}"
        )
    require_gains(path, "gains", gains)
    seen = arrays.get("seen")
    if seen is not None:
        _require_shape(path, "seen", seen, (gains.shape,))
        require_gains(path, "seen", seen)
    positions = arrays.get("positions_m")
    if positions is not None:
        rounds, ues, _ = gains.shape
        _require_shape(path, "positions_m", positions, ((ues, 2), (rounds, ues, 2)))
        _require_finite(path, positions)
    return Trace(gains, seen, positions, _budget(path, arrays.get("power_budget")))


def _require_shape(path: Path, name: str, array: Any, shapes: tuple[Any, ...]) -> None:
    if getattr(array.dtype, "kind", "O") not in "iuf" or tuple(array.shape) not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise ValueError(
            f"{path}: {name} must be numbers of shape {wanted} beside the gains, not "
            f"{array.dtype} of shape {array.shape}"
        )


def _require_finite(path: Path, positions: Blocks) -> None:
    for t in range(positions.shape[0]):
        if not np.isfinite(np.asarray(positions[t], dtype=np.float64)).all():
            raise ValueError(f"{path}: positions_m must be finite, and those at {t} are not")


def _budget(path: Path, value: Any) -> float | None:
    if value is None:
        return None
    number = np.asarray(value[()])
    if number.size != 1 or number.dtype.kind not in "iuf" or not 1e-100 <= number.item() <= 1e100:
        raise ValueError(f"{path}: power_budget must be one positive number, not {number}")
    return float(number.item())


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
