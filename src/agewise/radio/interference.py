"""Interference: what neighbouring cells add to the noise."""

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.core.fading import draw_interferers
from agewise.core.mobility import Area
from agewise.part import Part, State
from agewise.radio.cell import RunContext
from agewise.radio.large_scale import Environment
from agewise.radio.path_loss import PathLoss
from agewise.units import db_to_linear

_Floats = NDArray[np.float64]


class Interference(Part):
    """Noise rise at the access point.

    A kind of your own has `noise_rise`.
    """

    #: Whether there is any.
    is_present: ClassVar[bool] = True

    kind: str = ""

    def check(self, path_loss: PathLoss) -> None:
        """Raise ``ValueError`` if it does not go with this path loss."""

    def prepare(self, run: RunContext, environment: Environment) -> State:
        """Return the state for one run: by default what the run asks of its channel."""
        return run

    def noise_rise(self, state: State, t: int) -> _Floats:
        """Return interference and noise over noise alone, ``[subchannel]``, in round ``t``."""
        raise self.lacks("noise_rise")


class NoInterference(Interference):
    """Only noise disturbs an upload."""

    is_present: ClassVar[bool] = False

    kind: Literal["none"] = "none"


class LevelInterference(Interference):
    """Interference of one given level on all subchannels in all rounds."""

    kind: Literal["level"] = "level"
    rise_db: float = Field(
        ge=0, le=100, description="interference and noise over noise alone, in dB"
    )

    def noise_rise(self, state: State, t: int) -> _Floats:
        """Return the same rise everywhere."""
        return np.full(state.cell.subchannels, db_to_linear(self.rise_db))


class CellInterference(Interference):
    """UEs of neighbouring hexagonal cells transmit on the same subchannels, others each round.

    At most one of each cell on each subchannel: uniform in its cell, in the same environment as
    the own UEs, with Rayleigh fading.
    """

    kind: Literal["cells"] = "cells"
    inter_site_distance_m: float = Field(
        ge=1e-3, le=1e7, description="distance between neighbouring access points in metres"
    )
    tiers: Literal[1, 2] = Field(description="rings of cells: 1 has 6 of them, 2 have 18")
    load: float = Field(
        ge=0, le=1, description="chance that a neighbouring cell uses a subchannel in a round"
    )
    power_share: float = Field(
        ge=0, le=1, description="part of its power P_TX that a neighbouring UE puts on a subchannel"
    )

    def check(self, path_loss: PathLoss) -> None:
        """Raise ``ValueError`` if a UE that interferes may be further than the path loss holds."""
        reach, most_m = self.tiers + 1.0 / math.sqrt(3.0), path_loss.most_distance_m
        if self.inter_site_distance_m * reach > most_m:
            largest = most_m / reach
            raise ValueError(
                f"channel.interference.inter_site_distance_m = {self.inter_site_distance_m:g}: "
                f"must be from 0.001 to {largest:.5g} with tiers = {self.tiers}, because "
                f"{path_loss.kind} holds to {most_m:g} m; the nearest is {largest:.5g}"
            )

    def prepare(self, run: RunContext, environment: Environment) -> State:
        """Return the run, its environment and the sites of the neighbours."""
        return run, environment, self.sites_m()

    def noise_rise(self, state: State, t: int) -> _Floats:
        """Add up the powers of the UEs that transmit."""
        run, environment, sites_m = state
        count, distance_m = run.cell.subchannels, self.inter_site_distance_m
        cell = Area(0.0, distance_m / math.sqrt(3.0), distance_m / 2.0)
        positions, fading, subchannel = draw_interferers(
            run.streams.interference, t, count, sites_m, cell, self.load
        )
        rise = np.ones(count)
        if subchannel.size:
            gains, _ = environment.mean_gains(positions)
            power = self.power_share * environment.link.power_budget
            rise += np.bincount(subchannel, power * gains * fading, count)
        return rise

    def sites_m(self) -> _Floats:
        """Return the sites of the neighbours, rings of a hexagonal grid around (0, 0)."""
        distance_m, steps = self.inter_site_distance_m, range(-self.tiers, self.tiers + 1)
        sites = [
            (distance_m * (a + 0.5 * b), distance_m * math.sqrt(3.0) / 2.0 * b)
            for a in steps
            for b in steps
            if (a, b) != (0, 0) and abs(a + b) <= self.tiers
        ]
        return np.array(sites)
