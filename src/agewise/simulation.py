"""Algorithm 3: federated learning over the scheduled channel."""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agewise import data, learn
from agewise.accounting import make_batteries, offers_everyone, open_books
from agewise.age import f_alpha
from agewise.files import fingerprint
from agewise.policies import make_policy
from agewise.radio import Block, Channel
from agewise.random import Streams
from agewise.records import MOST_GAINS, History, RoundRecord, RunInfo
from agewise.resources import require_resources
from agewise.scenario import (
    Data,
    Learn,
    Proximal,
    SampledOptimum,
    Scenario,
    Torch,
    require_scenario,
)
from agewise.scheduling import AccessPoint, Policy
from agewise.sources import require_same, sources_of
from agewise.spectrum import Allocation, Uplink, solve
from agewise.spectrum.reach import needs
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
    settings, source = scenario.learn, scenario.data
    digests, made_by = data.digests_of(source), _module_of(settings)
    return _divided(settings, source, scenario.cell.ues, streams, digests, made_by)


def _module_of(settings: Learn) -> object:
    """What a PyTorch module is made by, if it is not the package's own; others are ``None``."""
    model = settings.model
    if not isinstance(model, Torch):
        return None
    file = None if model.source is None else fingerprint(learn.source_file(model.source))
    return file or learn.added_maker(model)


@functools.lru_cache(maxsize=2)
def _divided(
    settings: Learn,
    source: Data,
    ues: int,
    streams: Streams,
    _digests: tuple[str | None, ...],
    _module: object,
) -> SeedSamples:
    dataset = data.load_once(source)
    partition = data.divide(dataset.train.labels, source, ues, streams, dataset.writers)
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
    require_scenario(scenario)
    scenario = scenario.loaded()
    require_resources(scenario)
    chosen, streams = make_policy(policy), Streams(seed)
    known = sources_of(scenario, chosen) if sources is None else dict(sources)
    samples = samples_of(scenario, streams)
    channel = scenario.make_channel(streams)
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


def rounds(scenario: Scenario, policy: Policy | str, seed: int = 0) -> Iterator[RoundRecord]:
    """The rounds of `simulate`, one at a time as they happen."""
    require_scenario(scenario)
    scenario = scenario.loaded()
    require_resources(scenario, kept_rounds=1)
    streams = Streams(seed)
    samples = samples_of(scenario, streams)
    channel = scenario.make_channel(streams)
    return _rounds(scenario, make_policy(policy), streams, channel, samples.learner)


def _rounds(
    scenario: Scenario, policy: Policy, streams: Streams, channel: Channel, learner: learn.Learner
) -> Iterator[RoundRecord]:
    """Algorithm 3, a round at a time."""
    run, params = scenario.run, learner.init(streams)
    books = open_books(scenario, streams, channel.power_budget, params.size)
    batteries = make_batteries(scenario, streams)
    access_point = AccessPoint(
        policy,
        channel.ue_count,
        streams,
        deadline_slots=books.deadline_slots,
        offer_everyone=offers_everyone(scenario),
        margin=scenario.threshold.margin,
    )
    access_point.describe(data_sizes=learner.sizes, compute_slots=books.compute_slots)
    aggregator = learn.make_aggregator(scenario.learn)
    memory = aggregator.start(channel.ue_count, params.size)
    compressor = learn.make_compressor(scenario.learn)
    unsent = learn.compression_state(compressor, channel.ue_count, params.size)
    local = learn.make_local_objective(scenario.learn)
    variates = local.start(channel.ue_count, params.size)
    for t in range(run.rounds):
        # The access point sees the channel and says who uploads (Algorithms 1 and 2).
        block = channel.block(t)
        uplink = Uplink(block.seen, channel.power_budget, books.threshold)
        if batteries is not None:
            uplink = uplink.only(batteries.charged)
        allocation = access_point.plan(uplink)
        need, offered_gain = (
            recorded_offer(access_point.offer(uplink)) if t == run.rounds // 2 else (None, None)
        )
        weight, optimum, optimum_bound = _beside_optimum(scenario, access_point, uplink, allocation)

        # Uploads meet the true channel: some may be lost on it, or be late, or empty a battery.
        delivery = books.deliver(
            allocation, None if block.true is block.seen else block.true, batteries
        )
        batteries, received, spent = delivery.batteries, delivery.received, delivery.spent

        # They learn locally from the same model, and what arrives makes the next one.
        corrections = local.corrections(variates, received)
        start, models = params, learner.train(params, received, t, streams, corrections)
        trained = learn.Trained(start, models, received, t)
        models, unsent = compressor.send(unsent, trained, streams.compression)
        updates = learn.Updates(start, models, received, allocation.factors_of(received))
        params, diversity, memory = aggregator.combine(memory, updates, learner.sizes)
        variates = local.receive(variates, updates, learner.sizes, t)
        _require_finite(params, updates, t, scenario.learn)

        # What arrived is young again, everything else grows older (Eq. 2).
        reports = learn.reports(policy.reads, learner, start, models, received)
        access_point.receive(received, reports)

        last = t + 1 == run.rounds
        evaluation = learner.evaluate(params) if last or _is_due(t, run.evaluate_every) else None
        weighed = run.objective_every > 0 and (last or _is_due(t, run.objective_every))
        yield RoundRecord(
            t=t,
            scheduled=delivery.scheduled,
            received=received,
            owner=allocation.owner,
            power=allocation.power,
            gain=delivery.allocation.gain,
            rate=delivery.rates,
            outcome=delivery.outcome,
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
            need=need,
            offered_gain=offered_gain,
        )


def _positions(block: Block) -> NDArray[np.float32] | None:
    """Where the UEs are, as exactly as a record keeps it."""
    return None if block.positions_m is None else block.positions_m.astype(np.float32)


def recorded_offer(
    offered: Uplink,
) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
    """What a record keeps of what a policy could choose from: needs, and the gains if not too many.

    Shapes and meaning are those of `agewise.records.Offer`.
    """
    need, _ = needs(offered, np.arange(offered.subchannel_count))
    gains = offered.gains
    return need, gains.astype(np.float32) if gains.size <= MOST_GAINS else None


def _is_due(t: int, every: int) -> bool:
    return (t + 1) % every == 0


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


def _require_finite(params: learn.Params, updates: learn.Updates, t: int, settings: Learn) -> None:
    if learn.is_finite(params):
        return
    spoilt = [
        int(ue)
        for ue, model in zip(updates.ues, updates.models, strict=True)
        if not learn.is_finite(model)
    ]
    step = settings.step_of(t)
    cause = f"is a step size that is too large: lower learn.step_size ({settings.step_size:g})"
    if isinstance(settings.local, Proximal) and step * settings.local.mu > 1.0:
        cause = (
            f"is a proximal term that overshoots, for step size times mu is "
            f"{step * settings.local.mu:g}: lower learn.local.mu ({settings.local.mu:g})"
        )
    elif not spoilt and updates.factors is not None:
        cause = f"are the policy's factors of the updates, up to {updates.factors.max():g}"
    where = f", first those of UE {spoilt[0]}" if spoilt else ""
    raise Diverged(
        f"the model diverged in round {t}: its weights are no longer finite{where}; the likely "
        f"cause {cause}"
    )
