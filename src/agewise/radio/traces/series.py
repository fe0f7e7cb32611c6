"""Traces over time: fading of ns-3, SINR statistics of ns-3, drive tests."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agewise.archives import require_file
from agewise.core.elementary import exp_each
from agewise.frames import require_frames
from agewise.radio.fading import Fading, make_fading
from agewise.radio.large_scale import LargeScale
from agewise.radio.traces.trace import Size, Trace
from agewise.random import Streams
from agewise.scenario import Cell, DriveTestFormat, Ns3FadingFormat, Ns3SinrFormat
from agewise.scenario.fading import require_fading

_NATS_PER_DB = math.log(10.0) / 10.0
#: Decibels beyond which a number is no SNR.
_MOST_DB = 300.0


def linear(ratios_db: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ratios in dB as plain ratios, the same to the bit on every machine."""
    return np.asarray(exp_each(np.ravel(ratios_db) * _NATS_PER_DB).reshape(ratios_db.shape))


# ------------------------------------------------------------------------------ fading of ns-3


@dataclass(frozen=True, eq=False)
class FadingSamples:
    """``gains[sample, subchannel]`` of one link, around 1."""

    gains: NDArray[np.float64]
    settings: Ns3FadingFormat

    def drawn(self, size: Size, streams: Streams) -> Trace:
        """Every UE begins at a sample of its own, as links of ns-3 do, and goes round."""
        share = streams.placement().random(size.ues)
        starts = np.floor(share * len(self.gains)).astype(np.int64)
        return Trace(_Windows(self.gains, starts, self.settings.samples_per_round))


