"""Traces of others: impulse responses of Sionna, channels of DeepMIMO, SINR of ns-3, drive tests.

Gains are powers: those of the access point's antennas add up (maximum-ratio combining), those of a
UE's antennas are averaged (its power is split evenly between them).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.checks import require_memory
from agewise.core.elementary import cos_sin_each
from agewise.core.propagation import ratios_each
from agewise.dependencies import pl
from agewise.part import LARGE, MOST, Kinds, State
from agewise.radio.cell import Cell, LinkBudget, RunContext
from agewise.radio.fading import Fading
from agewise.radio.large_scale import LargeScale
from agewise.radio.traces._gains import Trace, TraceFormat, require_gains
from agewise.readers import array_names, read_arrays, read_table, require_columns

#: What the arrays of DeepMIMO are called, by its versions.
CHANNEL_NAMES = ("channels", "channel")
_POSITION_NAMES = ("rx_pos", "location", "loc", "rx_loc")
#: Decibels beyond which a number is no SNR.
_MOST_DB = 300.0
#: Overflows are found in the gains that come of them.
_UNCHECKED = np.errstate(over="ignore", invalid="ignore")
_LINK = "transmit power and noise, which turn path gains into SNR; left out, they are SNRs already"


# ----------------------------------------------------------------------------------- ray tracers
class SionnaFormat(TraceFormat):
    """Channel impulse responses of Sionna: a and tau in an .npz or .mat; a time step is a round."""

    kind: Literal["sionna"] = "sionna"
    ues: Literal["receivers", "transmitters"] = Field(
        default="receivers", description="which side of the file's links the UEs are"
    )
    access_point: int = Field(
        default=0, ge=0, le=MOST, description="which device of the other side is the access point"
    )
    link: LinkBudget | None = Field(default=None, description=_LINK)

    def read(self, path: Path, cell: Cell) -> Trace:
        """Return gains on the subchannels by H(f) = sum over the paths of a exp(-j 2 pi f tau).

        ``a[rx, rx_ant, tx, tx_ant, path, time]`` and ``tau[rx, tx, path]`` or with antennas, in
        seconds, as `Paths.cir` of Sionna gives them; f are the middles of the subchannels around 0.
        """
        a, tau = read_arrays(path, ["a", "tau"])
        if a.ndim == 7 and len(a) == 1 and tau.ndim in (4, 6):  # link-level models have a batch
            a, tau = a[0], tau[0]
        if a.ndim != 6 or a.dtype.kind != "c":
            raise ValueError(
                f"{path}: a must be complex numbers[rx, rx_ant, tx, tx_ant, path, time], not "
                f"{a.dtype} of shape {a.shape}"
            )
        shapes = (a.shape[:5], (a.shape[0], a.shape[2], a.shape[4]))
        if tau.shape not in shapes or tau.dtype.kind != "f" or not np.isfinite(tau).all():
            raise ValueError(
                f"{path}: tau must be finite seconds of shape {shapes[1]} or {shapes[0]} beside a, "
                f"not {tau.dtype} of shape {tau.shape}"
            )
        if tau.ndim == 3:
            tau = np.broadcast_to(tau[:, np.newaxis, :, np.newaxis, :], a.shape[:5])
        if self.ues == "transmitters":
            a, tau = a.transpose(2, 3, 0, 1, 4, 5), tau.transpose(2, 3, 0, 1, 4)
        there = a.shape[2]
        if self.access_point >= there:
            raise ValueError(
                f"{path}: channel.format.access_point = {self.access_point}: the file has {there} "
                f"there, so at most {there - 1} is taken"
            )
        if cell.subchannel_bandwidth_hz is None:
            raise ValueError(
                f"{path}: an impulse response becomes gains on subchannels by their bandwidth: set "
                "cell.subchannel_bandwidth_hz"
            )
        at = self.access_point
        gains = _response_power(a[:, :, at], tau[:, :, at], cell)
        return _scaled(path, gains, self.link, cell)


@_UNCHECKED
def _response_power(a: NDArray[Any], tau: NDArray[Any], cell: Cell) -> NDArray[np.float64]:
    """Return ``[time, ue, subchannel]`` of ``a[ue, ue_ant, ap_ant, path, time]``.

    Real arithmetic and circles of our own, so that the last bits are those of every machine.
    """
    ues, own, other, paths, times = a.shape
    count, bandwidth_hz = cell.subchannels, cell.subchannel_bandwidth_hz or 0.0
    require_memory(8.0 * 5 * ues * times * count, "the gains of the trace")
    middles_hz = (np.arange(count) - (count - 1) / 2.0) * bandwidth_hz
    gains = np.zeros((times, ues, count))
    for i, j in np.ndindex(own, other):
        real, imaginary = np.zeros_like(gains), np.zeros_like(gains)
        for path in range(paths):
            turns = -(tau[:, i, j, path].astype(np.float64)[:, np.newaxis] * middles_hz)
            turned = cos_sin_each((turns - np.floor(turns)).ravel()).reshape(ues, count, 2)
            cosine, sine = turned[..., 0], turned[..., 1]
            taps = a[:, i, j, path, :].T[:, :, np.newaxis]
            re, im = taps.real.astype(np.float64), taps.imag.astype(np.float64)
            real += re * cosine - im * sine
            imaginary += re * sine + im * cosine
        gains += real * real + imaginary * imaginary
    return np.asarray(gains / own)


class DeepMimoFormat(TraceFormat):
    """Channels of DeepMIMO: channels[ue, rx, tx, subcarrier] in an .npz or .mat."""

    kind: Literal["deepmimo"] = "deepmimo"
    link: LinkBudget | None = Field(default=None, description=_LINK)

    def read(self, path: Path, cell: Cell) -> Trace:
        """Return the gains of all users ``[scene, user, subchannel]``.

        Channels are ``[user, rx, tx, subcarrier]`` of one scene, or of several in front.
        Subcarriers make subchannels of equally many neighbours, whose powers are averaged.
        """
        names = array_names(path)
        name = next((name for name in CHANNEL_NAMES if name in names), CHANNEL_NAMES[0])
        (channels,) = read_arrays(path, [name])
        if channels.ndim == 4:
            channels = channels[np.newaxis]
        if channels.ndim != 5 or channels.dtype.kind != "c":
            raise ValueError(
                f"{path}: channels must be complex numbers[ue, rx, tx, subcarrier], not "
                f"{channels.dtype} of shape {channels.shape}"
            )
        carriers = channels.shape[4]
        if carriers == 0 or carriers % cell.subchannels:
            raise ValueError(
                f"{path}: {carriers} subcarriers do not make {cell.subchannels} equal subchannels: "
                f"set cell.subchannels to a divisor of {carriers}"
            )
        gains = _carrier_power(channels, cell.subchannels)
        positions = _positions(path, names, gains.shape[1])
        return _scaled(path, gains, self.link, cell, positions)

    def trace(self, content: State, run: RunContext) -> Trace:
        """Draw the UEs of one run from the users; a single scene lasts for ever."""
        gains, positions, ues = content.gains, content.positions_m, run.cell.ues
        users = gains.shape[1]
        if users > ues:
            order = np.argsort(run.streams.placement().random(users), kind="stable")
            chosen = np.sort(order[:ues])
            gains = gains[:, chosen]
            positions = None if positions is None else positions[chosen]
        if len(gains) == 1:
            gains = np.broadcast_to(gains, (run.rounds, *gains.shape[1:]))
        return Trace(gains, None, positions, content.power_budget)


@_UNCHECKED
def _carrier_power(channels: NDArray[Any], subchannels: int) -> NDArray[np.float64]:
    """Return ``[scene, user, subchannel]`` of ``[scene, user, rx, tx, subcarrier]``."""
    scenes, users, own, other, carriers = channels.shape
    group = carriers // subchannels
    gains = np.zeros((scenes, users, subchannels))
    for i, j, k in np.ndindex(own, other, group):
        part = channels[:, :, i, j, k::group]
        re, im = part.real.astype(np.float64), part.imag.astype(np.float64)
        gains += re * re + im * im
    return np.asarray(gains / (own * group))


def _positions(path: Path, names: Sequence[str], users: int) -> NDArray[np.float64] | None:
    """Read ``[user, (x, y)]`` as seen from the base station, where the file says it."""
    places = [name for name in _POSITION_NAMES if name in names]
    if not places:
        return None
    (positions,) = read_arrays(path, places[:1])
    centre = np.ravel(read_arrays(path, ["tx_pos"])[0]) if "tx_pos" in names else np.zeros(2)
    good = positions.shape in ((users, 2), (users, 3)) and centre.size >= 2
    if not good or positions.dtype.kind not in "iuf" or centre.dtype.kind not in "iuf":
        raise ValueError(
            f"{path}: positions must be metres of shape ({users}, 2 or 3) beside the channels, not "
            f"{positions.dtype} of shape {positions.shape}"
        )
    placed = positions[:, :2].astype(np.float64) - centre[:2].astype(np.float64)
    if not np.isfinite(placed).all():
        raise ValueError(f"{path}: positions must be finite metres")
    return np.ascontiguousarray(placed)


@_UNCHECKED
def _scaled(
    path: Path,
    gains: NDArray[np.float64],
    link: LinkBudget | None,
    cell: Cell,
    positions_m: NDArray[np.float64] | None = None,
) -> Trace:
    """Return path gains as SNRs per watt, where a link budget says so."""
    if link is not None:
        if cell.subchannel_bandwidth_hz is None:
            raise ValueError(f"{path}: channel.format.link needs cell.subchannel_bandwidth_hz")
        gains = gains / link.noise_w(cell.subchannel_bandwidth_hz)
    require_gains(path, "gains", gains)
    return Trace(gains, None, positions_m, 1.0 if link is None else link.power_budget)


# ---------------------------------------------------------------------- one SNR per UE and time
class _MeanSnrs(NamedTuple):
    """Mean SNRs ``snr[round, ue]``, linear, and where known ``positions_m[round, ue, (x, y)]``."""

    snr: NDArray[np.float64]
    positions_m: NDArray[np.float64] | None


class _SnrFormat(TraceFormat):
    """One SNR per UE and time; fading from the seed varies the gains over the subchannels."""

    round_s: float = Field(ge=1e-6, le=LARGE, description="seconds from one round to the next")
    fading: Annotated[Fading, Kinds] = Field(
        description="how gains vary over the subchannels around that SNR"
    )

    def trace(self, content: State, run: RunContext) -> Trace:
        """Return gains with fading around the means of the file."""
        try:
            self.fading.check(run.cell, (self.round_s, 0.0), knows_los=False)
        except ValueError as error:  # its fields are those of the format here
            text = str(error).replace("channel.fading", "channel.format.fading")
            text = text.replace("channel.round_s", "channel.format.round_s")
            raise ValueError(text) from None
        state = self.fading.prepare(run._replace(round_s=self.round_s))
        faded = _Faded(content.snr, content.positions_m, self.fading, state, run.cell.subchannels)
        return Trace(faded, None, content.positions_m)


@dataclass(frozen=True, eq=False)
class _Faded:
    """Rounds of gains, drawn when they are asked for."""

    snr: NDArray[np.float64]
    positions_m: NDArray[np.float64] | None
    fading: Fading
    state: State
    subchannels: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.snr.shape, self.subchannels)

    def __getitem__(self, t: int) -> NDArray[np.float64]:
        means = self.snr[t]
        ues = means.size
        places = np.zeros((ues, 2)) if self.positions_m is None else self.positions_m[t]
        large = LargeScale(places, means, np.zeros(ues, np.bool_), lambda _: places)
        return self.fading.gains(self.state, t, large)


class Ns3SinrFormat(_SnrFormat):
    """PHY statistics of ns-3, tab-separated: time, cellId, IMSI, RNTI, sinrLinear, ..."""

    kind: Literal["ns3-sinr"] = "ns3-sinr"
    carrier: int = Field(default=0, ge=0, le=MOST, description="the component carrier to read")

    def read(self, path: Path, cell: Cell) -> _MeanSnrs:
        """Read columns time [s], cellId, IMSI, RNTI and sinrLinear, by tabs.

        A UE is an IMSI, whatever cell serves it. Files of RSRP and SINR call the column ``sinr``.
        """
        table = read_table(path, "\t")
        table = table.rename({name: name.strip("% ") for name in table.columns})
        carrier = [name for name in table.columns if name.lower() == "componentcarrierid"][:1]
        value = "sinr" if "sinr" in table.columns else "sinrLinear"
        require_columns(path, table, ("time", "IMSI", value, *carrier), names=("IMSI",))
        if carrier:
            table = table.filter(pl.col(carrier[0]) == self.carrier)
            if table.is_empty():
                raise ValueError(
                    f"{path}: there is no row of channel.format.carrier = {self.carrier}"
                )
        if not table[value].is_between(0.0, 10.0 ** (_MOST_DB / 10.0)).all():
            raise ValueError(
                f"{path}: {value} must be linear, not negative and no ratio in dB, up to "
                f"{_MOST_DB:g} dB"
            )
        index = _rows_of_rounds(path, table, ("time", "IMSI"), self.round_s, cell.ues)
        return _MeanSnrs(_numbers(table, value)[index], None)


class DriveTestFormat(_SnrFormat):
    """Measurements on the way, a CSV with an SNR in dB per row, for a time and a UE."""

    kind: Literal["drive-test"] = "drive-test"
    time_column: str = Field(default="time_s", description="the column of the time in seconds")
    ue_column: str = Field(default="ue", description="the column of the UE, a number or a name")
    snr_column: str = Field(default="snr_db", description="the column of the SNR in dB")

    def read(self, path: Path, cell: Cell) -> _MeanSnrs:
        """Read rows per time and UE: seconds, UE, SNR in dB; perhaps ``x_m`` and ``y_m``."""
        table = read_table(path)
        value = self.snr_column
        columns = (self.time_column, self.ue_column, value)
        require_columns(path, table, columns, names=(self.ue_column,))
        if (table[value].abs() > _MOST_DB).any():
            raise ValueError(f"{path}: column {value!r} must hold dB of at most {_MOST_DB:g}")
        index = _rows_of_rounds(path, table, columns[:2], self.round_s, cell.ues)
        positions = None
        if {"x_m", "y_m"} <= set(table.columns):
            require_columns(path, table, ("x_m", "y_m"))
            positions = np.stack([_numbers(table, name)[index] for name in ("x_m", "y_m")], axis=-1)
        return _MeanSnrs(np.asarray(ratios_each(_numbers(table, value)))[index], positions)


def _numbers(table: "pl.DataFrame", name: str) -> NDArray[np.float64]:
    return table[name].cast(pl.Float64).to_numpy()


def _rows_of_rounds(
    path: Path, table: "pl.DataFrame", names: tuple[str, str], round_s: float, ue_count: int
) -> NDArray[np.int64]:
    """Return the last row of each UE at or before each round, ``[round, ue]``.

    Rounds begin when there is a value of every UE, and end with the first UE whose values end.
    """
    times = _numbers(table, names[0])
    ues = table[names[1]].unique().sort().to_list()
    if len(ues) != ue_count:
        raise ValueError(
            f"{path}: the trace has {len(ues)} UEs and the scenario {ue_count}: set "
            f"cell.ues={len(ues)}"
        )
    rows = []
    for ue in ues:
        own = np.flatnonzero((table[names[1]] == ue).to_numpy())
        rows.append(own[np.argsort(times[own], kind="stable")])
    start = max(float(times[own[0]]) for own in rows)
    end = min(float(times[own[-1]]) for own in rows)
    if end < start:
        raise ValueError(f"{path}: there is no time at which all {len(ues)} UEs have values")
    lasts = (end - start) / round_s + 1e-9
    require_memory(8.0 * 4 * len(ues) * lasts, f"{path}: its rounds")
    rounds = int(lasts) + 1
    at = start + round_s * (np.arange(rounds) + 1e-9)  # a row of that very time counts
    index = [own[np.searchsorted(times[own], at, side="right") - 1] for own in rows]
    return np.stack(index, axis=1)
