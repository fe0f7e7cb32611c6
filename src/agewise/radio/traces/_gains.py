"""Traces: recorded channels, and files of gains: NPZ, NPY, MAT, HDF5, Parquet, CSV."""

import io
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise.dependencies import pl, require
from agewise.files import atomic_write
from agewise.part import Part, State
from agewise.radio.cell import Cell, RunContext
from agewise.radio.channel import Block, Channel
from agewise.readers import array_names, map_array, read_table, reading, require_columns

_HDF5_ENDINGS = (".h5", ".hdf5")
#: Archives of arrays with names.
ARCHIVES = (".npz", ".mat")
TABLES = (".parquet", ".csv")
ENDINGS = (*ARCHIVES, ".npy", *_HDF5_ENDINGS, *TABLES)
_ARRAYS: tuple[str, ...] = ("gains", "seen", "positions_m", "power_budget")
TABLE_AXES = ("round", "ue", "subchannel")
#: Numbers that are looked at together where a whole file is checked.
_CHUNK = 2**18
#: Bytes of numbers that HDF5 can pack into one byte of a file: what deflate reaches.
_DENSEST = 1032


class Blocks(Protocol):
    """Rounds of numbers, in memory, on the disk or made when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rounds first."""

    def __getitem__(self, t: Any) -> Any:
        """Round ``t``."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Channel that was measured or recorded; one block of it at a time is in memory.

    ``gains[round, ue, subchannel]`` are those that uploads meet, SNR per unit of ``power_budget``;
    ``seen`` is the CSI that the access point has of them, where that differs. ``positions_m`` is
    ``[ue, (x, y)]``, or ``[round, ue, (x, y)]`` of UEs that move.
    """

    gains: Blocks
    seen: Blocks | None = None
    positions_m: Blocks | None = None
    power_budget: float = 1.0

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return int(self.gains.shape[1])

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        return int(self.gains.shape[2])

    @property
    def moves(self) -> bool:
        """Tell whether UEs are known to be elsewhere in other rounds."""
        return self.positions_m is not None and len(self.positions_m.shape) == 3

    def block(self, t: int) -> Block:
        """Return round ``t`` of the trace."""
        rounds, positions = self.gains.shape[0], self.positions_m
        if not 0 <= t < rounds:
            raise ValueError(f"the trace has {rounds} rounds: there is no round {t}")
        if positions is not None:
            positions = _as_block(positions[t] if self.moves else positions[:])
        true = _as_block(self.gains[t])
        return Block(true if self.seen is None else _as_block(self.seen[t]), true, positions)


class TraceFormat(Part):
    """Format of a trace: what a file holds, and how it becomes gains.

    A kind of your own has `read`.
    """

    kind: str = ""

    def read(self, path: Path, cell: Cell) -> State:
        """Return the content of a file for cells of this size: by default it is a `Trace`."""
        raise self.lacks("read")

    def chosen(self, path: Path) -> "TraceFormat":
        """Return the format by which a file is read: itself, unless the file decides."""
        return self

    def trace(self, content: State, run: RunContext) -> Trace:
        """Return the trace of one run, of what was read: by default that is the trace."""
        return content  # type: ignore[no-any-return]


class GainsFormat(TraceFormat):
    """Arrays gains[round, ue, subchannel] in .npz, .npy, .mat, .h5; a .parquet or .csv table."""

    kind: Literal["gains"] = "gains"

    def read(self, path: Path, cell: Cell) -> Trace:
        """Return the trace in a file, whose gains stay on the disk where they can.

        An .npz, .mat or HDF5 file holds ``gains`` and, where a recorded channel has them, ``seen``,
        ``positions_m`` and ``power_budget``; an .npy just the gains. A table has the columns
        ``round``, ``ue``, ``subchannel`` (each from 0) and ``gain``, every combination once.
        """
        if path.suffix in ARCHIVES:
            names = array_names(path)
            arrays = {name: map_array(path, name) for name in _ARRAYS if name in names}
            return _checked(path, arrays, ", ".join(names) or "nothing")
        if path.suffix == ".npy":
            return _checked(path, {"gains": map_array(path, "")}, "")
        if path.suffix in _HDF5_ENDINGS:
            return _from_hdf5(path)
        if path.suffix in TABLES:
            return _checked(path, {"gains": _from_table(path)}, "")
        raise ValueError(f"{path}: a trace of gains is a file that ends in {', '.join(ENDINGS)}")