@dataclass(frozen=True, eq=False)
class _Windows:
    gains: NDArray[np.float64]
    starts: NDArray[np.int64]
    step: int

    @property
    def shape(self) -> tuple[int, ...]:
        rounds = -(-len(self.gains) // self.step)  # until a UE is where it began
        return (rounds, self.starts.size, self.gains.shape[1])

    def __getitem__(self, t: int) -> NDArray[np.float64]:
        return np.asarray(self.gains[(self.starts + t * self.step) % len(self.gains)])


def read_ns3_fading(path: Path, settings: Ns3FadingFormat, size: Size) -> FadingSamples:
    """A fading trace (.fad): text with a row per resource block and a column per sample, in dB."""
    require_file(path)
    try:
        rows = np.loadtxt(path, dtype=np.float64, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        reason = str(error).partition(";")[0]
        raise ValueError(
            f"{path}: not a fading trace of ns-3, which has a row of numbers per resource block: "
            f"{reason}"
        ) from error
    if len(rows) < size.subchannels:
        raise ValueError(
            f"{path}: the trace has {len(rows)} resource blocks (rows) and the scenario "
            f"{size.subchannels} subchannels: set cell.subchannels to at most {len(rows)}"
        )
    rows = rows[: size.subchannels]
    if not (np.abs(rows) <= _MOST_DB).all():
        row, column = np.argwhere(~(np.abs(rows) <= _MOST_DB))[0]
        raise ValueError(
            f"{path}: fading must be dB of at most {_MOST_DB:g}: row {row}, column {column} is "
            f"{rows[row, column]}"
        )
    return FadingSamples(np.ascontiguousarray(linear(rows + settings.mean_snr_db).T), settings)


# ---------------------------------------------------------------------- one SNR per UE and time


@dataclass(frozen=True, eq=False)
class MeanSnrs:
    """``snr[round, ue]``, linear, and where known ``positions_m[round, ue, (x, y)]``."""

    snr: NDArray[np.float64]
    positions_m: NDArray[np.float64] | None
    settings: Ns3SinrFormat | DriveTestFormat

    def drawn(self, size: Size, streams: Streams) -> Trace:
        """Fading from the seed varies the gains over the subchannels around these means."""
        settings, width_hz = self.settings, size.bandwidth_hz
        _require_overlay(settings, width_hz)
        cell = Cell(ues=size.ues, subchannels=size.subchannels, subchannel_bandwidth_hz=width_hz)
        fading = make_fading(settings.fading, cell, settings.round_s, streams)
        faded = _Faded(self.snr, self.positions_m, fading, size.subchannels)
        return Trace(faded, None, self.positions_m)


def _require_overlay(settings: Ns3SinrFormat | DriveTestFormat, width_hz: float | None) -> None:
    """Raise ``ValueError`` if this fading cannot be; its fields are those of the format here."""
    try:
        require_fading(settings.fading, width_hz, settings.round_s, 0.0, knows_sight=False)
    except ValueError as error:
        text = str(error).replace("channel.fading", "channel.format.fading")
        raise ValueError(text.replace("channel.round_s", "channel.format.round_s")) from None


@dataclass(frozen=True, eq=False)
class _Faded:
    snr: NDArray[np.float64]
    positions_m: NDArray[np.float64] | None
    fading: Fading
    subchannels: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.snr.shape, self.subchannels)

    def __getitem__(self, t: int) -> NDArray[np.float64]:
        means = self.snr[t]
        places = np.zeros((means.size, 2)) if self.positions_m is None else self.positions_m[t]
        return self.fading.gains(t, LargeScale.still(places, means), self.subchannels)


def read_ns3_sinr(path: Path, settings: Ns3SinrFormat, size: Size) -> MeanSnrs:
    """PHY statistics of ns-3: columns time [s], cellId, IMSI, RNTI and sinrLinear, by tabs.

    A UE is an IMSI, whatever cell serves it. Files of RSRP and SINR call the column ``sinr``.
    """
    table = _table(path, "\t")
    table = table.rename({name: name.strip("% ") for name in table.columns})
    carrier = [name for name in table.columns if name.lower() == "componentcarrierid"]
    if carrier:
        table = table.filter(pl.col(carrier[0]) == settings.carrier)
        if table.is_empty():
            raise ValueError(
                f"{path}: there is no row of channel.format.carrier = {settings.carrier}"
            )
    value = "sinr" if "sinr" in table.columns else "sinrLinear"
    _require_columns(path, table, ("time", "IMSI", value))
    if (table[value] < 0).any():
        raise ValueError(f"{path}: {value} must be linear and not negative: it is no ratio in dB")
    index, _ = _rows_of_rounds(path, table, ("time", "IMSI"), settings.round_s)
    _require_ues(path, index.shape, size)
    return MeanSnrs(_numbers(table, value)[index], None, settings)


def read_drive_test(path: Path, settings: DriveTestFormat, size: Size) -> MeanSnrs:
    """A CSV with a row per time and UE: seconds, UE, SNR in dB; perhaps ``x_m`` and ``y_m``."""
    table = _table(path, ",")
    value = settings.snr_column
    _require_columns(path, table, (settings.time_column, settings.ue_column, value))
    if (table[value].abs() > _MOST_DB).any():
        raise ValueError(f"{path}: column {value!r} must hold dB of at most {_MOST_DB:g}")
    names = (settings.time_column, settings.ue_column)
    index, _ = _rows_of_rounds(path, table, names, settings.round_s)
    _require_ues(path, index.shape, size)
    positions = None
    if {"x_m", "y_m"} <= set(table.columns):
        _require_columns(path, table, ("x_m", settings.ue_column, "y_m"))
        positions = np.stack([_numbers(table, name)[index] for name in ("x_m", "y_m")], axis=-1)
    return MeanSnrs(linear(_numbers(table, value)[index]), positions, settings)


def _table(path: Path, separator: str) -> pl.DataFrame:
    require_file(path)
    require_frames()
    try:
        content = io.BytesIO(path.read_bytes())
        return pl.read_csv(content, separator=separator, infer_schema_length=None)
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{path}: not a readable table: {reason}") from error


def _require_columns(path: Path, table: pl.DataFrame, names: Sequence[str]) -> None:
    """Columns of numbers without gaps, but for the second, which names the UE."""
    for place, name in enumerate(names):
        if name not in table.columns:
            raise ValueError(
                f"{path}: there is no column {name!r}; expected {', '.join(names)}, it has "
                f"{', '.join(table.columns)}"
            )
        column, is_name = table[name], place == 1
        gaps = column.null_count() > 0
        if not is_name and not gaps and column.dtype.is_numeric():
            gaps = not column.cast(pl.Float64).is_finite().all()
        if gaps or not (is_name or column.dtype.is_numeric()):
            raise ValueError(
                f"{path}: column {name!r} must hold {'names' if is_name else 'finite numbers'} "
                f"without gaps, not {column.dtype}{' with gaps' if gaps else ''}"
            )
    if table.is_empty():
        raise ValueError(f"{path}: the table has no rows")


def _numbers(table: pl.DataFrame, name: str) -> NDArray[np.float64]:
    return table[name].cast(pl.Float64).to_numpy()


def _rows_of_rounds(
    path: Path, table: pl.DataFrame, names: tuple[str, str], round_s: float
) -> tuple[NDArray[np.int64], list[object]]:
    """``[round, ue]``: the last row of each UE at or before each round, and the UEs in order.

    Rounds begin when there is a value of every UE, and end with the first UE whose values end.
    """
    times = _numbers(table, names[0])
    ues = table[names[1]].unique().sort().to_list()
    rows = []
    for ue in ues:
        own = np.flatnonzero((table[names[1]] == ue).to_numpy())
        rows.append(own[np.argsort(times[own], kind="stable")])
    start = max(times[own[0]] for own in rows)
    end = min(times[own[-1]] for own in rows)
    if end < start:
        raise ValueError(f"{path}: there is no time at which all {len(ues)} UEs have values")
    rounds = int((end - start) / round_s + 1e-9) + 1
    at = start + round_s * (np.arange(rounds) + 1e-9)  # a row of that very time counts
    index = [own[np.searchsorted(times[own], at, side="right") - 1] for own in rows]
    return np.stack(index, axis=1), ues


def _require_ues(path: Path, found: tuple[int, ...], size: Size) -> None:
    if found[1] != size.ues:
        raise ValueError(
            f"{path}: the trace has {found[1]} UEs and the scenario {size.ues}: set "
            f"cell.ues={found[1]}"
        )
