"""The channel, block by block: from parts, or from a trace."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario as scenarios
from agewise.radio.fading import Fading, make_fading
from agewise.radio.path_loss import make_path_loss, make_scale
from agewise.radio.placement import make_placement
from agewise.radio.traces import Size, Trace, as_block, open_trace
from agewise.random import Streams


@dataclass(frozen=True, eq=False)
class Block:
    """One block of the channel; gains are SNR per unit of power, ``float64[ue, subchannel]``.

    ``seen`` is what the access point schedules by and ``true`` what the uploads meet: the same
    array where the channel is known perfectly. ``positions_m[ue, (x, y)]`` is where the UEs are,
    or ``None`` where nobody knows.
    """

    seen: NDArray[np.float64]
    true: NDArray[np.float64]
    positions_m: NDArray[np.float64] | None


class Channel(Protocol):
    """Any block in any order, reproducibly. `make_channel` is the way to one."""

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        ...

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        ...

    @property
    def power_budget(self) -> float:
        """P_TX, each UE's power over all subchannels, in the unit that the gains are per."""
        ...

    def block(self, t: int) -> Block:
        """Round ``t``, whatever was asked before."""
        ...


@dataclass(frozen=True, eq=False)
class ModelledChannel:
    """UEs at fixed places; ``mean_gains[ue]`` follow from path loss, fading varies them."""

    positions_m: NDArray[np.float64]
    mean_gains: NDArray[np.float64]
    fading: Fading
    subchannel_count: int
    power_budget: float

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.mean_gains.size

    def block(self, t: int) -> Block:
        """Round ``t``, whatever was drawn before."""
        gains = self.fading.gains(t, self.mean_gains, self.subchannel_count)
        return Block(gains, gains, self.positions_m)


@dataclass(frozen=True, eq=False)
class RecordedChannel:
    """A channel that was measured or recorded; one block of it at a time is in memory."""

    trace: Trace
    power_budget: float

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return int(self.trace.gains.shape[1])

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        return int(self.trace.gains.shape[2])

    def block(self, t: int) -> Block:
        """Round ``t`` of the trace."""
        rounds = self.trace.gains.shape[0]
        if not 0 <= t < rounds:
            raise ValueError(f"the trace has {rounds} rounds: there is no round {t}")
        true, seen = as_block(self.trace.gains[t]), self.trace.seen
        return Block(true if seen is None else as_block(seen[t]), true, self.trace.positions_at(t))


def make_channel(scenario: scenarios.Scenario, streams: Streams) -> Channel:
    """The channel of one run of a scenario: what is random in it follows from the streams."""
    cell, channel = scenario.cell, scenario.channel
    if isinstance(channel, scenarios.TraceChannel):
        size = Size(scenario.run.rounds, cell.ues, cell.subchannels, cell.subchannel_bandwidth_hz)
        trace = open_trace(channel, size, streams)
        return RecordedChannel(trace, channel.power_budget or trace.power_budget or 1.0)
    radius_m = channel.placement.radius_m
    scale = make_scale(channel.link, radius_m, cell.subchannel_bandwidth_hz or 0.0)
    positions = make_placement(channel.placement).draw(cell.ues, streams.placement())
    distance = np.sqrt(positions[:, 0] * positions[:, 0] + positions[:, 1] * positions[:, 1])
    return ModelledChannel(
        positions_m=positions,
        mean_gains=scale.snr_per_power(make_path_loss(channel.path_loss), distance),
        fading=make_fading(channel.fading, streams),
        subchannel_count=cell.subchannels,
        power_budget=scale.power_budget,
    )
