"""The channel, block by block: from parts, or from a trace."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agewise import scenario as scenarios
from agewise.radio.fading import Fading, make_fading
from agewise.radio.fields import GaussianField
from agewise.radio.interference import Interference, make_interference
from agewise.radio.knowledge import Knowledge, PerfectKnowledge, make_knowledge
from agewise.radio.large_scale import (
    MovingPlaces,
    Places,
    Surroundings,
    draw_indoor_loss_db,
)
from agewise.radio.mobility import make_mobility
from agewise.radio.path_loss import StandardLoss, make_path_loss, make_scale
from agewise.radio.placement import make_placement
from agewise.radio.shadowing import make_shadowing
from agewise.radio.sight import Sight
from agewise.radio.traces import Size, Trace, as_block, open_trace
from agewise.random import Streams


class Block(NamedTuple):
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

    @property
    def moves(self) -> bool:
        """Whether UEs are elsewhere in other rounds."""
        ...

    def block(self, t: int) -> Block:
        """Round ``t``, whatever was asked before."""
        ...


@dataclass(frozen=True, eq=False)
class ModelledChannel:
    """A channel of parts: the large scale of a round, and fading that varies the gains in it.

    With interference, gains are SINR per unit of power.
    """

    places: Places
    fading: Fading
    subchannel_count: int
    power_budget: float
    knowledge: Knowledge = field(default_factory=PerfectKnowledge)
    interference: Interference | None = None

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.places.ue_count

    @property
    def moves(self) -> bool:
        """Whether UEs are elsewhere in other rounds."""
        return isinstance(self.places, MovingPlaces)

    def block(self, t: int) -> Block:
        """Round ``t``, whatever was drawn before."""
        large = self.places.at(t)
        seen, true = self.knowledge.seen_and_true(self.fading, t, large, self.subchannel_count)
        if self.interference is not None:
            rise = self.interference.over_noise(t, self.subchannel_count)
            same, true = seen is true, true / rise
            seen = true if same else seen / rise
        return Block(seen, true, large.positions_m)


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

    @property
    def moves(self) -> bool:
        """Whether UEs are elsewhere in other rounds."""
        return self.trace.moves

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
    surroundings = make_surroundings(channel, cell.subchannel_bandwidth_hz or 0.0, streams)
    return ModelledChannel(
        places=make_places(channel, surroundings, (scenario.run.rounds, cell.ues), streams),
        fading=make_fading(channel.fading, cell, channel.round_s, streams),
        subchannel_count=cell.subchannels,
        power_budget=surroundings.scale.power_budget,
        knowledge=make_knowledge(channel.knowledge, streams),
        interference=make_interference(channel.interference, surroundings, streams.interference),
    )


def make_surroundings(
    channel: scenarios.ModelledChannel, bandwidth_hz: float, streams: Streams
) -> Surroundings:
    """Sight, path loss, shadowing and the scale of the gains that a scenario describes."""
    loss = make_path_loss(channel.path_loss)
    return Surroundings(
        loss=loss,
        scale=make_scale(channel.link, loss, channel.placement.reach_m, bandwidth_hz),
        sight=_sight(loss, streams.sight) if isinstance(loss, StandardLoss) else None,
        shadowing=make_shadowing(channel.shadowing, loss, streams.shadowing),
    )


def _sight(loss: StandardLoss, key: np.uint64) -> Sight:
    return Sight(loss.chance, GaussianField.draw(key, 0, loss.sight_decorrelation_m))


def make_places(
    channel: scenarios.ModelledChannel,
    surroundings: Surroundings,
    size: tuple[int, int],
    streams: Streams,
) -> Places:
    """The UEs of a scenario in their surroundings; ``size`` is (rounds, UEs)."""
    placement, ues = make_placement(channel.placement), size[1]
    share = getattr(channel.path_loss, "indoor_share", 0.0)
    indoor_loss_db = draw_indoor_loss_db(ues, share, streams.indoor())
    mobility = make_mobility(channel, placement, size, streams)
    if mobility is not None:
        return MovingPlaces(mobility, surroundings, ues, indoor_loss_db)
    positions = placement.draw(ues, streams.placement())
    return surroundings.large_scale(positions, np.zeros(ues), indoor_loss_db)
