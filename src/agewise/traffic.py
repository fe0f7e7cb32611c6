"""Scheduling without learning, over many slots: ages, throughput, fairness."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.age import Form, f_alpha
from agewise.checks import number_within, require_memory, whole_number
from agewise.core.random import uniforms
from agewise.policies import make_policy
from agewise.radio import Channel
from agewise.random import Streams
from agewise.scenario import Scenario, require_scenario
from agewise.scheduling import AccessPoint, Policy
from agewise.spectrum import InfeasibleAllocation, Uplink
from agewise.statistics import jain

#: Slots, and ages of UEs, that are kept before they are summed up.
_CHUNK_SLOTS, _CHUNK_AGES = 1_000, 4_000_000
#: In the place of the slot in which an update was generated: the UE has nothing to send.
_NOTHING = -1


@dataclass(frozen=True, eq=False, repr=False)
class Traffic:
    """Ages, deliveries and use of the spectrum over ``rounds`` slots.

    Ages are those after each slot, T[t+1] (Eq. 2). ``mean_age[ue]`` is their average over the
    slots, ``oldest[ue]`` their maximum, ``mean_peak_age[ue]`` the mean of the ages just before a
    delivery (NaN for a UE without one), and ``age_counts[age]`` how often each age occurred, all
    UEs and slots together. ``deliveries[ue]`` counts updates received. ``subchannels_used`` is
    an average per slot, ``empty_share`` the share of slots that served nobody.
    """

    policy: str
    seed: int
    rounds: int
    subchannels: int
    rate_threshold: float
    mean_age: NDArray[np.float64]
    mean_peak_age: NDArray[np.float64]
    oldest: NDArray[np.int64]
    deliveries: NDArray[np.int64]
    age_counts: NDArray[np.int64]
    subchannels_used: float
    empty_share: float

    @property
    def ue_count(self) -> int:
        """K, the number of UEs."""
        return self.deliveries.size

    @property
    def participation(self) -> NDArray[np.float64]:
        """``[ue]``: the share of slots in which an update of the UE arrived."""
        return self.deliveries / self.rounds

    @property
    def throughput(self) -> float:
        """Updates received per slot."""
        return float(self.participation.sum())

    @property
    def goodput(self) -> float:
        """Bits received per slot and real channel use: R_s for each update.

        What a UE's rate has above the threshold carries nothing that was asked for.
        """
        return self.throughput * self.rate_threshold

    @property
    def fairness(self) -> float:
        """Jain's index of the deliveries: 1 if all UEs have as many, 1/K if one has all.

        NaN if there were none.
        """
        return float(jain(self.participation))

    def age_cost(self, alpha: float, form: Form = "paper") -> float:
        """Return the sum over the UEs of f_alpha of their ages (problem 3), averaged over slots."""
        costs = f_alpha(np.arange(self.age_counts.size), alpha, form)
        return float((self.age_counts * costs).sum()) / self.rounds

    def age_quantile(self, share: float) -> int:
        """Return the lowest age that this share of all ages, over UEs and slots, do not exceed."""
        number_within("share", share, 0.0, 1.0)
        if not self.age_counts.size:
            raise ValueError("there are no ages: the channel has no UEs")
        enough = np.cumsum(self.age_counts) >= share * self.age_counts.sum()
        return int(enough.argmax())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: the cell's numbers, then those of each UE; ``None`` for NaN."""
        return {
            "policy": self.policy,
            "seed": self.seed,
            "rounds": self.rounds,
            "ues": self.ue_count,
            "subchannels": self.subchannels,
            "rate_threshold": self.rate_threshold,
            "throughput": self.throughput,
            "goodput": self.goodput,
            "fairness": _known(self.fairness),
            "subchannels_used": self.subchannels_used,
            "empty_share": self.empty_share,
            "age_mean": _known(_mean(self.mean_age)),
            "age_quantiles": {
                str(share): self.age_quantile(share) for share in (0.5, 0.95, 0.99) if self.ue_count
            },
            "mean_age": self.mean_age.tolist(),
            "mean_peak_age": [_known(age) for age in self.mean_peak_age.tolist()],
            "oldest": self.oldest.tolist(),
            "deliveries": self.deliveries.tolist(),
        }

    def __repr__(self) -> str:
        return (
            f"<Traffic {self.policy}, {self.rounds:,} slots: mean age {_mean(self.mean_age):.3f}, "
            f"{self.throughput:.3f} updates per slot, fairness {self.fairness:.3f}>"
        )


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

    Fading and arrivals follow from the seed alone, so policies meet the same. ``progress`` is
    called now and then with the number of slots done.

    >>> from agewise import Scenario
    >>> schedule_traffic(Scenario.preset("paper"), "round-robin", 1000)
    <Traffic round-robin, 1,000 slots: mean age 4.111, 10.862 updates per slot, fairness 1.000>
    """
    rounds = whole_number("rounds", rounds, least=1)
    chosen, streams, margin = make_policy(policy), Streams(seed), 0.0
    if chosen.reads:
        raise ValueError(
            f"policy {chosen} reads {', '.join(sorted(chosen.reads))}, which only learning "
            "gives: compare it by simulate, not by traffic"
        )
    if isinstance(channel, str):
        require_scenario(channel)
    if isinstance(channel, Scenario):
        margin = channel.threshold.margin
        channel, rate_threshold = _from_scenario(channel, rate_threshold, rounds, streams)
    elif rate_threshold is None:
        raise ValueError("beside a channel, rate_threshold must be given")
    first = Uplink(
        _checked(channel.block(0).seen, channel, 0), channel.power_budget, rate_threshold
    )
    chances = _chances(arrivals, first.ue_count)
    access_point = AccessPoint(chosen, first.ue_count, streams, margin=margin)

    ues = first.ue_count
    generated = np.full(ues, _NOTHING)  # the slot of each UE's newest undelivered update
    deliveries, age_sums, peak_sums, oldest = np.zeros((4, ues), np.int64)
    age_counts, used, empty = np.zeros(0, np.int64), 0, 0
    chunk = max(1, min(_CHUNK_SLOTS, _CHUNK_AGES // max(1, ues)))
    for start in range(0, rounds, chunk):
        end = min(start + chunk, rounds)
        ages = np.empty((end - start, ues), np.int64)
        for t in range(start, end):
            block = channel.block(t)
            gains = _checked(block.seen, channel, t)
            uplink = Uplink(gains, channel.power_budget, rate_threshold)
            if arrivals is None:
                generated[:] = t
            else:
                generated[uniforms(streams.arrivals, t, ues) < chances] = t
                uplink = uplink.only(generated != _NOTHING)
            allocation = access_point.plan(uplink)
            delivered = np.flatnonzero(allocation.scheduled)
            if arrivals is not None and (generated[delivered] == _NOTHING).any():
                idle = delivered[generated[delivered] == _NOTHING][0]
                raise InfeasibleAllocation(
                    f"{chosen} in slot {t}: UE {idle} is scheduled but has nothing to send: a gain "
                    "of 0 marks a subchannel that cannot be used"
                )
            if block.true is not block.seen:
                arrived = allocation.on_true_channel(block.true).reaches(first.rate_threshold)
                delivered = delivered[arrived[delivered]]
            owned = int(np.count_nonzero(allocation.owner >= 0))
            used, empty = used + owned, empty + (owned == 0)
            deliveries[delivered] += 1
            peak_sums[delivered] += access_point.ages[delivered]
            # Eq. 2 for updates that waited: the age becomes the time since they were generated.
            access_point.receive(delivered, update_ages=t - generated[delivered])
            generated[delivered] = _NOTHING
            ages[t - start] = access_point.ages
        age_sums += ages.sum(axis=0)
        oldest = np.maximum(oldest, ages.max(axis=0, initial=0))
        counts = np.bincount(ages.ravel(), minlength=age_counts.size)
        counts[: age_counts.size] += age_counts
        age_counts = counts
        if progress is not None:
            progress(end)
    with np.errstate(invalid="ignore"):
        mean_peak_age = peak_sums / np.where(deliveries > 0, deliveries, np.nan)
    return Traffic(
        policy=str(chosen),
        seed=streams.seed,
        rounds=rounds,
        subchannels=first.subchannel_count,
        rate_threshold=first.rate_threshold,
        mean_age=age_sums / rounds,
        mean_peak_age=mean_peak_age,
        oldest=oldest,
        deliveries=deliveries,
        age_counts=age_counts,
        subchannels_used=used / rounds,
        empty_share=empty / rounds,
    )


def _from_scenario(
    scenario: Scenario, rate_threshold: float | None, rounds: int, streams: Streams
) -> tuple[Channel, float]:
    """Make the channel of a scenario, and find its threshold."""
    if rate_threshold is not None:
        raise ValueError(
            "rate_threshold comes from the scenario: change it there (scenario.with_), or give "
            "a channel instead of a scenario"
        )
    if scenario.timing.kind != "none":
        raise ValueError(
            "traffic has no local learning that could miss a deadline: take the timing out "
            'with scenario.with_(timing="none")'
        )
    cell = scenario.cell
    what = f"gains of cell.ues = {cell.ues:,} on cell.subchannels = {cell.subchannels:,}"
    require_memory(8.0 * cell.ues * (cell.subchannels + 8), what)
    channel = scenario.with_(**{"run.rounds": rounds}).make_channel(streams)
    return channel, scenario.rate_threshold


def _checked(seen: ArrayLike, channel: Channel, t: int) -> NDArray[np.float64]:
    """Return the gains seen in slot ``t``; ``ValueError`` if they are not of the channel's size."""
    gains = np.asarray(seen)
    size = (channel.ue_count, channel.subchannel_count)
    if gains.shape != size:
        raise ValueError(
            f"the channel has gains of shape {gains.shape} in slot {t}, but {size[0]} UEs and "
            f"{size[1]} subchannels"
        )
    return gains


def _chances(arrivals: ArrayLike | None, ues: int) -> NDArray[np.float64]:
    """Return the chance of an arrival in a slot for each UE."""
    given = np.asarray(1.0 if arrivals is None else arrivals)
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


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
