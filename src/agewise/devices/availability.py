"""In which rounds UEs are there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.random import uniforms
from agewise.devices.computing import Workload
from agewise.part import LARGE, Part, RelativeTo, State
from agewise.random import Streams
from agewise.readers import read_numbers

_Numbers = NDArray[np.float64]
_Mask = NDArray[np.bool_]
_Sojourn = Annotated[float, Field(ge=1, le=LARGE)]


class Availability(Part):
    """In which rounds a UE is there; it is not eligible in others, and its age goes on.

    A kind of your own has ``present``, and ``prepare`` if it needs anything for that.
    """

    kind: str = ""

    def prepare(self, work: Workload) -> State:
        """Return the state for one run: by default what the run asks of its UEs."""
        return work

    def present(self, state: State, t: int) -> _Mask:
        """Tell who is there in round ``t``: ``bool[ue]``."""
        raise self.lacks("present")


class AlwaysAvailable(Availability):
    """A UE is there in every round."""

    kind: Literal["always"] = "always"

    def prepare(self, work: Workload) -> State:
        """Say once that everybody is there."""
        return np.ones(work.ues, np.bool_)

    def present(self, state: State, t: int) -> _Mask:
        """Say it again."""
        everybody: _Mask = state
        return everybody


class MarkovAvailability(Availability):
    """A UE comes and goes by a two-state Markov chain, in its stationary law from the start on."""

    kind: Literal["markov"] = "markov"
    mean_on_rounds: _Sojourn = Field(description="mean number of rounds for which it stays")
    mean_off_rounds: _Sojourn = Field(description="mean number of rounds for which it is away")

    def prepare(self, work: Workload) -> State:
        """Begin the chains."""
        return Chains(np.full(work.ues, self.mean_on_rounds), self.mean_off_rounds, work.streams)

    def present(self, state: State, t: int) -> _Mask:
        """Look at the chains."""
        found: _Mask = state.present(t)
        return found


@dataclass(eq=False)
class Chains:
    """A two-state Markov chain of each UE, and where they are after round ``t``."""

    mean_on: _Numbers
    mean_off: float | _Numbers
    streams: Streams
    t: int = -1
    on: _Mask | None = None

    def present(self, t: int) -> _Mask:
        """Step to round ``t``, from the start where that has gone by: a function of seed and t."""
        if t < self.t:
            self.t, self.on = -1, None
        while self.on is None or self.t < t:
            self.t += 1
            chance = self.mean_on / (self.mean_on + self.mean_off)
            if self.on is not None:
                chance = np.where(self.on, 1.0 - 1.0 / self.mean_on, 1.0 / self.mean_off)
            self.on = uniforms(self.streams.availability, self.t, chance.size) < chance
        return self.on


class AvailabilityFile(Availability):
    """Who is there when, from a file: ``availability[round, ue]`` of an NPZ, or a CSV; 1 or 0."""

    kind: Literal["file"] = "file"
    path: str = Field(description="the file; a CSV has a row per round and a column per UE")
    relative_to: RelativeTo = "working-folder"
    repeat: bool = Field(description="whether a run that is longer begins again with the first row")

    def prepare(self, work: Workload) -> State:
        """Read the file."""
        table = read_numbers(self.path, "availability")
        if table.ndim != 2 or table.shape[1] != work.ues:
            raise ValueError(
                f"{self.path}: availability must be [round, ue] for {work.ues} UEs, not of shape "
                f"{table.shape}: give a column for each UE, or set cell.ues"
            )
        wrong = (table != 0.0) & (table != 1.0)
        if wrong.any():
            row, ue = np.argwhere(wrong)[0]
            raise ValueError(
                f"{self.path}: availability of UE {ue} in round {row} is {table[row, ue]:g}: must "
                "be 1 or 0"
            )
        if len(table) < work.rounds and not self.repeat:
            raise ValueError(
                f"{self.path}: availability of {len(table)} rounds for run.rounds = {work.rounds}: "
                f"set repeat = true, or run.rounds to {len(table)}"
            )
        absent = np.flatnonzero(~table[: work.rounds].any(axis=0))
        if absent.size:
            raise ValueError(
                f"{self.path}: UE {absent[0]} is there in no round of the run, so it can never "
                "upload: give it a 1, or leave it out of the cell"
            )
        return table != 0.0

    def present(self, state: State, t: int) -> _Mask:
        """Look up the round."""
        found: _Mask = state[t % len(state)]
        return found

    def files(self) -> dict[str, Path]:
        """Name the file."""
        return {f"availability:{self.path}": Path(self.path)}
