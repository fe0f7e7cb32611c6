"""Channels that ray tracers write: impulse responses of Sionna, frequency responses of DeepMIMO.

Gains are powers: those of the access point's antennas add up (maximum-ratio combining), those of a
UE's antennas are averaged (its power is split evenly between them).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from agewise.archives import array_names, read_arrays, require_file
from agewise.core.elementary import circle_each
from agewise.memory import require_memory
from agewise.radio.traces.trace import Size, Trace, require_gains
from agewise.random import Streams
from agewise.scenario import DeepMimoFormat, LinkBudget, SionnaFormat
from agewise.units import dbm_to_watt

#: What the arrays of DeepMIMO are called, by its versions.
CHANNEL_NAMES = ("channels", "channel")
_POSITION_NAMES = ("rx_pos", "location", "loc", "rx_loc")


# ------------------------------------------------------------------------------------- Sionna


def read_sionna(path: Path, settings: SionnaFormat, size: Size) -> Trace:
    """Gains on the subchannels by H(f) = sum over the paths of a exp(-j 2 pi f tau).

    ``a[rx, rx_ant, tx, tx_ant, path, time]`` and ``tau[rx, tx, path]`` or with antennas, in
    seconds, as `Paths.cir` of Sionna gives them; f are the middles of the subchannels around 0.
    """
    a, tau = read_arrays(path, ["a", "tau"])
    if a.ndim == 7 and len(a) == 1 and tau.ndim in (4, 6):  # link-level models have a batch
        a, tau = a[0], tau[0]
    if a.ndim != 6 or a.dtype.kind != "c":
        raise ValueError(
            f"{path}: a must be complex numbers[rx, rx_ant, tx, tx_ant, path, time], not {a.dtype} "
            f"of shape {a.shape}"
        )
    shapes = (a.shape[:5], (a.shape[0], a.shape[2], a.shape[4]))
    if tau.shape not in shapes or tau.dtype.kind != "f" or not np.isfinite(tau).all():
        raise ValueError(
            f"{path}: tau must be finite seconds of shape {shapes[1]} or {shapes[0]} beside a, not "
            f"{tau.dtype} of shape {tau.shape}"
        )
    if tau.ndim == 3:
        tau = np.broadcast_to(tau[:, np.newaxis, :, np.newaxis, :], a.shape[:5])
    if settings.ues == "transmitters":
        a, tau = a.transpose(2, 3, 0, 1, 4, 5), tau.transpose(2, 3, 0, 1, 4)
    there = a.shape[2]
    if settings.access_point >= there:
        raise ValueError(
            f"{path}: channel.format.access_point = {settings.access_point}: the file has {there} "
            f"there, so at most {there - 1} is taken"
        )
    bandwidth_hz = _bandwidth(path, size)
    gains = _response_power(
        a[:, :, settings.access_point], tau[:, :, settings.access_point], size, bandwidth_hz
    )
    return _scaled(path, gains, settings.link, bandwidth_hz)


def _response_power(
    a: NDArray[Any], tau: NDArray[Any], size: Size, bandwidth_hz: float
) -> NDArray[np.float64]:
    """``[time, ue, subchannel]`` of ``a[ue, ue_ant, ap_ant, path, time]``.

    Real arithmetic and circles of our own, so that the last bits are those of every machine.
    """
    ues, own, other, paths, times = a.shape
    count = size.subchannels
    require_memory(8.0 * 5 * ues * times * count, "the gains of the trace")
    middles_hz = (np.arange(count) - (count - 1) / 2.0) * bandwidth_hz
    gains = np.zeros((times, ues, count))
    for i, j in np.ndindex(own, other):
        real, imaginary = np.zeros_like(gains), np.zeros_like(gains)
        for path in range(paths):
            turns = -(tau[:, i, j, path].astype(np.float64)[:, np.newaxis] * middles_hz)
            turned = circle_each((turns - np.floor(turns)).ravel()).reshape(ues, count, 2)
            cosine, sine = turned[..., 0], turned[..., 1]
            taps = a[:, i, j, path, :].T[:, :, np.newaxis]
            re, im = taps.real.astype(np.float64), taps.imag.astype(np.float64)
            real += re * cosine - im * sine
            imaginary += re * sine + im * cosine
        gains += real * real + imaginary * imaginary
    return np.asarray(gains / own)


# ----------------------------------------------------------------------------------- DeepMIMO


@dataclass(frozen=True, eq=False)
class Users:
    """``gains[scene, user, subchannel]`` and, where known, ``positions_m[user, (x, y)]``."""

    path: Path
    gains: NDArray[np.float64]
    positions_m: NDArray[np.float64] | None
    power_budget: float | None

    def drawn(self, size: Size, streams: Streams) -> Trace:
        """The UEs of one run, drawn from the users; a single scene lasts for ever."""
        gains, positions = self.gains, self.positions_m
        users = gains.shape[1]
        if users > size.ues:
            order = np.argsort(streams.placement().random(users), kind="stable")
            chosen = np.sort(order[: size.ues])
            gains = gains[:, chosen]
            positions = None if positions is None else positions[chosen]
        if len(gains) == 1:
            gains = np.broadcast_to(gains, (size.rounds, *gains.shape[1:]))
        return Trace(gains, None, positions, self.power_budget)


def read_deepmimo(path: Path, settings: DeepMimoFormat, size: Size) -> Users:
    """Channels ``[user, rx, tx, subcarrier]`` of one scene, or of several in front.

    Subcarriers make subchannels of equally many neighbours, whose powers are averaged.
    """
    if path.suffix == ".mat":
        channels, positions = _from_mat(path, settings.base_station)
    else:
        channels, positions = _from_npz(path)
    if channels.ndim == 4:
        channels = channels[np.newaxis]
    if channels.ndim != 5 or channels.dtype.kind != "c":
        raise ValueError(
            f"{path}: channels must be complex numbers[ue, rx, tx, subcarrier], not "
            f"{channels.dtype} of shape {channels.shape}"
        )
    carriers = channels.shape[4]
    if carriers == 0 or carriers % size.subchannels:
        raise ValueError(
            f"{path}: {carriers} subcarriers do not make {size.subchannels} equal subchannels: set "
            f"cell.subchannels to a divisor of {carriers}"
        )
    gains = _carrier_power(channels, size.subchannels)
    if positions is not None and positions.shape != (gains.shape[1], 2):
        raise ValueError(
            f"{path}: positions must be metres of shape ({gains.shape[1]}, 2 or 3) beside the "
            f"channels, not {positions.shape}"
        )
    trace = _scaled(path, gains, settings.link, size.bandwidth_hz or 0.0)
    return Users(path, np.asarray(trace.gains), positions, trace.power_budget)


def _carrier_power(channels: NDArray[Any], subchannels: int) -> NDArray[np.float64]:
    """``[scene, user, subchannel]`` of ``[scene, user, rx, tx, subcarrier]``."""
    scenes, users, own, other, carriers = channels.shape
    group = carriers // subchannels
    gains = np.zeros((scenes, users, subchannels))
    for i, j, k in np.ndindex(own, other, group):
        part = channels[:, :, i, j, k::group]
        re, im = part.real.astype(np.float64), part.imag.astype(np.float64)
        gains += re * re + im * im
    return np.asarray(gains / (own * group))


def _from_npz(path: Path) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    held = array_names(path)
    names = [name for name in CHANNEL_NAMES if name in held]
    if not names:
        raise ValueError(
            f"{path}: it has no array 'channels'; it holds {', '.join(held) or 'nothing'}"
        )
    (channels,) = read_arrays(path, names[:1])
    places = [name for name in _POSITION_NAMES if name in held]
    if not places:
        return channels, None
    centre = read_arrays(path, ["tx_pos"])[0] if "tx_pos" in held else np.zeros(3)
    return channels, _plane(path, read_arrays(path, places[:1])[0], centre)


def _from_mat(path: Path, station: int) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """``DeepMIMO_dataset{station}.user{k}.channel`` and ``.loc``, or an array ``channels``."""
    require_file(path)
    try:
        held = loadmat(path)
    except Exception as error:
        # Of a damaged file the reader fails anywhere; of version 7.3, which is HDF5, it says so.
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path}: not a readable .mat file: {reason} (save it with '-v7' in MATLAB)"
        ) from error
    for name in CHANNEL_NAMES:
        if name in held:
            return np.asarray(held[name]), None
    try:
        stations = held["DeepMIMO_dataset"].ravel()
        base = stations[station]
        users = list(base["user"][0, 0].ravel())
        channels = [_three_axes(one["channel"][0, 0]) for one in users]
        known = all("loc" in (one.dtype.names or ()) for one in users)
        places = np.array([one["loc"][0, 0].ravel() for one in users]) if known else None
        centre = base["loc"][0, 0].ravel() if "loc" in (base.dtype.names or ()) else np.zeros(3)
        stacked = np.stack(channels)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        names = ", ".join(name for name in held if not name.startswith("__")) or "nothing"
        raise ValueError(
            f"{path}: there is no DeepMIMO_dataset{{{station + 1}}}.user{{k}}.channel, equally "
            f"large for every user; it holds {names}"
        ) from error
    return stacked, None if places is None else _plane(path, places, centre)


def _three_axes(channel: NDArray[Any]) -> NDArray[Any]:
    """``[rx, tx, subcarrier]``; with one antenna per user older versions write two axes."""
    return channel[np.newaxis] if channel.ndim == 2 else channel


def _plane(path: Path, positions: NDArray[Any], centre: NDArray[Any]) -> NDArray[np.float64]:
    """``[user, (x, y)]`` seen from the base station."""
    centre = np.ravel(centre)
    good = positions.ndim == 2 and positions.shape[1] >= 2 and centre.size >= 2
    if not good or positions.dtype.kind not in "iuf" or centre.dtype.kind not in "iuf":
        raise ValueError(f"{path}: positions must be metres of shape (users, 2 or 3)")
    placed = positions[:, :2].astype(np.float64) - centre[:2]
    if not np.isfinite(placed).all():
        raise ValueError(f"{path}: positions must be finite metres")
    return np.ascontiguousarray(placed)


# ------------------------------------------------------------------------------------- shared


def _scaled(path: Path, gains: NDArray[np.float64], link: Any, bandwidth_hz: float) -> Trace:
    """Path gains as SNRs per watt, where a link budget says so."""
    budget = None
    if isinstance(link, LinkBudget):
        if bandwidth_hz <= 0:
            raise ValueError(f"{path}: channel.format.link needs cell.subchannel_bandwidth_hz")
        density_w_hz = dbm_to_watt(link.noise_density_dbm_hz + link.noise_figure_db)
        gains = gains / (bandwidth_hz * density_w_hz)
        budget = dbm_to_watt(link.transmit_power_dbm)
    require_gains(path, "gains", gains)
    return Trace(gains, None, None, budget)


def _bandwidth(path: Path, size: Size) -> float:
    if size.bandwidth_hz is None:
        raise ValueError(
            f"{path}: an impulse response becomes gains on subchannels by their bandwidth: set "
            "cell.subchannel_bandwidth_hz"
        )
    return size.bandwidth_hz
