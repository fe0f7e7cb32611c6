"""Algorithm 3: federated learning over the scheduled channel."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agewise import data, learn
from agewise.accounting import (
    compute_slots,
    deadline_slots,
    make_batteries,
    offers_everyone,
    open_books,
    upload_slots,
)
from agewise.age import f_alpha
from agewise.memory import bytes_text, require_memory
from agewise.policies import make_policy
from agewise.radio import Block, Channel, make_channel
from agewise.random import Streams
from agewise.records import History, RoundRecord, RunInfo
from agewise.scenario import (
    Data,
    Learn,
    SampledOptimum,
    Scenario,
    require_scenario,
)
from agewise.scheduling import AccessPoint, Policy
from agewise.sources import require_same, sources_of
from agewise.spectrum import Allocation, Uplink, solve
from agewise.version import __version__


class Diverged(ValueError):
    """The model is no longer finite."""


@dataclass(frozen=True, eq=False)
class SeedSamples:
    """The samples of one seed on their UEs: policies are compared on the same."""

    learner: learn.Learner
    label_counts: NDArray[np.int64]
    class_names: tuple[str, ...]


def samples_of(scenario: Scenario, streams: Streams) -> SeedSamples:
    """The samples of a run, prepared once for all policies as long as their files stay the same."""
    digests = data.digests_of(scenario.data)
    return _divided(scenario.learn, scenario.data, scenario.cell.ues, streams, digests)


@functools.lru_cache(maxsize=2)
def _divided(
    settings: Learn, source: Data, ues: int, streams: Streams, _: tuple[str | None, ...]
) -> SeedSamples:
    dataset = data.load_once(source)
    partition = data.divide(dataset.train.labels, source, ues, streams)
    return SeedSamples(
        learn.make_learner(dataset, partition, settings),
        partition.label_counts(dataset.train.labels, dataset.class_count),
        dataset.names,
    )


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
    (`agewise.sources`): ``ValueError`` if a file is another one here.
    """
    require_resources(scenario)
    chosen, streams = make_policy(policy), Streams(seed)
    known = sources_of(scenario, chosen) if sources is None else dict(sources)
    samples = samples_of(scenario, streams)
    channel = make_channel(scenario, streams)
    require_same(known, scenario)  # after reading them
    records = []
    for record in _rounds(scenario, chosen, streams, channel, samples.learner):
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


def require_resources(scenario: Scenario, kept_rounds: int | None = None) -> None:
    """Raise ``ValueError`` with the amount if a run would need more memory than there is.

    So many rounds are kept at a time, all of the run if not given.
    """
    require_scenario(scenario)
    cell, learning = scenario.cell, scenario.learn
    length = scenario.run.rounds if kept_rounds is None else kept_rounds
    size = f"cell.ues = {cell.ues:,} and cell.subchannels = {cell.subchannels:,}"
    steps, batch = learning.local_steps, learning.batch_size
    needs = {
        f"gains with {size}": 8.0 * cell.ues * cell.subchannels,
        f"records of run.rounds = {length:,} with {size}": length
        * (24.0 * cell.ues + 24.0 * cell.subchannels),
        # The samples that a UE draws, and the slopes of a batch.
        f"learn.local_steps = {steps:,} with learn.batch_size = {batch:,}": batch
        * (8.0 * steps + 64.0),
    }
    require_memory(sum(needs.values()), max(needs, key=lambda what: needs[what]))
    for memory in kept_memories(scenario):
        require_memory(memory.bytes, memory.what)


class KeptMemory(NamedTuple):
    """What a part of learning keeps that has a model's length of numbers for every UE."""

    part: str
    kind: str
    ues: int
    length: int
    bytes: int

    @property
    def what(self) -> str:
        """What the memory is for, with the names of the fields that decide it."""
        return (
            f"learn.{self.part} = {self.kind!r} with cell.ues = {self.ues:,} and models of "
            f"{self.length:,} numbers"
        )

    def __str__(self) -> str:
        """One line, such as: memory aggregation keeps 100 x 7,850 numbers: 3.2 MB."""
        numbers = f"{self.ues:,} x {self.length:,} numbers"
        return f"{self.kind} {self.part} keeps {numbers}: {bytes_text(self.bytes)}"


