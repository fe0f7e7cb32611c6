"""Scheduling in one call, for those who need no simulation."""

from typing import Any

from numpy.typing import ArrayLike

from agewise.policies.base import Policy, RoundView
from agewise.policies.proof import prove
from agewise.policies.registry import make_policy
from agewise.random import Streams
from agewise.spectrum import Allocation, Uplink


def schedule(
    gains: ArrayLike,
    ages: ArrayLike,
    *,
    power: float,
    rate_threshold: float,
    policy: str | Policy = "age-based",
    seed: int = 0,
    **parameters: Any,
) -> Allocation:
    """Who transmits on which subchannels with what power, for one round.

    ``gains[ue, subchannel]`` is the SNR per unit of power, ``ages[ue]`` the rounds since each
    UE's last received update, ``power`` each UE's budget (in the unit that makes gain times
    power an SNR) and ``rate_threshold`` the bits per real channel use that each scheduled UE
    must reach. ``policy`` is a name with its ``parameters`` (``alpha`` and ``ties`` for
    "age-based"), or a policy object. ``seed`` decides what the policy leaves to chance.

    >>> gains = [[9.0, 1.0, 0.5], [0.2, 8.0, 7.0], [3.0, 0.1, 6.0]]
    >>> allocation = schedule(gains, ages=[0, 4, 1], power=2.0, rate_threshold=1.5)
    >>> allocation.owner
    array([0, 1, 2])
    """
    view = RoundView(Uplink(gains, power, rate_threshold), ages)  # type: ignore[arg-type]
    chosen = make_policy(policy, **parameters)
    allocation = chosen.schedule(view, Streams(seed).policy(0))
    prove(allocation, view.uplink, f"policy {chosen}")
    return allocation
