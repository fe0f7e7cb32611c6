"""Channels in files: our own gains, and what simulators, ray tracers and drive tests write."""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from agewise.checks import path_of
from agewise.part import Kinds, RelativeTo, State
from agewise.radio._files import stamp_of
from agewise.radio.cell import Cell, RunContext
from agewise.radio.channel import ChannelModel
from agewise.radio.traces._gains import (
    ARCHIVES,
    ENDINGS,
    TABLE_AXES,
    GainsFormat,
    Trace,
    TraceFormat,
    write_trace,
)
from agewise.radio.traces._others import (
    CHANNEL_NAMES,
    DeepMimoFormat,
    DriveTestFormat,
    Ns3SinrFormat,
    SionnaFormat,
)
from agewise.random import Streams
from agewise.readers import array_names, require_file

__all__ = [
    "AutoFormat",
    "DeepMimoFormat",
    "DriveTestFormat",
    "GainsFormat",
    "Ns3SinrFormat",
    "SionnaFormat",
    "Trace",
    "TraceChannel",
    "TraceFormat",
    "open_gains",
    "write_trace",
]

#: Endings of files whose content needs more to be said than the file does.
_NAMED = {".txt": "ns3-sinr", ".tsv": "ns3-sinr", ".csv": "drive-test"}


class AutoFormat(TraceFormat):
    """By the ending and the content of the file, where these leave no doubt."""

    kind: Literal["auto"] = "auto"

    def chosen(self, path: Path) -> TraceFormat:
        """Return the format that the ending and the names inside leave no doubt about."""
        require_file(path)
        names = set(array_names(path)) if path.suffix in ARCHIVES else set()
        if "gains" not in names and {"a", "tau"} <= names:
            return SionnaFormat()
        if "gains" not in names and names & set(CHANNEL_NAMES):
            return DeepMimoFormat()
        if path.suffix in ENDINGS and (path.suffix != ".csv" or _names_gains(path)):
            return GainsFormat()
        if path.suffix in _NAMED:
            raise ValueError(
                f"{path}: a {path.suffix} file does not say all that is needed: set channel.format "
                f"to kind {_NAMED[path.suffix]} with its fields"
            )
        raise ValueError(
            f"{path}: a trace ends in {', '.join(ENDINGS)}; of another ending set channel.format "
            "to what it is"
        )


class TraceChannel(ChannelModel):
    """Gains that were measured or recorded: ``gains[round, ue, subchannel]`` in a file."""

    kind: Literal["trace"] = "trace"
    path: str = Field(
        description="an .npz with an array gains[round, ue, subchannel], or another format"
    )
    relative_to: RelativeTo = "working-folder"
    format: Annotated[TraceFormat, Kinds] = Field(
        default=AutoFormat(), description="what the file holds"
    )
    power_budget: float | None = Field(
        default=None,
        ge=1e-100,
        le=1e100,
        description="P_TX in the unit that makes gain times power an SNR; that of the file, or of "
        "format.link, if not given, and 1 if these say nothing",
    )

    def files(self) -> dict[str, Path]:
        """Name the file."""
        return {f"trace:{self.path}": Path(self.path)}

    def start(self, cell: Cell, rounds: int, streams: Streams) -> Trace:
        """Open the trace of one run; ``ValueError`` says what is wrong with the file or size."""
        path = Path(self.path)
        stamp = stamp_of(path, "trace")
        form = self.format.chosen(path)
        content = _read(path, stamp, form, cell)
        trace = form.trace(content, RunContext(cell, rounds, None, streams))
        held, *others = trace.gains.shape
        if held < rounds or tuple(others) != (cell.ues, cell.subchannels):
            raise ValueError(
                f"{path}: the trace has (rounds, UEs, subchannels) = {tuple(trace.gains.shape)}, "
                f"the scenario {(rounds, cell.ues, cell.subchannels)}: set run.rounds to at most "
                f"{held}, cell.ues={others[0]} and cell.subchannels={others[1]}"
            )
        return replace(trace, power_budget=self.power_budget or trace.power_budget)


def open_gains(path: Path | str) -> Trace:
    """Return the trace in a file of our own format, as large as it is."""
    any_cell = Cell(ues=1, subchannels=1)
    path = path_of("path", path)
    trace: Trace = _read(path, stamp_of(path, "trace"), GainsFormat(), any_cell)
    return trace


def _names_gains(path: Path) -> bool:
    """Tell whether the first line of a CSV names the columns of a table of gains."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        names = file.readline(1000).replace('"', "").split(",")
    return {*TABLE_AXES, "gain"} <= {name.strip() for name in names}


@functools.lru_cache(maxsize=4)
def _read(path: Path, _stamp: tuple[int, ...], form: TraceFormat, cell: Cell) -> State:
    """Read a file, once for cells of this size as long as it stays what it is."""
    return form.read(path, cell)