def kept_memories(scenario: Scenario) -> list[KeptMemory]:
    """What aggregation and compression will keep, as far as that grows with the UEs."""
    settings, ues = scenario.learn, scenario.cell.ues
    needs = {
        ("aggregation", settings.aggregation.kind): learn.memory_bytes
        if learn.keeps_updates(settings)
        else None,
        ("compression", settings.compression.kind): learn.compression_bytes
        if learn.keeps_unsent(settings)
        else None,
    }
    if not any(needs.values()):
        return []
    length = learn.model_length(data.load_once(scenario.data), settings)
    return [
        KeptMemory(part, kind, ues, length, needed(settings, ues, length))
        for (part, kind), needed in needs.items()
        if needed
    ]


def expected_seconds(scenario: Scenario) -> float:
    """Roughly how long a run takes one core: the right power of ten, on a machine of today."""
    cell, learning = scenario.cell, scenario.learn
    scheduled = min(cell.ues, cell.subchannels) / 2
    samples = scheduled * learning.local_steps * learning.batch_size
    return scenario.run.rounds * (2e-4 + 2e-8 * cell.ues * cell.subchannels + 5e-7 * samples)


def rounds(scenario: Scenario, policy: Policy | str, seed: int = 0) -> Iterator[RoundRecord]:
    """The rounds of `simulate`, one at a time as they happen."""
    require_resources(scenario, kept_rounds=1)
    streams = Streams(seed)
    samples = samples_of(scenario, streams)
    channel = make_channel(scenario, streams)
    return _rounds(scenario, make_policy(policy), streams, channel, samples.learner)


def _rounds(
    scenario: Scenario, policy: Policy, streams: Streams, channel: Channel, learner: learn.Learner
) -> Iterator[RoundRecord]:
    """Algorithm 3, a round at a time."""
    run, params = scenario.run, learner.init(streams)
    books = open_books(scenario, streams, channel.power_budget, params.size)
    computing, deadline = compute_slots(scenario, streams), deadline_slots(scenario)
    everyone, batteries = offers_everyone(scenario), make_batteries(scenario, streams)
    access_point = AccessPoint(
        policy,
        channel.ue_count,
        streams,
        deadline_slots=deadline,
        offer_everyone=everyone,
        margin=scenario.threshold.margin,
    )
    access_point.describe(data_sizes=learner.sizes, compute_slots=computing)
    aggregator = learn.make_aggregator(scenario.learn)
    memory = aggregator.start(channel.ue_count, params.size)
    compressor = learn.make_compressor(scenario.learn)
    unsent = learn.compression_state(compressor, channel.ue_count, params.size)
    for t in range(run.rounds):
        # The access point sees the channel and says who uploads (Algorithms 1 and 2).
        block = channel.block(t)
        uplink = Uplink(block.seen, channel.power_budget, books.threshold)
        if batteries is not None:
            uplink = uplink.only(batteries.charged)
        allocation = access_point.plan(uplink)
        weight, optimum, optimum_bound = _beside_optimum(scenario, access_point, uplink, allocation)

        # Uploads meet the true channel, and may be lost on it.
        if block.true is not block.seen:
            allocation = allocation.meeting(block.true)
        scheduled = np.flatnonzero(allocation.scheduled)
        reached = allocation.reaches(books.threshold)[scheduled]
        rates = allocation.rate[scheduled]
        sent = np.where(reached, rates, books.threshold)  # in vain for the whole slot
        spent = books.spent(allocation, scheduled, sent)
        if batteries is not None:
            batteries, spent = batteries.drained(spent, scheduled)
        in_time = np.ones(scheduled.size, np.bool_)
        if deadline < math.inf:
            in_time = computing[scheduled] + upload_slots(sent, books.threshold) <= deadline
        outcome = _outcomes(reached, in_time, spent.lasted)
        received = scheduled[outcome == "received"]

        # They learn locally from the same model, and what arrives makes the next one.
        start, models = params, learner.train(params, received, t, streams)
        trained = learn.Trained(start, models, received, t)
        models, unsent = compressor.send(unsent, trained, streams.compression)
        updates = learn.Updates(start, models, received, allocation.factors_of(received))
        params, diversity, memory = aggregator.combine(memory, updates, learner.sizes)
        _require_finite(params, t, scenario.learn, allocation)

        # What arrived is young again, everything else grows older (Eq. 2).
        reports = learn.reports(policy.reads, learner, start, models, received)
        access_point.receive(received, reports)

        last = t + 1 == run.rounds
        evaluation = learner.evaluate(params) if last or _is_due(t, run.evaluate_every) else None
        weighed = run.objective_every > 0 and (last or _is_due(t, run.objective_every))
        yield RoundRecord(
            t=t,
            scheduled=scheduled,
            received=received,
            owner=allocation.owner,
            power=allocation.power,
            gain=allocation.gain,
            rate=rates,
            outcome=outcome,
            ages=access_point.ages,
            participation=access_point.participation,
            gradient_diversity=diversity,
            accuracy=evaluation.accuracy if evaluation else None,
            class_accuracy=evaluation.class_accuracy if evaluation else None,
            test_loss=evaluation.loss if evaluation else None,
            objective=learner.objective(params) if weighed else None,
            weight=weight,
            optimum=optimum,
            optimum_bound=optimum_bound,
            seconds=spent.seconds,
            energy_j=spent.energy_j,
            uses=spent.uses,
            bits=spent.bits,
            emptied=spent.emptied,
            positions_m=_positions(block) if channel.moves else None,
        )


