"""The channel, block by block: from parts, or from a trace."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario as scenarios
from agewise.radio.fading import Fading, make_fading
from agewise.radio.knowledge import Knowledge, PerfectKnowledge, make_knowledge
from agewise.radio.large_scale import LargeScale, Places
from agewise.radio.path_loss import make_path_loss, make_scale
from agewise.radio.placement import make_placement
from agewise.radio.trace import read_trace
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
    """A channel of parts: the large scale of a round, and fading that varies the gains in it."""

    places: Places
    fading: Fading
    subchannel_count: int
    power_budget: float
    knowledge: Knowledge = field(default_factory=PerfectKnowledge)

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.places.at(0).mean_gains.size

    def block(self, t: int) -> Block:
        """Round ``t``, whatever was drawn before."""
        large = self.places.at(t)
        seen, true = self.knowledge.seen_and_true(self.fading, t, large, self.subchannel_count)
        return Block(seen, true, large.positions_m)


@dataclass(frozen=True, eq=False)
class RecordedChannel:
    """Gains that were measured or recorded: ``gains[round, ue, subchannel]``."""

    gains: NDArray[np.float64]
    power_budget: float

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return int(self.gains.shape[1])

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        return int(self.gains.shape[2])

    def block(self, t: int) -> Block:
        """Round ``t`` of the trace; nobody knows where the UEs were."""
        if not 0 <= t < len(self.gains):
            raise ValueError(f"the trace has {len(self.gains)} rounds: there is no round {t}")
        return Block(self.gains[t], self.gains[t], None)


def make_channel(scenario: scenarios.Scenario, streams: Streams) -> Channel:
    """The channel of one run of a scenario: what is random in it follows from the streams."""
    cell, channel = scenario.cell, scenario.channel
    if isinstance(channel, scenarios.TraceChannel):
        wanted = (scenario.run.rounds, cell.ues, cell.subchannels)
        return RecordedChannel(read_trace(channel.path, wanted), channel.power_budget)
    radius_m = channel.placement.radius_m
    scale = make_scale(channel.link, radius_m, cell.subchannel_bandwidth_hz or 0.0)
    positions = make_placement(channel.placement).draw(cell.ues, streams.placement())
    distance = np.sqrt(positions[:, 0] * positions[:, 0] + positions[:, 1] * positions[:, 1])
    means = scale.snr_per_power(make_path_loss(channel.path_loss), distance)
    return ModelledChannel(
        places=LargeScale.still(positions, means),
        fading=make_fading(channel.fading, cell, channel.round_s, streams),
        subchannel_count=cell.subchannels,
        power_budget=scale.power_budget,
        knowledge=make_knowledge(channel.knowledge, streams),
    )
