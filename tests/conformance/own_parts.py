"""Parts of a channel as a user writes them: one of each family."""

from typing import ClassVar

import numpy as np

from agewise.radio import (
    Block,
    ChannelModel,
    Csi,
    DelayProfile,
    Fading,
    Frequency,
    Interference,
    Mobility,
    PathLoss,
    Placement,
    Shadowing,
)


class Line(Placement):
    """UEs along a road."""

    length_m: float = 150.0

    @property
    def reach_m(self):
        return self.length_m / 2

    def positions(self, run):
        x = run.streams.own("line").uniform(-self.reach_m, self.reach_m, run.cell.ues)
        return np.column_stack([x, np.zeros(run.cell.ues)])


class Shuttle(Mobility):
    """UEs that circle the access point."""

    turns_per_s: float = 0.01

    def move(self, state, t):
        _, start, run = state
        angle = 2 * np.pi * self.turns_per_s * run.round_s * t
        cos, sin = np.cos(angle), np.sin(angle)
        return start @ np.array([[cos, sin], [-sin, cos]]), (t, start, run)


class DualSlope(PathLoss):
    """20 dB a decade to a distance, 40 beyond."""

    turn_m: float = 30.0

    def loss_db(self, distance_m, line_of_sight):
        distance = np.maximum(distance_m, 1.0)
        beyond = np.maximum(np.log10(distance / self.turn_m), 0.0)
        return 40.0 + 20.0 * np.log10(distance) + 20.0 * beyond


class Clearing(PathLoss):
    """Line of sight in the middle of a wood."""

    los_decorrelation_m: ClassVar[float] = 10.0

    def los_probability(self, distance_m):
        return np.exp(-distance_m / 50.0)

    def loss_db(self, distance_m, line_of_sight):
        distance = np.maximum(distance_m, 1.0)
        return 40.0 + np.where(line_of_sight, 20.0, 35.0) * np.log10(distance)


class Hill(Shadowing):
    """10 dB behind a hill in the east, and some noise that is drawn once for a run."""

    def prepare(self, run, path_loss):
        return run.streams.own("hill").normal(size=2)

    def loss_db(self, state, positions_m, condition):
        return np.where(positions_m[:, 0] > 20.0, 10.0 + state[0], state[1])


class LogNormalFading(Fading):
    """Normal decibels around the mean gain."""

    sigma_db: float = 4.0

    def gains(self, run, t, large):
        shape = (run.cell.ues, run.cell.subchannels)
        level_db = run.streams.own("fading", t).normal(0.0, self.sigma_db, shape)
        return large.mean_gains[:, np.newaxis] * 10 ** (level_db / 10)


class TwoTaps(Frequency):
    """An echo of half the power after a microsecond."""

    def delay_profile(self):
        return DelayProfile(np.array([0.0, 1e-6]), np.array([2.0, 1.0]) / 3.0)


class Noisy(Csi):
    """Gains that are known to a factor."""

    def observe(self, run, t, true, large):
        return true * run.streams.own("csi", t).uniform(0.5, 1.0, true.shape)


class Jammer(Interference):
    """Somebody who jams one subchannel, another in every round."""

    def noise_rise(self, run, t):
        rise = np.ones(run.cell.subchannels)
        rise[t % run.cell.subchannels] = 10.0
        return rise


class Coin(ChannelModel):
    """Links that are there or not."""

    def start(self, cell, rounds, streams):
        return _Coin(cell, streams)


class _Coin:
    power_budget, moves = 1.0, False

    def __init__(self, cell, streams):
        self.ue_count, self.subchannel_count = cell.ues, cell.subchannels
        self.streams = streams

    def block(self, t):
        shape = (self.ue_count, self.subchannel_count)
        gains = 1e3 * self.streams.own("coin", t).integers(0, 2, shape).astype(float)
        return Block(gains, gains, None)
