"""Two ways through the slots: any policy on any channel, and compiled for those that pack."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agewise.age import f_alpha
from agewise.core.traffic import NOTHING, Ledger, TrafficCell, TrafficKeys, arrive, receive
from agewise.core.traffic import serve as serve_slots
from agewise.policies import AgeBased, MaxPack, Policy, RoundView
from agewise.policies.proof import prove
from agewise.radio import CellChannel
from agewise.random import Streams
from agewise.spectrum import Allocation, InfeasibleAllocation, Uplink
from agewise.traffic.setting import Setting

#: Serves the slots from the first to before the end, and enters them in the ledger.
Serve = Callable[[int, int, Ledger], None]
#: What the ages weigh.
Weigh = Callable[[NDArray[np.float64]], NDArray[np.float64]]

#: Far below what `Uplink` accepts, and far above what an exponential number from 53 bits can be.
_LARGEST_SNR, _MOST_FADING = 1e290, 100.0


def one_by_one(setting: Setting, policy: Policy, streams: Streams) -> Serve:
    """Any policy on any channel: asked in every slot, and its answer proven."""
    memory: dict[str, NDArray[Any]] = {}

    def serve(first: int, end: int, ledger: Ledger) -> None:
        for t in range(first, end):
            arrive(streams.arrivals, t, setting.chances, ledger)
            has_update = ledger.waiting != NOTHING
            gains = setting.gains(t)
            if not has_update.all():
                gains = np.where(has_update[:, np.newaxis], gains, 0.0)
            uplink = Uplink(gains, setting.power, setting.rate_threshold)
            view = RoundView(uplink, ledger.ages.copy(), memory)
            allocation = policy.schedule(view, streams.policy(t))
            _prove(allocation, uplink, has_update, f"{policy} in slot {t}")
            receive(t, allocation.owner, ledger)

    return serve


def compiled(setting: Setting, policy: Policy, streams: Streams) -> Serve | None:
    """Age-based scheduling or MaxPack in a cell, a whole run of slots in one kernel.

    ``None`` for other policies and channels, and for a cell in which something is wrong or
    missing: going slot by slot, it is told with its place.
    """
    channel = setting.channel
    # A subclass may schedule or fade in its own way.
    if type(channel) is not CellChannel or not _is_sound(channel, setting.power):
        return None
    weigh: Weigh
    if type(policy) is AgeBased:
        weigh = functools.partial(f_alpha, alpha=policy.alpha, form=policy.form)
    elif type(policy) is MaxPack:
        weigh = np.ones_like
    else:
        return None
    return _in_one_kernel(setting, channel, weigh, policy.ties == "random", streams)


def _in_one_kernel(
    setting: Setting, channel: CellChannel, weigh: Weigh, random_ties: bool, streams: Streams
) -> Serve:
    keys = TrafficKeys(channel.streams.channel, streams.arrivals, streams.ties)
    means = np.ascontiguousarray(channel.mean_gains, dtype=np.float64)
    cell = TrafficCell(
        means, setting.chances, setting.subchannels, setting.power, setting.rate_threshold
    )
    weight_of = np.empty(0)  # by age: ages are whole numbers, and few

    def serve(first: int, end: int, ledger: Ledger) -> None:
        nonlocal weight_of
        if weight_of.size < ledger.age_counts.size:
            weight_of = weigh(np.arange(ledger.age_counts.size, dtype=np.float64))
        serve_slots((first, end), keys, cell, weight_of, random_ties, ledger)

    return serve


def _is_sound(channel: CellChannel, power: float) -> bool:
    """Whether every gain that can be drawn is one that `Uplink` would accept, and there is one."""
    means = channel.mean_gains
    if not means.size or not channel.subchannels:
        return False
    return bool(means.min() >= 0 and means.max() * power < _LARGEST_SNR / _MOST_FADING)


def _prove(
    allocation: Allocation, uplink: Uplink, has_update: NDArray[np.bool_], who_when: str
) -> None:
    prove(allocation, uplink, who_when)
    without = np.flatnonzero(allocation.scheduled & ~has_update)
    if without.size:
        raise InfeasibleAllocation(
            f"{who_when}: UE {without[0]} is scheduled but has nothing to send: a gain of 0 marks "
            "a subchannel that cannot be used"
        )
