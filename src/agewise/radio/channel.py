"""The channel, block by block: modelled by its parts."""

import functools
import math
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agewise.part import LARGE, Kinds, Part, State, Unloaded, given, parts_inside
from agewise.radio.cell import Cell, Link, RunContext
from agewise.radio.csi import Csi, PerfectCsi
from agewise.radio.fading import Fading
from agewise.radio.interference import Interference, NoInterference
from agewise.radio.large_scale import Environment, LargeScale, draw_depth_m
from agewise.radio.mobility import Mobility, NoMobility
from agewise.radio.path_loss import PathLoss
from agewise.radio.placement import Placement
from agewise.radio.shadowing import NoShadowing, Shadowing
from agewise.random import Streams

_Floats = NDArray[np.float64]


class Block(NamedTuple):
    """One block of the channel; gains are SNR per unit of power, ``float64[ue, subchannel]``.

    ``seen`` is the CSI that the access point schedules by and ``true`` what the uploads meet: the
    same array where CSI is perfect. ``positions_m[ue, (x, y)]`` is where the UEs are, or ``None``
    where nobody knows.
    """

    seen: _Floats
    true: _Floats
    positions_m: _Floats | None


class Channel(Protocol):
    """The channel of one run: any block in any order, reproducibly.

    `Scenario.make_channel` is the way to one.
    """

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""

    @property
    def power_budget(self) -> float:
        """P_TX, each UE's power over all subchannels, in the unit that the gains are per."""

    @property
    def moves(self) -> bool:
        """Tell whether UEs are elsewhere in other rounds."""

    def block(self, t: int) -> Block:
        """Return round ``t``, whatever was asked before."""


class ChannelModel(Part):
    """What the uploads meet.

    A kind of your own has `start`.
    """

    kind: str = ""

    @property
    def reach_m(self) -> float | None:
        """The largest distance of a UE from the access point, where that is known."""
        return None

    @property
    def is_in_watts(self) -> bool:
        """Tell whether powers are in watts, so that energy can be counted."""
        return False

    def check(self, cell: Cell) -> None:
        """Raise ``ValueError`` if its parts do not go together, or not with this cell."""

    def start(self, cell: Cell, rounds: int, streams: Streams) -> Channel:
        """Return the channel of one run."""
        raise self.lacks("start")


class ModelledChannel(ChannelModel):
    """A channel made of parts: places, path loss, fading, the scale of the gains, and more."""

    kind: Literal["model"] = "model"
    placement: Annotated[Placement, Kinds] = Field(description="where the UEs are")
    path_loss: Annotated[PathLoss, Kinds] = Field(
        description="how the mean gain falls with the distance"
    )
    fading: Annotated[Fading, Kinds] = Field(description="how gains vary around their means")
    link: Annotated[Link, Kinds] = Field(description="what turns path loss into SNR")
    mobility: Annotated[Mobility, Kinds] = Field(
        default=NoMobility(), description="how the UEs move"
    )
    shadowing: Annotated[Shadowing, Kinds] = Field(
        default=NoShadowing(), description="how mean gains vary between places"
    )
    interference: Annotated[Interference, Kinds] = Field(
        default=NoInterference(), description="what neighbouring cells add to the noise"
    )
    round_s: float | None = Field(
        default=None,
        ge=1e-6,
        le=LARGE,
        description="seconds from one round to the next; needed where UEs move or fading is "
        "correlated over time",
    )
    csi: Annotated[Csi, Kinds] = Field(
        default=PerfectCsi(), description="what the access point knows of the gains"
    )

    @property
    def reach_m(self) -> float | None:
        """The largest distance of a UE from the access point, unless code would have to say."""
        return None if isinstance(self.placement, Unloaded) else self.placement.reach_m

    @property
    def is_in_watts(self) -> bool:
        """Tell whether the link is a budget in physical units."""
        return self.link.kind == "budget"

    def check(self, cell: Cell) -> None:
        """Raise ``ValueError`` if its parts do not go together, or not with this cell."""
        if any(isinstance(part, Unloaded) for _, part in parts_inside(self)):
            return  # they are checked when the user's code is loaded
        self._check_path_loss()
        self.shadowing.check(self.path_loss)
        self.mobility.check(self.placement, self.round_s)
        self._check_fading(cell, self.mobility.top_speed_m_s)
        self.csi.check(self.fading)
        if self.is_in_watts and cell.subchannel_bandwidth_hz is None:
            raise ValueError("channel.link.kind = budget needs cell.subchannel_bandwidth_hz")

    def _check_path_loss(self) -> None:
        loss, link, reach_m = self.path_loss, self.link.kind, self.placement.reach_m
        if link == "budget" and link not in loss.links:
            raise ValueError(
                f"channel.link: a budget needs a path loss with a scale, and {loss.kind} has only "
                'a shape: set channel.path_loss to kind = "log-distance" with reference_loss_db'
            )
        if link == "edge-snr" and link not in loss.links:
            raise ValueError(
                f"channel.link: {loss.kind} gives path loss in physical units, which an SNR at the "
                'edge would override: set channel.link to kind = "budget"'
            )
        if reach_m > loss.most_distance_m:
            raise ValueError(
                f"channel.placement: UEs are up to {reach_m:g} m away, and {loss.kind} holds to "
                f"{loss.most_distance_m:g} m: make it smaller by a factor of "
                f"{reach_m / loss.most_distance_m:.4g}"
            )
        self.interference.check(loss)

    def _check_fading(self, cell: Cell, top_speed_m_s: float | None) -> None:
        knows_los = self.path_loss.los_decorrelation_m is not None
        self.fading.check(cell, (self.round_s, top_speed_m_s), knows_los=knows_los)

    def context(self, cell: Cell, rounds: int, streams: Streams) -> RunContext:
        """Return what one run asks of the parts."""
        return RunContext(cell, rounds, self.round_s, streams)

    def environment(self, run: RunContext) -> Environment:
        """Draw the propagation environment of one run."""
        edge_m = self.placement.reach_m
        return Environment.draw(run, self.path_loss, self.shadowing, self.link, edge_m)

    def start(self, cell: Cell, rounds: int, streams: Streams) -> "DrawnChannel":
        """Return the channel of one run: what is random in it follows from the streams."""
        run = self.context(cell, rounds, streams)
        environment = self.environment(run)
        walk = self.mobility.start(run, self.placement)
        if self.mobility.moves:
            self._check_fading(cell, self.mobility.top_speed_in(walk) or None)
        return DrawnChannel(
            model=self,
            run=run,
            environment=environment,
            depth_m=draw_depth_m(run, self.path_loss.o2i_share),
            walk=walk,
            fading=self.fading.prepare(run),
            csi=self.csi.prepare(run),
            interference=self.interference.prepare(run, environment),
        )


