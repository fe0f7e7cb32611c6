"""Traces: recorded channels, and files of gains of our own kinds: NPZ, NPY, HDF5, Parquet."""

import contextlib
import io
import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise.dependencies import pl, refuse_after_fork, require
from agewise.files import atomic_write
from agewise.npz import array_names, map_array, require_file
from agewise.part import Part, State
from agewise.radio.cell import Cell, RunContext
from agewise.radio.channel import Block, Channel

HDF5_ENDINGS = (".h5", ".hdf5")
ENDINGS = (".npz", ".npy", *HDF5_ENDINGS, ".parquet")
_ARRAYS: tuple[str, ...] = ("gains", "seen", "positions_m", "power_budget")
_AXES = ("round", "ue", "subchannel")
#: Numbers that are looked at together where a whole file is checked.
_CHUNK = 2**18
#: A fixed date, so that the same channel is the same file.
_DATE = (1980, 1, 1, 0, 0, 0)


class Blocks(Protocol):
    """Rounds of numbers, in memory, on the disk or made when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rounds first."""
        ...

    def __getitem__(self, t: Any) -> Any:
        """Round ``t``."""
        ...


@dataclass(frozen=True, eq=False)
class Trace:
    """``gains[round, ue, subchannel]`` that uploads meet, SNR per unit of ``power_budget``.

    ``seen`` is what the access point knows of them, where that differs. ``positions_m`` is
    ``[ue, (x, y)]``, or ``[round, ue, (x, y)]`` of UEs that move.
    """

    gains: Blocks
    seen: Blocks | None = None
    positions_m: Blocks | None = None
    power_budget: float | None = None

    @property
    def moves(self) -> bool:
        """Whether UEs are known to be elsewhere in other rounds."""
        return self.positions_m is not None and len(self.positions_m.shape) == 3

    def positions_at(self, t: int) -> NDArray[np.float64] | None:
        """``[ue, (x, y)]`` of round ``t``, where it is known."""
        if self.positions_m is None:
            return None
        return as_block(self.positions_m[t] if self.moves else self.positions_m[:])


