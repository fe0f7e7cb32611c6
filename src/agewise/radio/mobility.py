"""How the UEs move: any time in any order, whatever was asked before.

A walk is brought on from the last time that was asked, or from its start if an earlier one is
asked; both ways go through the same legs or steps, to the bit. The state is replaced as a whole,
never changed, so that threads may ask one walk.
"""

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario
from agewise.core.elementary import exp_each
from agewise.core.mobility import Area, Walk, drift, go_on, start_drifts, start_walks
from agewise.files import stamp
from agewise.radio.files import read_tracks
from agewise.radio.placement import Placement, require_within
from agewise.random import Streams
from agewise.scenario.fading import require_no_alias

_Floats = NDArray[np.float64]
#: ``positions_m[ue, (x, y)]`` and ``speed_m_s[ue]``.
Motion = tuple[_Floats, _Floats]


class Mobility(Protocol):
    """Where the UEs are in any round."""

    def at(self, t: int) -> Motion:
        """Positions and speeds when round ``t`` begins."""
        ...


@dataclass(eq=False)
class WaypointWalk:
    """Random waypoint: straight legs between uniform points of an area, a pause before each."""

    key: np.uint64
    area: Area
    walk: Walk
    round_s: float
    ues: int
    _state: tuple[int, _Floats, NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self._state = self._start

    def at(self, t: int) -> Motion:
        """Positions and speeds when round ``t`` begins."""
        last, legs, counts = self._state if self._state[0] <= t else self._start
        legs, counts = legs.copy(), counts.copy()
        law = (tuple(self.area), tuple(self.walk))
        moved: Motion = go_on(self.key, t * self.round_s, *law, legs, counts)
        self._state = (max(t, last), legs, counts)
        return moved

    @functools.cached_property
    def _start(self) -> tuple[int, _Floats, NDArray[np.int64]]:
        return (0, *start_walks(self.key, self.ues, self.area, self.walk))


@dataclass(eq=False)
class GaussMarkovWalk:
    """A mean velocity of each UE, and a deviation from it that forgets exponentially."""

    key: np.uint64
    area: Area
    round_s: float
    law: tuple[float, float]
    _start: _Floats
    _state: tuple[int, _Floats] = field(init=False)

    def __post_init__(self) -> None:
        self._state = (0, self._start)

    def at(self, t: int) -> Motion:
        """Positions and speeds when round ``t`` begins."""
        held = self._state
        last, states = held if held[0] <= t else (0, self._start)
        states = states.copy()
        bounds = tuple(self.area)
        moved: Motion = drift(self.key, (last, t), self.round_s, bounds, self.law, states)
        self._state = (t, states)
        return moved


@dataclass(frozen=True, eq=False)
class GivenTracks:
    """Positions over time that a user brings: ``positions_m[time, ue, (x, y)]``."""

    times_s: _Floats
    positions_m: _Floats
    round_s: float

    @property
    def top_speed_m_s(self) -> float:
        """The fastest speed of a UE on any of its lines."""
        if self.times_s.size == 1:
            return 0.0
        ways = np.diff(self.positions_m, axis=0)
        speeds = np.sqrt((ways * ways).sum(axis=2)).max(axis=1) / np.diff(self.times_s)
        return float(speeds.max())

    def at(self, t: int) -> Motion:
        """Positions and speeds when round ``t`` begins, on straight lines between the times."""
        time_s = self.times_s[0] + t * self.round_s
        if time_s > self.times_s[-1]:
            raise ValueError(
                f"the tracks end after {self.times_s[-1] - self.times_s[0]:g} s, before round {t}"
            )
        if self.times_s.size == 1:
            return self.positions_m[0], np.zeros(self.positions_m.shape[1])
        after = int(np.searchsorted(self.times_s, time_s, side="right"))
        after = min(max(after, 1), self.times_s.size - 1)
        start, end = self.positions_m[after - 1], self.positions_m[after]
        lasting_s = self.times_s[after] - self.times_s[after - 1]
        share = (time_s - self.times_s[after - 1]) / lasting_s
        way = end - start
        speed = np.sqrt(way[:, 0] * way[:, 0] + way[:, 1] * way[:, 1]) / lasting_s
        return start + share * way, speed


def make_mobility(
    channel: scenario.ModelledChannel, placement: Placement, size: tuple[int, int], streams: Streams
) -> Mobility | None:
    """The mobility that a scenario describes; ``None`` if UEs stay. ``size`` is (rounds, UEs)."""
    settings, round_s = channel.mobility, channel.round_s
    if isinstance(settings, scenario.NoMobility):
        return None
    if round_s is None:
        raise ValueError("channel.round_s is missing: it says how far UEs move")
    rounds, ues = size
    if isinstance(settings, scenario.MobilityFile):
        tracks = _given(settings.path, rounds, ues, round_s, placement)
        time = getattr(channel.fading, "time", None)
        if isinstance(time, scenario.Jakes) and time.speed_m_s is None and tracks.top_speed_m_s > 0:
            require_no_alias(time, round_s, tracks.top_speed_m_s)
        return tracks
    if isinstance(settings, scenario.RandomWaypoint):
        walk = Walk(settings.slowest_m_s, settings.fastest_m_s, settings.pause_s)
        return WaypointWalk(streams.movement, placement.area, walk, round_s, ues)
    start = start_drifts(
        streams.movement,
        placement.draw(ues, streams.placement()),
        settings.mean_speed_m_s,
        settings.deviation_m_s,
    )
    memory = float(exp_each(np.array([-round_s / settings.memory_s]))[0])
    law = (memory, settings.deviation_m_s)
    return GaussMarkovWalk(streams.movement, placement.area, round_s, law, start)


def _given(path: str, rounds: int, ues: int, round_s: float, placement: Placement) -> GivenTracks:
    try:
        state = stamp(path)
    except OSError as error:
        where = Path(path).absolute()
        raise ValueError(f"{where}: the tracks cannot be read: {error.strerror}") from error
    times_s, positions_m = _read(path, *state)
    if positions_m.shape[1] != ues:
        raise ValueError(
            f"{path}: the tracks have {positions_m.shape[1]} UEs, the scenario {ues}: set "
            f"cell.ues={positions_m.shape[1]}"
        )
    lasting_s = float(times_s[-1] - times_s[0])
    if (rounds - 1) * round_s > lasting_s:
        raise ValueError(
            f"{path}: the tracks last {lasting_s:g} s, and {rounds} rounds of {round_s:g} s need "
            f"more: set run.rounds to at most {int(lasting_s / round_s) + 1}"
        )
    require_within(positions_m, placement.area.reach_m, path)
    return GivenTracks(times_s, positions_m, round_s)


@functools.lru_cache(maxsize=2)
def _read(path: str, *_: int) -> tuple[_Floats, _Floats]:
    """The tracks in a file, read once as long as it stays what it is."""
    tracks = read_tracks(Path(path))
    for array in tracks:
        array.flags.writeable = False
    return tracks