@dataclass(eq=False)
class DrawnChannel:
    """A modelled channel of one run: its parts with their states.

    With interference, gains are SINR per unit of power.
    """

    model: ModelledChannel
    run: RunContext
    environment: Environment
    depth_m: _Floats | None
    walk: State
    fading: State
    csi: State
    interference: State
    _last: tuple[int, State, LargeScale] | None = field(default=None, init=False)
    _behind: State = field(init=False)

    def __post_init__(self) -> None:
        self._behind = self.walk

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.run.cell.ues

    @property
    def subchannel_count(self) -> int:
        """N, the number of subchannels."""
        return self.run.cell.subchannels

    @property
    def power_budget(self) -> float:
        """P_TX, each UE's power over all subchannels, in the unit that the gains are per."""
        return self.model.link.power_budget

    @property
    def moves(self) -> bool:
        """Tell whether UEs are elsewhere in other rounds."""
        return self.model.mobility.moves

    def large_scale(self, t: int) -> LargeScale:
        """Return the large-scale parameters of round ``t``; those of the last one are kept."""
        last = self._last
        if last is not None and (last[0] == t or not self.moves):
            return last[2]
        state = self.walk if last is None or last[0] > t else last[1]
        positions, state = self._move(state, t)
        gains, los = self.environment.mean_gains(positions, self.depth_m)
        large = LargeScale(positions, gains, los, functools.partial(self._positions_before, t))
        self._last = (t, state, large)
        return large

    def _move(self, state: State, t: int) -> tuple[_Floats, State]:
        positions, state = self.model.mobility.move(state, t)
        return given(self.model.mobility, "move", positions, (self.ue_count, 2)), state

    def _positions_before(self, t: int, seconds: float) -> _Floats:
        """Follow the UEs back from round ``t``: straight between rounds, and before the first."""
        when = t - seconds / (self.run.round_s or math.inf)
        first = max(math.floor(when), 0)
        start, state = self._move(self.walk if self._behind[0] > first else self._behind, first)
        self._behind = state
        end, _ = self._move(state, min(first + 1, max(t, self.run.rounds - 1)))
        return start + (when - first) * (end - start)

    def block(self, t: int) -> Block:
        """Return round ``t``, whatever was drawn before."""
        model, large = self.model, self.large_scale(t)
        shape = (self.ue_count, self.subchannel_count)
        fading = (model.fading, self.fading)
        seen, true = model.csi.seen_and_true(self.csi, t, large, fading)
        same = seen is true
        true = given(model.fading, "gains", true, shape)
        seen = true if same else given(model.csi, "observe", seen, shape)
        if model.interference.is_present:
            rise = model.interference.noise_rise(self.interference, t)
            true = true / given(model.interference, "noise_rise", rise, shape[1:])
            seen = true if same else seen / rise
        return Block(seen, true, large.positions_m)
