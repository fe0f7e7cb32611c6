"""Algorithm 3: federated learning over the scheduled channel."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise.age import f_alpha
from agewise.cost import Batteries
from agewise.data import Data
from agewise.devices import Devices, Workload
from agewise.files import fingerprint
from agewise.learn import Federation, FederationState, Learn, Learner
from agewise.pace import Background
from agewise.part import faults_named, parts_inside
from agewise.policies import make_policy
from agewise.provenance import require_same, sources_of
from agewise.radio import Block, Channel
from agewise.random import Streams
from agewise.records import (
    MOST_GAINS,
    Delivery,
    Eligible,
    History,
    Optimum,
    RoundCost,
    RoundRecord,
    RunInfo,
)
from agewise.resources import require_resources
from agewise.scenario import Scenario, require_scenario
from agewise.scheduling import AccessPoint, Feedback, Policy, Report
from agewise.spectrum import Allocation, Uplink, solve
from agewise.version import __version__


@dataclass(frozen=True, eq=False)
class _SeedSamples:
    """The samples of one seed on their UEs: policies are compared on the same."""

    learner: Learner
    label_counts: NDArray[np.int64]
    class_names: tuple[str, ...]
    streams: Streams

    def federation(self, scenario: Scenario) -> Federation:
        """The learning of a run of this scenario, with these samples."""
        return Federation(self.learner, scenario.learn, self.streams)


def samples_of(scenario: Scenario, streams: Streams) -> _SeedSamples:
    """Divide the samples of a run, once for all policies as long as their files stay the same."""
    model, source, devices = scenario.learn.model, scenario.data, scenario.devices
    made_by = model.made_by(), *map(fingerprint, model.source_files().values())
    files = [file for _, part in parts_inside(devices) for file in part.files().values()]
    digests = *source.digests(), *map(fingerprint, files)
    return _divided(scenario.learn, source, devices, scenario.workload(streams), digests, made_by)


@functools.lru_cache(maxsize=2)
def _divided(
    settings: Learn,
    source: Data,
    devices: Devices,
    work: Workload,
    _digests: tuple[str | None, ...],
    _made_by: tuple[object, ...],
) -> _SeedSamples:
    dataset = source.load()
    partition = source.divide(dataset, devices.table(work), work.streams)
    return _SeedSamples(
        settings.learner(dataset, partition),
        partition.label_counts(dataset.train.labels, dataset.class_count),
        dataset.names,
        work.streams,
    )


class Transport:
    """The rounds of a run but for the learning: channel, devices, access point, deliveries.

    In each round `begin`, let the ``access_point`` plan, `deliver`, learn, `receive`. ``length`` is
    that of the model; left out, it is looked up where times depend on it.
    """

    def __init__(
        self,
        scenario: Scenario,
        policy: Policy,
        channel: Channel,
        streams: Streams,
        length: int | None = None,
    ) -> None:
        self._channel, self._devices = channel, scenario.device_table(streams)
        self._costs = costs = scenario.cost_model(self._devices, channel.power_budget, length)
        self._batteries = Batteries.full(self._devices)
        self.background: Background | None = scenario.pace.start(costs.times)
        self.access_point = AccessPoint(
            policy,
            channel.ue_count,
            streams,
            deadline_slots=costs.deadline_slots,
            # Whose update is ready in the background is in time.
            everyone_eligible=scenario.timing.everyone_eligible or self.background is not None,
            margin=scenario.threshold.margin,
            retry=scenario.retry,
        )
        self.access_point.describe(
            compute_slots=costs.compute_slots, threshold_slots=costs.threshold_slots
        )

    def begin(self) -> Uplink:
        """Draw the channel of the next round; returns the uplink of those who may be scheduled."""
        t, costs, access_point = self.access_point.t, self._costs, self.access_point
        self.block = block = self._channel.block(t)
        self._downlink, self._in_hand = costs.downlink_slots(block.true), None
        self._able = may = self._devices.available(t)
        if self._batteries is not None:
            self._able = may = may & self._batteries.charged
        if self.background is not None:
            # Nobody waits for UEs: each may have an update in hand, of some earlier model.
            if self._downlink is not None:  # who has no channel hears no model
                self._able = self._able & np.isfinite(self._downlink)
            late = _latest(self._downlink, self._able)
            self._in_hand = in_hand = self.background.begin(t, self._able, late)
            may = may & in_hand.ready
            access_point.describe(compute_slots=in_hand.ready_slots, staleness=in_hand.staleness(t))
        elif self._downlink is not None:
            access_point.describe(compute_slots=costs.compute_slots + self._downlink)
        return costs.uplink(block.seen).only(may)

    @property
    def loses_nothing(self) -> bool:
        """Tell whether all that is scheduled in this round arrives."""
        is_certain = self.block.true is self.block.seen and self._costs.deadline_slots == math.inf
        return is_certain and self._batteries is None and self.background is None

    def deliver(
        self, allocation: Allocation, probed: NDArray[np.int64] | None = None
    ) -> tuple[Delivery, RoundCost]:
        """Let the uploads meet the true channel, some may be lost; returns what the round cost.

        ``probed`` are UEs that were asked for reports before it.
        """
        block, in_hand = self.block, self._in_hand
        met = None if block.true is block.seen else block.true
        waits = in_hand is None and self._downlink is not None
        late = _latest(self._downlink, allocation.scheduled) if waits else 0.0
        delivery, cost, batteries = self._costs.deliver(
            allocation, met, self._batteries, in_hand, late
        )
        if probed is not None:
            cost, batteries = self._costs.add_probe(cost, probed, batteries)
        if in_hand is not None:
            cost, batteries = self._costs.add_learning(cost, in_hand.starts, batteries)
        self._batteries = batteries
        return delivery, cost

    def receive(
        self,
        received: NDArray[np.int64],
        reports: Mapping[Report, NDArray[np.float64]] | None = None,
    ) -> None:
        """End the round: what arrived is young again, everything else grows older (Eq. 2)."""
        if self.background is not None:
            self.background.end(self.access_point.t, received, self._able)
        self.access_point.receive(received, reports)


@faults_named()
def simulate(
    scenario: Scenario,
    policy: Policy | str,
    seed: int = 0,
    on_round: Callable[[RoundRecord], object] | None = None,
    sources: Mapping[str, str] | None = None,
) -> History:
    """Run the scenario with this policy and seed, and return what happened in every round.

    The result is a pure function of (scenario, policy, seed, version) and of the files that the
    scenario names. ``on_round`` is called with the record of each round as it happens. ``sources``
    are the digests of these files and of the policy where they are known already
    (`agewise.provenance`): ``ValueError`` if a file is another one here.
    """
    require_scenario(scenario)
    scenario = scenario.loaded()
    require_resources(scenario)
    chosen, streams = make_policy(policy), Streams(seed)
    known = sources_of(scenario, chosen) if sources is None else dict(sources)
    samples = samples_of(scenario, streams)
    channel = scenario.make_channel(streams)
    require_same(known, scenario)  # after reading them
    records = []
    for record in _rounds(scenario, chosen, channel, samples.federation(scenario)):
        records.append(record)
        if on_round is not None:
            on_round(record)
    info = RunInfo(
        scenario=scenario.resolved(),
        policy=chosen.key,
        seed=streams.seed,
        version=__version__,
        positions_m=channel.block(0).positions_m,
        label_counts=samples.label_counts,
        class_names=samples.class_names,
        sources=known,
    )
    return History.collect(info, records, scenario.run.age_alpha)


@faults_named()
def rounds(scenario: Scenario, policy: Policy | str, seed: int = 0) -> Iterator[RoundRecord]:
    """The rounds of `simulate`, one at a time as they happen."""
    require_scenario(scenario)
    scenario = scenario.loaded()
    require_resources(scenario, kept_rounds=1)
    streams = Streams(seed)
    federation = samples_of(scenario, streams).federation(scenario)
    return _rounds(scenario, make_policy(policy), scenario.make_channel(streams), federation)


def _rounds(
    scenario: Scenario, policy: Policy, channel: Channel, federation: Federation
) -> Iterator[RoundRecord]:
    """Algorithm 3, a round at a time."""
    run, learner, streams = scenario.run, federation.learner, federation.streams
    state = federation.init()
    transport = Transport(scenario, policy, channel, streams, state.params.size)
    access_point, background = transport.access_point, transport.background
    access_point.describe(data_sizes=learner.sizes)
    for t in range(run.rounds):
        # The access point sees the channel and says who uploads (Algorithms 1 and 2).
        uplink = transport.begin()
        if background is not None:
            state = state.keep(t, background.versions)
        probed = _probe(access_point, uplink, federation, state) if policy.probes else None
        allocation = access_point.plan(uplink)
        optimum = _optimum(scenario, access_point, uplink, allocation)
        eligible = (
            eligible_of(access_point.mask_ineligible(uplink), t) if t == run.rounds // 2 else None
        )

        # Uploads meet the true channel: some may be lost on it, or be late, or empty a battery.
        delivery, cost = transport.deliver(allocation, probed)

        # UEs learn locally, from the newest model or one before, and what arrives makes the next.
        received = delivery.received
        state, updates, diversity = federation.round(
            state, received, t, allocation.factors_of(received), delivery.received_versions
        )

        # What arrived is young again, everything else grows older (Eq. 2).
        transport.receive(received, federation.reports(policy.reads, updates))

        yield RoundRecord(
            t,
            delivery,
            access_point.ages,
            access_point.participation,
            cost,
            diversity,
            evaluation=learner.evaluate(state.params) if run.evaluates(t) else None,
            objective=learner.objective(state.params) if run.weighs(t) else None,
            optimum=optimum,
            positions_m=_positions(transport.block) if channel.moves else None,
            eligible=eligible,
        )


def _latest(downlink_slots: NDArray[np.float64] | None, addressed: NDArray[np.bool_]) -> float:
    """Find when the last UE addressed has the model, in slots beyond the usual time."""
    if downlink_slots is None:
        return 0.0
    return float(downlink_slots[addressed].max(initial=0.0))


def _positions(block: Block) -> NDArray[np.float32] | None:
    """Positions of the UEs, as exactly as a record keeps them."""
    return None if block.positions_m is None else block.positions_m.astype(np.float32)


def eligible_of(uplink: Uplink, t: int) -> Eligible:
    """Record what a policy could choose from in round ``t``.

    The needs of all UEs, and their gains if these are not too many.
    """
    need, _ = uplink.needs()
    gains = uplink.gains
    return Eligible(t, need, gains.astype(np.float32) if gains.size <= MOST_GAINS else None)


def _probe(
    access_point: AccessPoint, uplink: Uplink, federation: Federation, state: FederationState
) -> NDArray[np.int64]:
    """Ask all eligible UEs for the losses and norms of this very model; who was asked."""
    asked = np.flatnonzero(access_point.mask_ineligible(uplink).gains.any(axis=1))
    fresh, known = federation.probe(state, asked, access_point.t), access_point.feedback
    losses, norms = known.losses.copy(), known.update_norms.copy()
    losses[asked], norms[asked] = fresh
    access_point.describe(feedback=Feedback(losses, norms))
    return asked


def _optimum(
    scenario: Scenario, access_point: AccessPoint, uplink: Uplink, allocation: Allocation
) -> Optimum | None:
    """Compare what was scheduled with the optimum of problem (3), where asked for.

    The search for the optimum has a limit, and the policy may have found better: then this is
    the best known.
    """
    work_limit = scenario.run.optimum.work_in(access_point.t)
    if work_limit is None:
        return None
    weights = f_alpha(access_point.ages, scenario.run.age_alpha)
    weight = float(weights[allocation.scheduled].sum())
    best = solve(access_point.mask_ineligible(uplink), weights, work_limit=work_limit)
    return Optimum(weight, max(weight, best.value), max(weight, best.bound))
