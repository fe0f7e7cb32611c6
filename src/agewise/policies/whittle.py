"""Whittle's index of ages."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from agewise.policies._estimates import SuccessBased, chances_of_success
from agewise.scheduling import RoundView


@dataclass(frozen=True, kw_only=True)
class Whittle(SuccessBased):
    """Highest Whittle index of the age per subchannel needed (Kadota, Sinha et al. 2018).

    "Scheduling policies for minimizing age of information in broadcast wireless networks": the
    index is the price of a transmission at which a client that pays h per round and succeeds with
    chance p may as well wait, ``C(h) = p h (h + (2 - p) / p) / 2``. Their h counts from 1 in the
    round after a delivery, so h = age + 1. All clients weigh alike.

    Adapted: UEs need different numbers of subchannels, so they are packed by index per subchannel.
    p is the chance that a UE is in reach and that what it sends arrives in time, estimated from
    the rounds so far. In the paper the channel is seen only after the choice, and the price is
    paid for failures too; here a UE that is packed is sure to get through. ``channel="seen"`` is
    the index of that problem, worked out in the same way with the price paid once per delivery:
    ``h (h + (2 - p) / p) / 2``. It prefers UEs that are seldom in reach where the paper's puts
    them off.
    """

    name: ClassVar[str] = "whittle"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the index of each age."""
        h, p = view.ages.astype(np.float64) + 1.0, chances_of_success(view)
        return whittle_index(h, p) if self.channel == "unseen" else whittle_index(h, p) / p


def whittle_index(h: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The price at which a client of age ``h`` >= 1 and success chance ``p`` may as well wait.

    >>> whittle_index(np.array([1.0, 3.0]), np.array([1.0, 0.5]))
    array([1. , 4.5])
    """
    return p * h * (h + (2.0 - p) / p) / 2.0
