"""Where traffic is scheduled: the channel, what a UE may spend and the rate it must reach."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.radio import CellChannel, Channel, power_budget
from agewise.random import Streams
from agewise.spectrum import Uplink

if TYPE_CHECKING:  # pydantic takes a while to import, and not every user needs scenarios
    from agewise.scenario import Scenario


@dataclass(frozen=True, eq=False)
class Setting:
    """A channel with its size, each UE's power budget, the rate and ``chances[ue]`` of arrival."""

    channel: Channel
    power: float
    rate_threshold: float
    ues: int
    subchannels: int
    chances: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        channel: "Channel | Scenario",
        power: float | None,
        rate_threshold: float | None,
        arrivals: ArrayLike | None,
        streams: Streams,
    ) -> "Setting":
        """From what the caller gave; ``ValueError`` says what is missing or wrong."""
        if hasattr(channel, "gains"):
            if power is None or rate_threshold is None:
                raise ValueError("beside a channel, power and rate_threshold must be given")
            given = cast("Channel", channel)
        else:
            if power is not None or rate_threshold is not None:
                raise ValueError(
                    "power and rate_threshold come from the scenario: change them there "
                    "(scenario.with_), or give a channel instead of a scenario"
                )
            if channel.timing is not None:
                raise ValueError(
                    "traffic has no local learning that could miss a deadline: take the section "
                    "timing out with scenario.with_(timing=None)"
                )
            given = CellChannel.of(channel.cell, channel.channel, streams)
            power = power_budget(channel.channel)
            rate_threshold = channel.channel.threshold_bits
        first = Uplink(given.gains(0), power, rate_threshold)
        return cls(
            given,
            first.power_budget,
            first.rate_threshold,
            first.ue_count,
            first.subchannel_count,
            _chances(arrivals, first.ue_count),
        )

    def gains(self, t: int) -> NDArray[np.float64]:
        """``float64[ue, subchannel]`` of slot ``t``; ``ValueError`` if the size has changed."""
        gains = np.asarray(self.channel.gains(t))
        if gains.shape != (self.ues, self.subchannels):
            raise ValueError(
                f"the channel has gains of shape {gains.shape} in slot {t}, but of shape "
                f"{(self.ues, self.subchannels)} in slot 0: UEs and subchannels must stay"
            )
        return gains


def _chances(arrivals: ArrayLike | None, ues: int) -> NDArray[np.float64]:
    if arrivals is None:
        return np.ones(ues)
    given = np.asarray(arrivals)
    if given.dtype.kind not in "iuf":
        raise ValueError(f"arrivals must be probabilities, not {arrivals!r}")
    if given.shape not in ((), (ues,)):
        raise ValueError(
            f"arrivals must be one number, or one for each of the {ues} UEs, not an array of "
            f"shape {given.shape}"
        )
    chances = np.array(np.broadcast_to(given, ues), dtype=np.float64)
    bad = np.flatnonzero(~((chances > 0) & (chances <= 1)))
    if bad.size:
        raise ValueError(
            f"arrivals must be above 0 and at most 1: that of UE {bad[0]} is {chances[bad[0]]:g}; "
            "leave a UE that never sends out of the channel"
        )
    return chances