def _positions(block: Block) -> NDArray[np.float32] | None:
    """Where the UEs are, as exactly as a record keeps it."""
    return None if block.positions_m is None else block.positions_m.astype(np.float32)


def _is_due(t: int, every: int) -> bool:
    return (t + 1) % every == 0


def _outcomes(
    reached: NDArray[np.bool_], in_time: NDArray[np.bool_], lasted: NDArray[np.bool_]
) -> NDArray[np.str_]:
    """What became of uploads (`agewise.records.OUTCOMES`): the first thing that went wrong."""
    failures = [(~lasted, "battery"), (~reached, "outage"), (~in_time, "late")]
    conditions, reasons = zip(*failures, strict=True)
    return np.select(conditions, reasons, "received")


def _beside_optimum(
    scenario: Scenario, access_point: AccessPoint, uplink: Uplink, allocation: Allocation
) -> tuple[float | None, float | None, float | None]:
    """The weight that was scheduled, the optimum of problem (3) and its bound, where asked for.

    The search for the optimum has a limit, and the policy may have found better: then this is
    the best known.
    """
    wanted = scenario.run.optimum
    if not isinstance(wanted, SampledOptimum) or not _is_due(access_point.t, wanted.every):
        return None, None, None
    weights = f_alpha(access_point.ages, scenario.run.age_alpha)
    weight = float(weights[allocation.scheduled].sum())
    best = solve(access_point.offer(uplink), weights, work_limit=wanted.work_limit)
    return weight, max(weight, best.value), max(weight, best.bound)


def _require_finite(params: learn.Params, t: int, settings: Learn, allocation: Allocation) -> None:
    if learn.is_finite(params):
        return
    if allocation.aggregation is not None:
        cause = f"are the policy's factors of the updates, up to {allocation.aggregation.max():g}"
    else:
        cause = f"is a step size that is too large: lower learn.step_size ({settings.step_size:g})"
    raise Diverged(
        f"the model diverged in round {t}: its weights are no longer finite; the likely cause "
        f"{cause}"
    )
