"""Max-Weight scheduling of ages: the steepest fall of the squared ages."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.policies._estimates import SuccessBased, chances_of_success
from agewise.scheduling import RoundView


@dataclass(frozen=True, kw_only=True)
class MaxWeight(SuccessBased):
    """Steepest expected fall of the squared ages per subchannel (Kadota, Sinha et al. 2018).

    "Scheduling policies for minimizing age of information in broadcast wireless networks": of the
    clients, each with its chance p that a transmission succeeds, the one with the highest
    ``p h (h + 2)`` transmits, which is the expected fall of the Lyapunov function h². Their h
    counts from 1 in the round after a delivery, so h = age + 1. All clients weigh alike.

    Adapted: UEs need different numbers of subchannels, so they are packed by weight per
    subchannel. p is the chance that a UE is in reach and that what it sends arrives in time,
    estimated from the rounds so far. In the paper the channel is seen only after the choice; here
    a UE that is packed is sure to get through, and ``channel="seen"`` takes that into account: its
    weight is ``h (h + 2)``.
    """

    name: ClassVar[str] = "max-weight"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the expected fall of h²."""
        h = view.ages.astype(np.float64) + 1.0
        chances = chances_of_success(view) if self.channel == "unseen" else 1.0
        return chances * h * (h + 2.0)
