"""Max-Weight and Whittle's index of ages (Kadota, Sinha et al. 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from agewise.checks import one_of
from agewise.policies._estimates import MEAN, chances_of_success
from agewise.scheduling import Policy, RoundView

#: Whether the channel is known before it is chosen who transmits, or only after.
_Foresight = Literal["unseen", "seen"]


@dataclass(frozen=True, kw_only=True)
class _SuccessBased(Policy):
    """A policy that asks for `chances_of_success`, unless the channel is ``seen`` beforehand."""

    state_per_ue: ClassVar[Mapping[str, float]] = MEAN
    channel: _Foresight = "unseen"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("channel", self.channel, get_args(_Foresight))


@dataclass(frozen=True, kw_only=True)
class MaxWeight(_SuccessBased):
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
    equation: ClassVar[str] = "U_k = p_k h_k (h_k + 2), h_k = T_k + 1"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the expected fall of h²."""
        h = view.ages.astype(np.float64) + 1.0
        chances = chances_of_success(view) if self.channel == "unseen" else 1.0
        return chances * h * (h + 2.0)


@dataclass(frozen=True, kw_only=True)
class Whittle(_SuccessBased):
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
    equation: ClassVar[str] = "U_k = p_k h_k (h_k + (2 − p_k) / p_k) / 2, h_k = T_k + 1"

    def utility(self, view: RoundView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the index of each age."""
        h, p = view.ages.astype(np.float64) + 1.0, chances_of_success(view)
        return _whittle_index(h, p) if self.channel == "unseen" else _whittle_index(h, p) / p


def _whittle_index(h: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The price at which a client of age ``h`` >= 1 and success chance ``p`` may as well wait.

    >>> _whittle_index(np.array([1.0, 3.0]), np.array([1.0, 0.5]))
    array([1. , 4.5])
    """
    return p * h * (h + (2.0 - p) / p) / 2.0
