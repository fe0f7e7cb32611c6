"""Any scenario's channel as a trace, written a block at a time."""

import contextlib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise.checks import whole_number
from agewise.extras import require
from agewise.files import write_whole
from agewise.radio.channel import Channel, make_channel
from agewise.radio.traces.own import HDF5_ENDINGS
from agewise.random import Streams
from agewise.scenario import Scenario, require_scenario

#: A fixed date, so that the same channel is the same file.
_DATE = (1980, 1, 1, 0, 0, 0)
_Rounds = Callable[[], Iterator[NDArray[np.float64]]]


class _Array(NamedTuple):
    """An array that is written a round at a time."""

    shape: tuple[int, ...]
    rounds: _Rounds


def record_trace(
    scenario: Scenario, path: Path | str, seed: int = 0, rounds: int | None = None
) -> Path:
    """Write the channel of this scenario and seed as a trace, an .npz or an HDF5 file.

    It holds the gains of ``rounds`` rounds, those of a run by default; what the access point sees
    of them where that differs; where the UEs are; the power budget; and which scenario and seed it
    is from. A run on the trace is the same as one on the scenario's own channel, to the byte.
    """
    require_scenario(scenario)
    path, streams = Path(path), Streams(seed)
    if path.suffix not in (".npz", *HDF5_ENDINGS):
        raise ValueError(f"{path}: a trace is recorded as .npz, {' or '.join(HDF5_ENDINGS)}")
    count = scenario.run.rounds if rounds is None else whole_number("rounds", rounds, 1)
    recorded = scenario.with_(**{"run.rounds": count})
    channel = make_channel(recorded, streams)
    arrays = _arrays(channel, count)
    about: dict[str, Any] = {
        "power_budget": channel.power_budget,
        "scenario": recorded.to_toml(),
        "seed": streams.seed,
    }
    write = _write_npz if path.suffix == ".npz" else _write_hdf5
    with write_whole(path) as temporary:
        write(temporary, arrays, about)
    return path


def _arrays(channel: Channel, count: int) -> dict[str, _Array]:
    """What there is to write; any block can be drawn again, so that none has to be kept."""
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
