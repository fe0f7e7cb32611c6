"""Policies with which a run goes wrong."""

import os
import signal
from dataclasses import dataclass

import numpy as np

from agewise import Allocation, Streams
from agewise.policies import MaxPack, Policy


@dataclass(frozen=True)
class InfeasibleFor(Policy):
    """MaxPack, but all power on every subchannel with one seed, in round 1."""

    name = "infeasible-for"
    seed: int

    def schedule(self, view, rng):
        if is_round(rng, self.seed, 1):
            count = view.uplink.subchannel_count
            return Allocation.of(view.uplink, np.zeros(count, int), np.ones(count))
        return MaxPack().schedule(view, rng)


@dataclass(frozen=True)
class DeadlyFor(Policy):
    """MaxPack, but the process dies with one seed, as if the system had run out of memory."""

    name = "deadly-for"
    seed: int

    def schedule(self, view, rng):
        if is_round(rng, self.seed, 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return MaxPack().schedule(view, rng)


def is_round(rng, seed, t):
    """A policy is told neither the seed nor the round, but its stream of chance gives them away."""
    return rng.bit_generator.state == Streams(seed).policy(t).bit_generator.state
