"""Round-robin: everyone in turn."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agewise.policies.base import Policy, RoundView
from agewise.spectrum import Allocation, fill


@dataclass(frozen=True)
class RoundRobin(Policy):
    """Everyone in turn: served from the front of a queue, then back to its end.

    A UE that cannot reach the rate on what is left keeps its place in the queue. Without a
    queue in the memory (the first round, or a single call) the oldest ages come first. With a
    rate threshold of 0 this is the N-round-robin of Yang, Liu, Quek and Poor (2020).
    """

    name: ClassVar[str] = "round-robin"

    def schedule(self, view: RoundView, rng: np.random.Generator) -> Allocation:  # noqa: ARG002
        """Fill the spectrum in the order of the queue."""
        queue = view.memory.get("queue")
        if queue is None or queue.size != view.ue_count:
            queue = np.argsort(-view.ages, kind="stable")
        allocation = fill(view.uplink, queue)
        served = allocation.scheduled[queue]
        view.memory["queue"] = np.concatenate((queue[~served], queue[served]))
        return allocation