@dataclass(frozen=True, eq=False)
class RecordedChannel:
    """A channel that was measured or recorded; one block of it at a time is in memory."""

    trace: Trace
    power_budget: float

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return int(self.trace.gains.shape[1])

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        return int(self.trace.gains.shape[2])

    @property
    def moves(self) -> bool:
        """Whether UEs are elsewhere in other rounds."""
        return self.trace.moves

    def block(self, t: int) -> Block:
        """Return round ``t`` of the trace."""
        rounds = self.trace.gains.shape[0]
        if not 0 <= t < rounds:
            raise ValueError(f"the trace has {rounds} rounds: there is no round {t}")
        true, seen = as_block(self.trace.gains[t]), self.trace.seen
        return Block(true if seen is None else as_block(seen[t]), true, self.trace.positions_at(t))


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
    """Arrays gains[round, ue, subchannel] in .npz, .npy, .h5 or a .parquet table."""

    kind: Literal["gains"] = "gains"

    def read(self, path: Path, cell: Cell) -> Trace:
        """Return the trace in a file, whose gains stay on the disk where they can.

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


def as_block(values: Any) -> NDArray[np.float64]:
    """A copy in memory, as kernels take it, of one round on the disk."""
    with np.errstate(over="ignore"):  # a longer float: what is infinite then is found by checks
        return np.array(values, dtype=np.float64, order="C")


def require_gains(path: Path, name: str, gains: Blocks) -> None:
    """Raise ``ValueError`` naming the first gain that is none, in one pass, a part at a time."""
    step = max(1, _CHUNK // max(1, math.prod(gains.shape[1:])))
    for first in range(0, gains.shape[0], step):
        part = as_block(gains[first : first + step])
        bad = ~(np.isfinite(part) & (part >= 0))
        if bad.any():
            t, ue, subchannel = np.unravel_index(int(bad.argmax()), part.shape)
            raise ValueError(
                f"{path}: {name} must be non-negative and finite: in round {first + t} that of UE "
                f"{ue} on subchannel {subchannel} is {part[t, ue, subchannel]}"
            )


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
    refuse_after_fork()
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


# --------------------------------------------------------------------------------------- recording
class _Array(NamedTuple):
    """An array that is written a round at a time."""

    shape: tuple[int, ...]
    rounds: Callable[[], Iterator[NDArray[np.float64]]]


def require_recordable(path: Path) -> None:
    """Raise ``ValueError`` unless a trace can be recorded in a file of this name."""
    if path.suffix not in (".npz", *HDF5_ENDINGS):
        raise ValueError(f"{path}: a trace is recorded as .npz, {' or '.join(HDF5_ENDINGS)}")


def write_trace(path: Path, channel: Channel, rounds: int, about: Mapping[str, Any]) -> None:
    """Write the first rounds of a channel as a trace, a block at a time.

    ``about`` says what it is from. Any block can be drawn again, so that none has to be kept.
    """
    require_recordable(path)
    arrays = _arrays(channel, rounds)
    write = _write_npz if path.suffix == ".npz" else _write_hdf5
    with atomic_write(path) as temporary:
        write(temporary, arrays, {"power_budget": channel.power_budget, **about})


def _arrays(channel: Channel, count: int) -> dict[str, _Array]:
    shape = (count, channel.ue_count, channel.subchannel_count)
    arrays = {"gains": _Array(shape, lambda: (channel.block(t).true for t in range(count)))}
    known, moving, first = True, False, channel.block(0).positions_m
    for t in range(count):
        block = channel.block(t)
        known = known and (block.seen is block.true or np.array_equal(block.seen, block.true))
        moving = moving or not _same(block.positions_m, first)
    if not known:
        arrays["seen"] = _Array(shape, lambda: (channel.block(t).seen for t in range(count)))
    if first is not None:
        places = count if moving else 1

        def positions() -> Iterator[NDArray[np.float64]]:
            return (_require_positions(channel, t) for t in range(places))

        still = (channel.ue_count, 2)
        arrays["positions_m"] = _Array((count, *still) if moving else still, positions)
    return arrays


def _same(one: NDArray[np.float64] | None, other: NDArray[np.float64] | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def _require_positions(channel: Channel, t: int) -> NDArray[np.float64]:
    positions = channel.block(t).positions_m
    if positions is None:
        raise ValueError(f"the channel says where the UEs are in round 0, but not in round {t}")
    return positions


def _write_npz(file: Path, arrays: Mapping[str, _Array], about: Mapping[str, Any]) -> None:
    """Members are stored as they are, so that they can be mapped."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            head = {"descr": "<f8", "fortran_order": False, "shape": array.shape}
            with _member(archive, name) as member:
                np.lib.format.write_array_header_1_0(member, head)
                for block in array.rounds():
                    member.write(np.ascontiguousarray(block, "<f8").tobytes())
        for name, value in about.items():
            with _member(archive, name) as member:
                np.lib.format.write_array(member, np.array(value), allow_pickle=False)


@contextlib.contextmanager
def _member(archive: zipfile.ZipFile, name: str) -> Iterator[Any]:
    with archive.open(zipfile.ZipInfo(f"{name}.npy", _DATE), "w", force_zip64=True) as member:
        yield member


def _write_hdf5(file: Path, arrays: Mapping[str, _Array], about: Mapping[str, Any]) -> None:
    with require("h5py", "hdf5").File(file, "w", locking=False) as archive:
        for name, array in arrays.items():
            dataset = archive.create_dataset(name, array.shape, "<f8")
            for t, block in enumerate(array.rounds()):
                dataset[t if len(array.shape) == 3 else ...] = block
        archive.attrs.update(about)
