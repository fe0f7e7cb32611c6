"""Mobility: how the UEs move, any time in any order, whatever was asked before.

A walk is brought on from the last round that was asked, or from its start if an earlier one is
asked; both ways go through the same legs or steps, to the bit. States are replaced, never changed,
so that threads may ask one walk.
"""

import functools
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from agewise.core.elementary import exp_each
from agewise.core.mobility import Walk, drift, go_on, start_drifts, start_walks
from agewise.part import LARGE, Part, RelativeTo, State, given
from agewise.radio._files import read_tracks, stamp_of
from agewise.radio.cell import RunContext
from agewise.radio.placement import Placement, require_within

_Floats = NDArray[np.float64]
#: A UE that would cross the cell more often in a round is a mistake in the units.
_MOST_CROSSINGS = 1000.0
#: Straight ways around the middle of a thinner ring would hardly be found.
_THINNEST = 0.99


class Mobility(Part):
    """Movement of the UEs from round to round.

    A kind of your own has `move`, and perhaps `top_speed_m_s`. A state is a tuple whose first
    entry is the round that it stands at.
    """

    #: Whether UEs are elsewhere in other rounds.
    moves: ClassVar[bool] = True

    kind: str = ""

    @property
    def top_speed_m_s(self) -> float | None:
        """A speed that UEs hardly exceed; ``None`` where that is not known beforehand."""
        return None

    def check(self, placement: Placement, round_s: float | None) -> None:
        """Raise ``ValueError`` if UEs cannot move so in rounds of this length."""
        if round_s is None:
            raise ValueError(
                f"channel.round_s is missing: with mobility.kind = {self.kind} it says how far UEs "
                "move from round to round"
            )
        fastest = self.top_speed_m_s
        if fastest is None:
            return
        most_s = _MOST_CROSSINGS * placement.reach_m / max(fastest, 1e-3)
        if round_s > most_s:
            raise ValueError(
                f"channel.round_s = {round_s:g}: must be from 1e-06 to {most_s:g} at "
                f"{fastest:g} m/s, or UEs cross the cell {_MOST_CROSSINGS:g} times in a round"
            )

    def start(self, run: RunContext, placement: Placement) -> State:
        """Return the state at round 0: by default (0, where the UEs are placed, the run)."""
        return 0, _places(run, placement), run

    def move(self, state: State, t: int) -> tuple[_Floats, State]:
        """Return ``positions_m[ue, (x, y)]`` when round ``t`` begins, and the state then.

        The round is not before that of the state.
        """
        raise self.lacks("move")

    def top_speed_in(self, state: State) -> float | None:
        """Return the highest speed of one run, where it is known."""
        return self.top_speed_m_s


class NoMobility(Mobility):
    """UEs stay where they are."""

    moves: ClassVar[bool] = False

    kind: Literal["none"] = "none"

    @property
    def top_speed_m_s(self) -> float:
        """0 m/s."""
        return 0.0

    def check(self, placement: Placement, round_s: float | None) -> None:
        """Accept every placement."""

    def move(self, state: State, t: int) -> tuple[_Floats, State]:
        """Return the places at the start."""
        return state[1], state


class RandomWaypoint(Mobility):
    """Each UE goes straight to a random point of the area, pauses, and goes on to the next.

    Started in its steady state, in which UEs are more often in the middle than at the edge.
    """

    kind: Literal["random-waypoint"] = "random-waypoint"
    slowest_m_s: float = Field(ge=1e-3, le=1000, description="least speed of a leg in m/s")
    fastest_m_s: float = Field(ge=1e-3, le=1000, description="largest speed of a leg in m/s")
    pause_s: float = Field(ge=0, le=LARGE, description="seconds of rest before each leg")

    @property
    def top_speed_m_s(self) -> float:
        """The largest speed of a leg."""
        return self.fastest_m_s

    @model_validator(mode="after")
    def _has_speeds(self) -> Self:
        if self.slowest_m_s > self.fastest_m_s:
            raise ValueError(
                f"slowest_m_s = {self.slowest_m_s:g}: must be from 0.001 to "
                f"fastest_m_s = {self.fastest_m_s:g}; the nearest is {self.fastest_m_s:g}"
            )
        return self

    def check(self, placement: Placement, round_s: float | None) -> None:
        """Raise ``ValueError`` also if there is no room to walk around the access point."""
        super().check(placement, round_s)
        least_m, most_m = placement.area.least_m, _THINNEST * placement.reach_m
        if least_m > most_m:
            raise ValueError(
                f"channel.placement.least_distance_m = {least_m:g}: must be from 0 to {most_m:g} "
                "with mobility.kind = random-waypoint, which needs room to walk around the access "
                "point"
            )

    def start(self, run: RunContext, placement: Placement) -> State:
        """Draw the legs that are under way; placements other than their area are not known."""
        walk = Walk(self.slowest_m_s, self.fastest_m_s, self.pause_s)
        legs, counts = start_walks(run.streams.movement, run.cell.ues, placement.area, walk)
        return 0, legs, counts, (run.streams.movement, run.round_s, tuple(placement.area))

    def move(self, state: State, t: int) -> tuple[_Floats, State]:
        """Follow the legs, straight from point to point."""
        _, legs, counts, run = state
        key, round_s, area = run
        legs, counts = legs.copy(), counts.copy()
        walk = (self.slowest_m_s, self.fastest_m_s, self.pause_s)
        positions_m = go_on(key, t * round_s, area, walk, legs, counts)
        return positions_m, (t, legs, counts, run)