def _as_block(values: Any) -> NDArray[np.float64]:
    """Copy one round on the disk into memory, as kernels take it."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is no number is found by checks
        return np.array(values, dtype=np.float64, order="C")


def require_gains(path: Path, name: str, gains: Blocks) -> None:
    """Raise ``ValueError`` naming the first gain that is none, in one pass, a part at a time."""
    step = max(1, _CHUNK // max(1, math.prod(gains.shape[1:])))
    for first in range(0, gains.shape[0], step):
        part = _as_block(gains[first : first + step])
        bad = ~(np.isfinite(part) & (part >= 0))
        if bad.any():
            t, ue, subchannel = np.unravel_index(int(bad.argmax()), part.shape)
            raise ValueError(
                f"{path}: {name} must be non-negative and finite: in round {first + t} that of UE "
                f"{ue} on subchannel {subchannel} is {part[t, ue, subchannel]}"
            )


def _from_hdf5(path: Path) -> Trace:
    h5py = require("h5py", "hdf5")
    with reading(path, "HDF5 file"):
        file = h5py.File(path, "r", locking=False)
        held = list(file)  # to ask the file itself would follow links
        arrays = {name: _dataset(file, name, path) for name in _ARRAYS if name in held}
        if "power_budget" in file.attrs:
            arrays["power_budget"] = np.asarray(file.attrs["power_budget"])
        return _checked(path, arrays, ", ".join(held) or "nothing")


def _dataset(file: Any, name: str, path: Path) -> Any:
    """Return a dataset whose numbers are in the file itself, and no more than it can hold."""
    h5py = require("h5py", "hdf5")
    if file.get(name, getclass=True, getlink=True) is not h5py.HardLink:
        raise ValueError(f"{name} is a link, which is not followed")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise ValueError(f"{name} is not an array")
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{name} is kept in other files, which are not read")
    if dataset.nbytes > _DENSEST * path.stat().st_size:
        raise ValueError(f"{name} of shape {dataset.shape} is more than such a file can hold")
    return dataset


def _checked(path: Path, arrays: Mapping[str, Any], held: str) -> Trace:
    """Return the trace of these arrays, each of them what it should be."""
    if "gains" not in arrays:
        raise ValueError(f"{path}: it has no array 'gains'; it holds {held}")
    gains = arrays["gains"]
    kind, shape = getattr(gains.dtype, "kind", "O"), gains.shape
    if kind not in "iuf" or len(shape) != 3 or 0 in shape:
        raise ValueError(
            f"{path}: gains must be numbers[round, ue, subchannel], at least one of each, not "
            f"{gains.dtype} of shape {shape}"
        )
    require_gains(path, "gains", gains)
    rounds, ues, _ = gains.shape
    shapes = {"seen": (gains.shape,), "positions_m": ((ues, 2), (rounds, ues, 2))}
    for name, allowed in shapes.items():
        array = arrays.get(name)
        if array is None:
            continue
        if getattr(array.dtype, "kind", "O") not in "iuf" or tuple(array.shape) not in allowed:
            raise ValueError(
                f"{path}: {name} must be numbers of shape {' or '.join(map(str, allowed))} beside "
                f"the gains, not {array.dtype} of shape {array.shape}"
            )
        if name == "seen":
            require_gains(path, name, array)
        elif not all(np.isfinite(_as_block(array[t])).all() for t in range(array.shape[0])):
            raise ValueError(f"{path}: {name} must be finite numbers of metres")
    budget = np.asarray(arrays["power_budget"][()] if "power_budget" in arrays else 1.0)
    if budget.size != 1 or budget.dtype.kind not in "iuf" or not 1e-100 <= budget.item() <= 1e100:
        found = repr(budget.item()) if budget.size == 1 else f"{budget.size} values"
        raise ValueError(f"{path}: power_budget must be one positive number, not {found}")
    return Trace(gains, arrays.get("seen"), arrays.get("positions_m"), float(budget.item()))


def _from_table(path: Path) -> NDArray[np.float64]:
    table = read_table(path)
    require_columns(path, table, (*TABLE_AXES, "gain"))
    for name in TABLE_AXES:
        if not table.schema[name].is_integer():
            raise ValueError(f"{path}: column {name!r} must hold whole numbers")
    axes = [table[name].cast(pl.Int64).to_numpy() for name in TABLE_AXES]
    shape = tuple(int(axis.max(initial=-1)) + 1 for axis in axes)
    if len(table) != math.prod(shape) or any(axis.min(initial=0) < 0 for axis in axes):
        raise ValueError(
            f"{path}: {len(table)} rows for rounds, UEs and subchannels up to {shape}: every "
            "combination must be there once"
        )
    gains = np.full(shape, np.nan)
    gains[tuple(axes)] = table["gain"].cast(pl.Float64).to_numpy()
    return gains


# --------------------------------------------------------------------------------------- recording
class _Array(NamedTuple):
    """An array that is written a block at a time: one for each round, or one for all of them."""

    shape: tuple[int, ...]
    part: Callable[[Block], NDArray[np.float64] | None]

    def blocks(self, channel: Channel) -> Iterator[NDArray[np.float64]]:
        """Draw the blocks one after the other."""
        for t in range(self.shape[0] if len(self.shape) == 3 else 1):
            yield np.ascontiguousarray(self.part(channel.block(t)), "<f8").reshape(self.shape[-2:])


def write_trace(path: Path, channel: Channel, rounds: int, about: Mapping[str, object]) -> None:
    """Write the first rounds of a channel as a trace, a block at a time.

    ``about`` says what it is from. Any block can be drawn again, so that none has to be kept.
    """
    if path.suffix not in (".npz", *_HDF5_ENDINGS):
        raise ValueError(f"{path}: a trace is recorded as .npz, {' or '.join(_HDF5_ENDINGS)}")
    shape = (rounds, channel.ue_count, channel.subchannel_count)
    arrays = {"gains": _Array(shape, lambda block: block.true)}
    blocks = (channel.block(t) for t in range(rounds))
    if any(block.seen is not block.true for block in blocks):
        arrays["seen"] = _Array(shape, lambda block: block.seen)
    if channel.block(0).positions_m is not None:
        places = (rounds, shape[1], 2) if channel.moves else (shape[1], 2)
        arrays["positions_m"] = _Array(places, lambda block: block.positions_m)
    about = {"power_budget": channel.power_budget, **about}
    with atomic_write(path) as temporary:
        write = _write_npz if path.suffix == ".npz" else _write_hdf5
        write(temporary, channel, arrays, about)


def _write_npz(
    file: Path, channel: Channel, arrays: Mapping[str, _Array], about: Mapping[str, object]
) -> None:
    """Write members as they are, so that they can be mapped, and without a date."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            head = {"descr": "<f8", "fortran_order": False, "shape": array.shape}
            with archive.open(f"{name}.npy", "w", force_zip64=True) as written:
                np.lib.format.write_array_header_1_0(written, head)
                for block in array.blocks(channel):
                    written.write(block.tobytes())
        for name, value in about.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as written:
                np.lib.format.write_array(written, np.array(value), allow_pickle=False)


class _KeepingFile(io.FileIO):
    """File for HDF5, which crashes where a write fails: the error is kept until HDF5 is done."""

    _error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of the data, or nothing after an error."""
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            while left and self._error is None:
                left = left[super().write(left) :]
        except OSError as error:
            self._error = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size, unless there was an error."""
        try:
            if self._error is None:
                return super().truncate(size)
        except OSError as error:
            self._error = error
        return size or 0

    def raise_kept(self) -> None:
        """Raise the error that was kept, if there is one."""
        if self._error is not None:
            raise self._error


def _write_hdf5(
    path: Path, channel: Channel, arrays: Mapping[str, _Array], about: Mapping[str, object]
) -> None:
    """Write datasets a block at a time, and the rest as attributes."""
    with _KeepingFile(path, "w+") as file:
        with require("h5py", "hdf5").File(file, "w") as archive:
            for name, array in arrays.items():
                dataset = archive.create_dataset(name, array.shape, "<f8")
                for t, block in enumerate(array.blocks(channel)):
                    dataset[t if len(array.shape) == 3 else ...] = block
                    file.raise_kept()
            archive.attrs.update(about)
        file.raise_kept()
