"""Scheduling without learning, slot after slot."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.age import f_alpha
from agewise.checks import whole_number
from agewise.core import traffic as kernels
from agewise.core.traffic import NOTHING, Ledger, TrafficCell, TrafficKeys
from agewise.memory import require_memory
from agewise.policies import AgeBased, MaxPack, make_policy
from agewise.radio import Channel, DrawnChannel, Rayleigh
from agewise.random import Streams
from agewise.scenario import Scenario, require_scenario
from agewise.scheduling import AccessPoint, Policy
from agewise.spectrum import InfeasibleAllocation, Uplink
from agewise.traffic.result import Traffic

#: A compiled run hears neither Ctrl-C nor anything else until it comes back: it goes for at most
#: these slots and gains at a time, which take a fraction of a second.
_CHUNK_SLOTS, _CHUNK_GAINS = 10_000, 20_000_000
#: Far below what `Uplink` accepts, and far above what an exponential number from 53 bits can be.
_LARGEST_SNR, _MOST_FADING = 1e290, 100.0

#: Serves the slots from the first to before the end, and enters them in the ledger.
Serve = Callable[[int, int, Ledger], None]
#: What the ages weigh.
Weigh = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class _Setting:
    """A channel, the rate that an upload must reach, and ``chances[ue]`` of an arrival.

    UEs are scheduled for a rate that is higher by the ``margin``.
    """

    channel: Channel
    rate_threshold: float
    chances: NDArray[np.float64]
    margin: float = 0.0


def schedule_traffic(
    channel: Channel | Scenario,
    policy: Policy | str = "age-based",
    rounds: int = 100_000,
    *,
    arrivals: ArrayLike | None = None,
    rate_threshold: float | None = None,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> Traffic:
    """Schedule ``rounds`` slots one after the other, with nothing but ages to keep.

    ``channel`` is a scenario, whose channel is made from the seed as `simulate` does and which
    brings the threshold, or any channel, beside which ``rate_threshold`` has to be given.
    ``policy`` is a name or an object.

    ``arrivals`` is the probability that a UE generates an update in a slot, one number or one
    per UE, above 0; ``None`` is always, as in the paper. A UE without an undelivered update is
    not scheduled (the policy sees gains of 0). Only its newest one counts, and on reception the
    age becomes the time since it was generated.

    Fading and arrivals follow from the seed alone, so policies meet the same. "age-based" and
    "max-pack" under Rayleigh fading run compiled, at the paper's size more than 50,000 slots a
    second; their random ties are then drawn from a stream of their own, not from the one of
    `simulate`. ``progress`` is called now and then with the number of slots done.

    >>> from agewise import Scenario
    >>> schedule_traffic(Scenario.preset("paper"), "round-robin", 1000)
    <Traffic round-robin, 1,000 slots: mean age 4.118, 10.843 updates per slot, fairness 1.000>
    """
    rounds = whole_number("rounds", rounds, least=1)
    chosen, streams = make_policy(policy), Streams(seed)
    if chosen.reads:
        raise ValueError(
            f"policy {chosen} reads {', '.join(sorted(chosen.reads))}, which only learning "
            "gives: compare it by simulate, not by traffic"
        )
    if isinstance(channel, Scenario):
        cell = channel.cell
        what = f"gains of cell.ues = {cell.ues:,} on cell.subchannels = {cell.subchannels:,}"
        require_memory(8.0 * cell.ues * (cell.subchannels + 8), what)
    elif isinstance(channel, str):
        require_scenario(channel)
    setting = _setting(channel, rate_threshold, arrivals, rounds, streams)
    ues, subchannels = setting.channel.ue_count, setting.channel.subchannel_count
    serve = _compiled(setting, chosen, streams) or _slot_by_slot(setting, chosen, streams)
    ledger = Ledger.opened(ues)
    chunk = min(_CHUNK_SLOTS, _CHUNK_GAINS // max(1, ues * subchannels) + 1)
    for first in range(0, rounds, chunk):
        end = min(first + chunk, rounds)
        ledger = ledger.with_room_for(end - first)
        serve(first, end, ledger)
        if progress is not None:
            progress(end)
    return Traffic.of(
        ledger, str(chosen), streams.seed, rounds, subchannels, setting.rate_threshold
    )


def _slot_by_slot(setting: _Setting, policy: Policy, streams: Streams) -> Serve:
    """Any policy on any channel: asked in every slot, and its answer proven."""
    channel = setting.channel
    access_point = AccessPoint(policy, channel.ue_count, streams, margin=setting.margin)

    def serve(first: int, end: int, ledger: Ledger) -> None:
        for t in range(first, end):
            kernels.arrive(streams.arrivals, t, setting.chances, ledger)
            has_update = ledger.waiting != NOTHING
            block = channel.block(t)
            gains = _checked(block.seen, channel, t)
            if not has_update.all():
                gains = np.where(has_update[:, np.newaxis], gains, 0.0)
            uplink = Uplink(gains, channel.power_budget, setting.rate_threshold)
            allocation = access_point.plan(uplink)
            scheduled, owner = allocation.scheduled, allocation.owner
            _require_updates(np.flatnonzero(scheduled), has_update, f"{policy} in slot {t}")
            if block.true is not block.seen:
                arrived = allocation.meeting(block.true).reaches(setting.rate_threshold)
                owner = np.where((owner >= 0) & arrived[owner], owner, -1)
                _count_lost(allocation.owner, owner, ledger)
                scheduled = scheduled & arrived
            delivered = np.flatnonzero(scheduled)
            access_point.receive(delivered, update_ages=t - ledger.waiting[delivered])
            kernels.receive(t, owner, ledger)

    return serve


def _count_lost(owner: NDArray[np.int64], delivering: NDArray[np.int64], ledger: Ledger) -> None:
    """Count the subchannels on which uploads are lost as used, as they are."""
    used, successful = (int((held >= 0).sum()) for held in (owner, delivering))
    ledger.totals[kernels.SUBCHANNELS_USED] += used - successful
    ledger.totals[kernels.EMPTY_SLOTS] -= used > 0 and successful == 0


def _compiled(setting: _Setting, policy: Policy, streams: Streams) -> Serve | None:
    """Age-based scheduling or MaxPack, Rayleigh fading, still UEs: many slots in one kernel.

    ``None`` for other policies and channels, and for a channel in which something is wrong or
    missing: going slot by slot, the error names its place.
    """
    channel, weigh = setting.channel, _weigh(policy)
    if weigh is None or type(channel) is not DrawnChannel or channel.moves:
        return None
    model, large = channel.model, channel.large_scale(0)
    if model.fading != Rayleigh() or model.interference.is_present or model.csi.kind != "perfect":
        return None
    if not _is_sound(channel, large.mean_gains):
        return None
    keys = TrafficKeys(channel.fading.run.streams.channel, streams.arrivals, streams.ties)
    means = np.ascontiguousarray(large.mean_gains, dtype=np.float64)
    cell = TrafficCell(
        means, setting.chances, channel.subchannel_count, channel.power_budget,
        setting.rate_threshold + setting.margin,
    )  # fmt: skip
    random_ties = policy.parameters["ties"] == "random"
    weight_of = np.empty(0)  # by age: ages are whole numbers, and few

    def serve(first: int, end: int, ledger: Ledger) -> None:
        nonlocal weight_of
        if weight_of.size < ledger.age_counts.size:
            weight_of = weigh(np.arange(ledger.age_counts.size, dtype=np.float64))
        kernels.serve((first, end), keys, cell, weight_of, random_ties, ledger)

    return serve


def _weigh(policy: Policy) -> Weigh | None:
    """What an age weighs under policies that pack by it; a subclass may schedule otherwise."""
    if type(policy) is AgeBased:
        return functools.partial(f_alpha, alpha=policy.alpha, form=policy.form)
    return np.ones_like if type(policy) is MaxPack else None


def _is_sound(channel: Channel, means: NDArray[np.float64]) -> bool:
    """Whether every gain that can be drawn is one that `Uplink` would accept, and there is one."""
    if not means.size or not channel.subchannel_count:
        return False
    return bool(
        means.min() >= 0 and means.max() * channel.power_budget < _LARGEST_SNR / _MOST_FADING
    )


def _setting(
    channel: Channel | Scenario,
    rate_threshold: float | None,
    arrivals: ArrayLike | None,
    rounds: int,
    streams: Streams,
) -> _Setting:
    """From what the caller gave; ``ValueError`` says what is missing or wrong."""
    margin = 0.0
    if isinstance(channel, Scenario):
        if rate_threshold is not None:
            raise ValueError(
                "rate_threshold comes from the scenario: change it there (scenario.with_), or give "
                "a channel instead of a scenario"
            )
        if channel.timing.kind != "none":
            raise ValueError(
                "traffic has no local learning that could miss a deadline: take the timing out "
                'with scenario.with_(timing="none")'
            )
        rate_threshold, margin = channel.rate_threshold, channel.threshold.margin
        channel = channel.with_(**{"run.rounds": rounds}).make_channel(streams)
    elif rate_threshold is None:
        raise ValueError("beside a channel, rate_threshold must be given")
    seen = _checked(channel.block(0).seen, channel, 0)
    first = Uplink(seen, channel.power_budget, rate_threshold)
    return _Setting(channel, first.rate_threshold, _chances(arrivals, first.ue_count), margin)


def _checked(seen: ArrayLike, channel: Channel, t: int) -> NDArray[np.float64]:
    """The gains seen in slot ``t``; ``ValueError`` if they are not of the channel's size."""
    gains = np.asarray(seen)
    size = (channel.ue_count, channel.subchannel_count)
    if gains.shape != size:
        raise ValueError(
            f"the channel has gains of shape {gains.shape} in slot {t}, but {size[0]} UEs and "
            f"{size[1]} subchannels"
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


def _require_updates(
    delivered: NDArray[np.int64], has_update: NDArray[np.bool_], who_when: str
) -> None:
    without = delivered[~has_update[delivered]]
    if without.size:
        raise InfeasibleAllocation(
            f"{who_when}: UE {without[0]} is scheduled but has nothing to send: a gain of 0 marks "
            "a subchannel that cannot be used"
        )