class GaussMarkov(Mobility):
    """Each UE drifts with a mean velocity of its own and a correlated deviation from it.

    Ways are mirrored at the edge of the area, and mean velocities with them, so that UEs that are
    uniform in it stay so (Liang and Haas 1999).
    """

    kind: Literal["gauss-markov"] = "gauss-markov"
    mean_speed_m_s: float = Field(
        ge=0, le=1000, description="length of a UE's mean velocity in m/s; its direction is random"
    )
    deviation_m_s: float = Field(
        ge=0, le=1000, description="standard deviation from it along each axis in m/s"
    )
    memory_s: float = Field(
        ge=1e-6, le=LARGE, description="seconds in which its correlation falls to 1/e"
    )

    @property
    def top_speed_m_s(self) -> float:
        """The mean speed and four deviations."""
        return self.mean_speed_m_s + 4.0 * self.deviation_m_s

    def start(self, run: RunContext, placement: Placement) -> State:
        """Draw velocities in their steady state, at the places of the placement."""
        key, round_s = run.streams.movement, run.round_s or 0.0
        drifts = start_drifts(key, _places(run, placement), self.mean_speed_m_s, self.deviation_m_s)
        kept = float(exp_each(np.array([-round_s / self.memory_s]))[0])
        return 0, drifts, (key, round_s, tuple(placement.area), (kept, self.deviation_m_s))

    def move(self, state: State, t: int) -> tuple[_Floats, State]:
        """Follow the steps from the state's round to this one."""
        last, drifts, run = state
        key, round_s, area, law = run
        drifts = drifts.copy()
        positions_m = drift(key, (last, t), round_s, area, law, drifts)
        return positions_m, (t, drifts, run)


class MobilityFile(Mobility):
    """Positions over time from a file; straight lines between its times."""

    kind: Literal["file"] = "file"
    path: str = Field(
        description="an .npz with times_s[time] and positions_m[time, ue, (x, y)], or a .csv with "
        "rows time in s, UE from 0, x and y in m"
    )
    relative_to: RelativeTo = "working-folder"

    def files(self) -> dict[str, Path]:
        """Name the file."""
        return {f"tracks:{self.path}": Path(self.path)}

    def start(self, run: RunContext, placement: Placement) -> State:
        """Read the tracks; ``ValueError`` unless they are of all UEs and last for the run."""
        path, ues, round_s = self.path, run.cell.ues, run.round_s or 0.0
        times_s, positions_m = _read(path, *stamp_of(path, "tracks"))
        if positions_m.shape[1] != ues:
            raise ValueError(
                f"{path}: the tracks have {positions_m.shape[1]} UEs, the scenario {ues}: set "
                f"cell.ues={positions_m.shape[1]}"
            )
        lasting_s = float(times_s[-1] - times_s[0])
        if (run.rounds - 1) * round_s > lasting_s:
            raise ValueError(
                f"{path}: the tracks last {lasting_s:g} s, and {run.rounds} rounds of {round_s:g} "
                f"s need more: set run.rounds to at most {int(lasting_s / round_s) + 1}"
            )
        require_within(positions_m, placement.reach_m, path)
        return 0, times_s, positions_m, round_s

    def top_speed_in(self, state: State) -> float:
        """Return the fastest speed of a UE on any of its lines."""
        _, times_s, positions_m, _ = state
        if times_s.size == 1:
            return 0.0
        ways = np.diff(positions_m, axis=0)
        speeds = np.sqrt((ways * ways).sum(axis=2)).max(axis=1) / np.diff(times_s)
        return float(speeds.max())

    def move(self, state: State, t: int) -> tuple[_Floats, State]:
        """Follow straight lines between the times of the file."""
        _, times_s, positions_m, round_s = state
        time_s = times_s[0] + t * round_s
        if time_s > times_s[-1]:
            raise ValueError(
                f"the tracks end after {times_s[-1] - times_s[0]:g} s, before round {t}"
            )
        if times_s.size == 1:
            return positions_m[0], state
        after = int(np.searchsorted(times_s, time_s, side="right"))
        after = min(max(after, 1), times_s.size - 1)
        start, end = positions_m[after - 1], positions_m[after]
        share = (time_s - times_s[after - 1]) / (times_s[after] - times_s[after - 1])
        return start + share * (end - start), state


def _places(run: RunContext, placement: Placement) -> _Floats:
    return given(placement, "positions", placement.positions(run), (run.cell.ues, 2))


@functools.lru_cache(maxsize=2)
def _read(path: str, *_: int) -> tuple[_Floats, _Floats]:
    """Read the tracks in a file, once as long as it stays what it is."""
    tracks = read_tracks(Path(path))
    for array in tracks:
        array.flags.writeable = False
    return tracks
