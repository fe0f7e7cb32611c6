"""Round-robin: everyone in turn."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.scheduling import Policy, RoundView
from agewise.spectrum import Allocation, fill


@dataclass(frozen=True, kw_only=True)
class RoundRobin(Policy):
    """Everyone in turn: served from the front of a queue, then back to its end.

    A UE that cannot reach the rate on what is left keeps its place in the queue. New UEs, in the
    first round all of them, join at its end, the oldest ages first. With a rate threshold of 0
    this is the N-round-robin of Yang, Liu, Quek and Poor (2020). The queue alone decides, so there
    is no packing.
    """

    name: ClassVar[str] = "round-robin"
    equation: ClassVar[str] = "U_k = −(place of k in the queue)"
    #: The number that a UE drew when it last joined the queue, and the next number.
    state_per_ue: ClassVar[Mapping[str, float]] = {"ticket": -1.0}
    state_scalars: ClassVar[Mapping[str, float]] = {"next_ticket": 0.0}

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:
        """Fill the spectrum in the order of the queue."""
        ticket, following = view.state.per_ue["ticket"], view.state.scalars["next_ticket"]
        new = np.flatnonzero(ticket < 0)
        new = new[np.argsort(-view.ages[new], kind="stable")]
        ticket[new] = following + np.arange(new.size)
        queue = np.argsort(ticket)
        allocation = fill(view.uplink, queue)
        served = queue[allocation.scheduled[queue]]
        ticket[served] = following + new.size + np.arange(served.size)
        view.state.scalars["next_ticket"] = following + new.size + served.size
        return allocation
