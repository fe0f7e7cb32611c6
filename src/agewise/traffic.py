"""Scheduling without learning, over many slots: ages, throughput, fairness."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agewise.age import Form, f_alpha
from agewise.checks import number_within, short, whole_number
from agewise.core.random import uniforms
from agewise.part import faults_named
from agewise.policies import make_policy
from agewise.radio import Channel
from agewise.random import Streams
from agewise.readers import read_numbers
from agewise.resources import require_cell
from agewise.scenario import Scenario, require_scenario
from agewise.scheduling import AccessPoint, Policy
from agewise.spectrum import (
    InfeasibleAllocation,
    Uplink,
    count_needs,
    least_mean_age,
    needs_to_deliver,
)
from agewise.spectrum.uplink import per_ue
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
    UEs and slots together. ``deliveries[ue]`` counts updates received, and ``rate_threshold[ue]``
    is R_s of each UE. ``subchannels_used`` is an average per slot, ``empty_share`` the share of
    slots that served nobody. No schedule of these slots has a mean age, over UEs and slots, below
    ``age_bound`` (`agewise.spectrum.least_mean_age`).
    """

    policy: str
    seed: int
    rounds: int
    subchannels: int
    rate_threshold: NDArray[np.float64]
    mean_age: NDArray[np.float64]
    mean_peak_age: NDArray[np.float64]
    oldest: NDArray[np.int64]
    deliveries: NDArray[np.int64]
    age_counts: NDArray[np.int64]
    subchannels_used: float
    empty_share: float
    age_bound: float

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
        """Bits received per slot and real channel use: R_s of its UE for each update.

        What a UE's rate has above the threshold carries nothing that was asked for.
        """
        heard = self.deliveries > 0
        return float((self.participation[heard] * self.rate_threshold[heard]).sum())

    @property
    def fairness(self) -> float:
        """Jain's index of the deliveries: 1 if all UEs have as many, 1/K if one has all.

        NaN if there were none.
        """
        return float(jain(self.participation))

    @property
    def above_bound(self) -> float:
        """Distance of the mean age from the bound, as a share of it; NaN if that is 0."""
        return _mean(self.mean_age) / self.age_bound - 1.0 if self.age_bound else float("nan")

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
        """Return plain data: the cell's numbers, then those of each UE; ``None`` if not finite."""
        return {
            "policy": self.policy,
            "seed": self.seed,
            "rounds": self.rounds,
            "ues": self.ue_count,
            "subchannels": self.subchannels,
            "throughput": self.throughput,
            "goodput": self.goodput,
            "fairness": _known(self.fairness),
            "subchannels_used": self.subchannels_used,
            "empty_share": self.empty_share,
            "age_mean": _known(_mean(self.mean_age)),
            "age_bound": _known(self.age_bound),
            "above_bound": _known(self.above_bound),
            "age_quantiles": {
                str(share): self.age_quantile(share) for share in (0.5, 0.95, 0.99) if self.ue_count
            },
            "rate_threshold": [_known(rate) for rate in self.rate_threshold.tolist()],
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


@faults_named()
def schedule_traffic(
    channel: Channel | Scenario,
    policy: Policy | str = "age-based",
    rounds: int = 100_000,
    *,
    arrivals: ArrayLike | None = None,
    rate_threshold: ArrayLike | None = None,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> Traffic:
    """Schedule ``rounds`` slots one after the other, with nothing but ages to keep.

    ``channel`` is a scenario, whose channel and devices are made from the seed as `simulate` does
    and which brings the threshold, or any channel, beside which ``rate_threshold`` has to be given.
    ``policy`` is a name or an object.

    ``arrivals`` is the probability that a UE generates an update in a slot, one number or one
    per UE, above 0, or the arrivals themselves, ``[slot, ue]`` of 0 and 1 for at least as many
    slots; ``None`` is always, as in the paper. A UE without an undelivered update is
    not scheduled (the policy sees gains of 0). Only its newest one counts, and on reception the
    age becomes the time since it was generated.

    Fading and arrivals follow from the seed alone, so policies meet the same. ``progress`` is
    called now and then with the number of slots done.

    >>> from agewise import Scenario
    >>> schedule_traffic(Scenario.preset("paper"), "round-robin", 1000)
    <Traffic round-robin, 1,000 slots: mean age 4.111, 10.862 updates per slot, fairness 1.000>
    """
    rounds = whole_number("rounds", rounds, least=1)
    chosen, streams, devices = make_policy(policy), Streams(seed), None
    if chosen.reads:
        raise ValueError(
            f"policy {chosen} reads {', '.join(sorted(chosen.reads))}, which only learning "
            "gives: compare it by simulate, not by traffic"
        )
    if isinstance(channel, str):
        require_scenario(channel)
    if isinstance(channel, Scenario):
        _require_traffic(channel, rate_threshold)
        scenario = channel.with_(**{"run.rounds": rounds}).loaded()
        channel, devices = scenario.make_channel(streams), scenario.device_table(streams)
        costs, ues = scenario.cost_model(devices, channel.power_budget), channel.ue_count
        power, threshold = costs.power_budget, costs.threshold
        access_point = AccessPoint(
            chosen,
            ues,
            streams,
            deadline_slots=costs.deadline_slots,
            margin=scenario.threshold.margin,
            retry=scenario.retry,
        )
        access_point.describe(
            compute_slots=costs.compute_slots, threshold_slots=costs.threshold_slots
        )
    elif rate_threshold is None:
        raise ValueError("beside a channel, rate_threshold must be given")
    else:
        ues = channel.ue_count
        power = per_ue("power budget", channel.power_budget, ues)
        threshold = per_ue("rate_threshold", rate_threshold, ues)
        access_point = AccessPoint(chosen, ues, streams)
    size, given = (ues, channel.subchannel_count), _arrivals(arrivals, ues, rounds)

    generated = np.full(ues, _NOTHING)  # the slot of each UE's newest undelivered update
    age_sums, peak_sums, oldest = np.zeros((3, ues), np.int64)
    age_counts, used, empty = np.zeros(0, np.int64), 0, 0
    need_counts = np.zeros((ues, size[1] + 1), np.int64)
    chunk = max(1, min(_CHUNK_SLOTS, _CHUNK_AGES // max(1, ues)))
    for start in range(0, rounds, chunk):
        end = min(start + chunk, rounds)
        ages, needs = np.empty((2, end - start, ues), np.int64)
        owners = np.empty((end - start, size[1]), np.int64)
        for t in range(start, end):
            block = channel.block(t)
            uplink = Uplink(block.seen, power, threshold)
            if uplink.gains.shape != size:
                raise ValueError(
                    f"the channel has gains of shape {uplink.gains.shape} in slot {t}, but "
                    f"{size[0]} UEs and {size[1]} subchannels"
                )
            met = None if block.true is block.seen else block.true
            needs[t - start] = needs_to_deliver(uplink, met)
            if arrivals is not None:
                drawn = given if given.ndim == 1 else given[t]
                generated[uniforms(streams.arrivals, t, ues) < drawn] = t
                uplink = uplink.only(generated != _NOTHING)
            if devices is not None:
                uplink = uplink.only(devices.available(t))
            allocation = access_point.plan(uplink)
            delivered = allocation.ues
            if arrivals is not None and (generated[delivered] == _NOTHING).any():
                idle = delivered[generated[delivered] == _NOTHING][0]
                raise InfeasibleAllocation(
                    f"{chosen} in slot {t}: UE {idle} is scheduled but has nothing to send: a gain "
                    "of 0 marks a subchannel that cannot be used"
                )
            if met is not None:
                arrived = allocation.on_true_channel(met).reaches(threshold)
                delivered = delivered[arrived[delivered]]
            peak_sums[delivered] += access_point.ages[delivered]
            if arrivals is None:
                access_point.receive(delivered)
            else:
                # Eq. 2 for updates that waited: the age becomes the time since they were generated.
                access_point.receive(delivered, update_ages=t - generated[delivered])
                generated[delivered] = _NOTHING
            owners[t - start], ages[t - start] = allocation.owner, access_point.ages
        owned = np.count_nonzero(owners >= 0, axis=1)
        used, empty = used + int(owned.sum()), empty + int(np.count_nonzero(owned == 0))
        age_sums += ages.sum(axis=0)
        oldest = np.maximum(oldest, ages.max(axis=0, initial=0))
        counts = np.bincount(ages.ravel(), minlength=age_counts.size)
        counts[: age_counts.size] += age_counts
        age_counts = counts
        need_counts += count_needs(needs, size[1])
        if progress is not None:
            progress(end)
    deliveries = access_point.participation
    with np.errstate(invalid="ignore"):
        mean_peak_age = peak_sums / np.where(deliveries > 0, deliveries, np.nan)
    return Traffic(
        policy=str(chosen),
        seed=streams.seed,
        rounds=rounds,
        subchannels=channel.subchannel_count,
        rate_threshold=threshold,
        mean_age=age_sums / rounds,
        mean_peak_age=mean_peak_age,
        oldest=oldest,
        deliveries=deliveries,
        age_counts=age_counts,
        subchannels_used=used / rounds,
        empty_share=empty / rounds,
        age_bound=least_mean_age(need_counts),
    )


def _require_traffic(scenario: Scenario, rate_threshold: ArrayLike | None) -> None:
    """Raise ``ValueError`` where a scenario says what traffic does not have."""
    if rate_threshold is not None:
        raise ValueError(
            "rate_threshold comes from the scenario: change it there (scenario.with_), or give "
            "a channel instead of a scenario"
        )
    if scenario.timing.everyone_eligible or scenario.pace.kind != "rounds":
        field = "pace" if scenario.pace.kind != "rounds" else "timing.eligible"
        usual = "rounds" if field == "pace" else "in-time"
        raise ValueError(
            "traffic has no local learning that could miss a deadline or go on in the background: "
            f'give scenario.with_(**{{"{field}": "{usual}"}}), or --set {field}={usual} on the '
            "command line"
        )
    require_cell(scenario)


def read_arrivals(path: Path | str) -> NDArray[np.float64]:
    """Read arrivals ``[slot, ue]`` from a CSV, or from the array of that name in an NPZ file."""
    found = read_numbers(path, "arrivals")
    if found.ndim != 2:
        raise ValueError(f"{path}: arrivals must be numbers[slot, ue], not of shape {found.shape}")
    return found


def _arrivals(arrivals: ArrayLike | None, ues: int, rounds: int) -> NDArray[np.float64]:
    """Return the chance of an arrival for each UE, ``[ue]``, or whether one comes, ``[slot, ue]``.

    Numbers drawn from [0, 1) are below 1 and not below 0.
    """
    given = np.asarray(1.0 if arrivals is None else arrivals)
    if given.ndim == 2 and given.dtype.kind in "biuf":
        if given.shape[1] != ues or len(given) < rounds:
            raise ValueError(
                f"arrivals of {len(given)} slots and {given.shape[1]} UEs: there must be at least "
                f"{rounds} slots of {ues} UEs"
            )
        if not np.isin(given[:rounds], (0, 1)).all():
            raise ValueError("arrivals [slot, ue] must be 0 or 1 each: whether an update is made")
        return given.astype(np.float64)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (ues,)):
        raise ValueError(
            f"arrivals must be one probability, one for each of the {ues} UEs, or 0 and 1 for each "
            f"slot and UE, not {short(repr(arrivals))}"
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
    return value if np.isfinite(value) else None
